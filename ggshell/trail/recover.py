"""Find the last whole transaction of a trail: where a writer goes on after any end, and what a reader may see of a trail
without a durable mark."""

from __future__ import annotations

import os
from typing import NamedTuple

from ggshell.errors import TrailError
from ggshell.record import TransInd
from ggshell.trail import decode, fileheader, layout
from ggshell.trail.durable import MarkReader
from ggshell.trail.name import TrailName
from ggshell.types import Csn, TrailPosition

CHUNK = 4 << 20


class TrailEnd(NamedTuple):
    """The place behind the last whole transaction, its CSN, and whether anything lies behind that place."""

    position: TrailPosition
    csn: Csn | None
    torn: bool


def find_end(name: TrailName) -> TrailEnd | None:
    """Scan for the end of the last whole transaction, from the durable mark on where there is one; None without files.

    What lies before the mark is durable and must be good; behind it a torn tail, a zero-filled one or an unfinished
    transaction is what a crash leaves, and only marked as such.  Raises TrailError when the trail ends before its mark.
    """
    sequences = name.sequences()
    if not sequences:
        return None
    reader = MarkReader(name)
    mark = reader.read()
    reader.close()
    if mark is None or mark.position.seqno not in sequences:
        return _scan_all(name, sequences)
    if name.file(mark.position.seqno).stat().st_size < mark.position.rba:
        raise TrailError(
            f"trail file {name.file(mark.position.seqno)} is shorter than its durable end, RBA {mark.position.rba}",
            hint="restore the file; the transactions that it lost cannot be told from those still to come",
        )
    found = TrailEnd(mark.position, mark.csn, torn=False)
    for seqno in [number for number in sequences if number >= mark.position.seqno]:
        first = mark.position.rba if seqno == mark.position.seqno else 0
        found = _scan(name, seqno, first, found)
    return found


def visible_end(name: TrailName) -> TrailPosition | None:
    """The end of the last whole transaction, for readers of a trail without a mark."""
    end = find_end(name)
    return end.position if end else None


def _scan_all(name: TrailName, sequences: list[int]) -> TrailEnd:
    """Without a mark: the last file that holds the end of a transaction decides; those behind it are scanned for a tail."""
    begin = len(sequences) - 1
    empty = TrailEnd(TrailPosition(sequences[0], 0), None, torn=False)
    while True:
        found = empty
        for seqno in sequences[begin:]:
            found = _scan(name, seqno, 0, found)
        if found.csn is not None or begin == 0:
            return found
        begin -= 1


def _scan(name: TrailName, seqno: int, first: int, before: TrailEnd) -> TrailEnd:
    """Go through one file from ``first``; the result is the last end met, or ``before``."""
    path = name.file(seqno)
    found, csn, place = before, before.csn, first
    size = path.stat().st_size
    with path.open("rb") as file:
        if place == 0:
            head = file.read(min(size, 0x10000))
            place = fileheader.header_size(head)
            try:
                fileheader.decode_header(head)
            except ValueError:
                return found._replace(torn=True)
            if found.csn is None:
                found = found._replace(position=TrailPosition(seqno, place))
        while place < size:
            chunk = os.pread(file.fileno(), CHUNK, place)
            good, ends = _good_records(chunk, path, place)
            for rba, ended in ends:
                csn = ended or csn
                if rba:
                    found = TrailEnd(TrailPosition(seqno, rba), csn, torn=False)
            if good == 0:
                break
            place += good
    return found._replace(torn=found.position != TrailPosition(seqno, size))


def _good_records(chunk: bytes, path: object, base: int) -> tuple[int, list[tuple[int, Csn | None]]]:
    """How many bytes of a chunk are good records, and (RBA behind it or 0, CSN announced) of those that begin or end."""
    place, ends = 0, []
    while place + 4 <= len(chunk):
        total = int.from_bytes(chunk[place + 2 : place + 4], "little")
        record = chunk[place : place + total]
        try:
            records = decode.parse(record, path, base + place)
        except (TrailError, IndexError):
            break
        if not len(records.start):
            break
        place += total
        if records.header["partition"][0] == layout.PARTITION_METADATA:
            continue
        where = int(records.header["trans_ind"][0])
        csn = None
        if where in (TransInd.BEGIN, TransInd.SOLE):
            first, last = int(records.token_start[0]), int(records.token_end[0])
            csn = decode.transaction_header(record, first, last, 0).csn
        if csn is not None or where >= TransInd.END:
            ends.append((base + place if where >= TransInd.END else 0, csn))
    return place, ends
