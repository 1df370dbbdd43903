"""Find the last whole transaction of a trail: where a writer goes on after any end, and what a reader may see of a trail
without a durable mark.

With a mark, what lies before it is durable and must be good; what lies behind it is judged.  Without one the last file that
has a settled place is judged from its beginning.  A place is settled when no transaction is open there.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ggshell.errors import TrailError
from ggshell.record.operation import IoType, TransInd
from ggshell.trail import decode, fileheader, layout
from ggshell.trail.context import row_transaction
from ggshell.trail.decode import Records, damaged
from ggshell.trail.durable import DurableMark, MarkReader
from ggshell.trail.markers import table_index
from ggshell.trail.name import TrailName
from ggshell.trail.opened import OpenedFile, open_file
from ggshell.types import Csn, TrailPosition

CHUNK = 4 << 20
_LONGEST_RECORD = 0xFFFF
_BEGIN = bytes([layout.RECORD, 1])


class _Broken(NamedTuple):
    """Where a file's bytes stop being records, and what was expected there."""

    rba: int
    expected: str


class _Scan(NamedTuple):
    """The last settled place of a file (None: it has none), and where it breaks off (None: it does not)."""

    settled: DurableMark | None
    broken: _Broken | None


class _State(NamedTuple):
    """What is known behind a record: the last settled place, the last transaction that ended, the one that is open, and
    how many table definitions the file has given out."""

    settled: DurableMark | None
    csn: Csn | None
    opened: Csn | None
    tables: int


def find_end(name: TrailName) -> DurableMark | None:
    """The last settled place of a trail, and the last transaction before it; None without files.

    Behind the mark, a torn tail, a zero-filled one or an unfinished transaction is what a crash leaves.  Raises TrailError
    when the trail ends before its mark, and for damage that good transactions follow (nothing is then cut).
    """
    sequences = name.sequences()
    if not sequences:
        return None
    reader = MarkReader(name)
    mark = reader.read()
    reader.close()
    if mark is None or mark.position.seqno not in sequences:
        return _without_mark(name, sequences)
    path = name.file(mark.position.seqno)
    if path.stat().st_size < mark.position.rba:
        raise TrailError(
            f"trail file {path} is shorter than its durable end, RBA {mark.position.rba}",
            where=f"{path}, RBA {path.stat().st_size}",
            hint="restore the file; the transactions that it lost cannot be told from those still to come",
        )
    return _from_mark(name, mark, [number for number in sequences if number > mark.position.seqno])


def _from_mark(name: TrailName, mark: DurableMark, later: list[int]) -> DurableMark:
    found = mark
    broken: _Broken | None = None
    for seqno in [mark.position.seqno, *later]:
        scan = _scan(name, seqno, mark if seqno == mark.position.seqno else None)
        if scan.settled is not None:
            if broken is not None:  # a file is synced before the next one is begun
                raise damaged(name.file(found.position.seqno), *broken)
            found = scan.settled
        broken = broken or scan.broken
    return found


def _without_mark(name: TrailName, sequences: list[int]) -> DurableMark:
    """The last settled place of the last file that has one.

    What follows a break tells what it is: nothing, the tail that a crash tore; good transactions, damage that must not be
    cut away together with them, for nobody knows whether the source can send them again.
    """
    for seqno in reversed(sequences):
        scan = _scan(name, seqno, None)
        if scan.broken is not None and _good_end_behind(name.file(seqno), scan.broken.rba):
            raise damaged(name.file(seqno), *scan.broken)
        if scan.settled is not None:
            return scan.settled
    return DurableMark(TrailPosition(sequences[0], 0), None)


def _scan(name: TrailName, seqno: int, mark: DurableMark | None) -> _Scan:
    """Go through one file from a mark, or from its beginning."""
    if mark is None and _header_is_torn(name.file(seqno)):
        return _Scan(None, _Broken(0, "a trail file header"))
    file = open_file(name, seqno)
    try:
        if mark is not None:
            return _follow(file, mark.position.rba, _State(mark, mark.csn, None, mark.tables))
        previous, inside = file.header.previous_csn, file.header.inside
        start = DurableMark(TrailPosition(seqno, file.first), previous)
        state = _State(None, previous, inside.csn, 0) if inside else _State(start, previous, None, 0)
        return _follow(file, file.first, state)
    finally:
        file.close()


def _header_is_torn(path: Path) -> bool:
    with path.open("rb") as file:
        data = file.read(fileheader.LONGEST)
    try:
        fileheader.decode_header(data)
    except ValueError:
        return True
    return False


def _follow(file: OpenedFile, place: int, state: _State) -> _Scan:
    """Follow the records from a place to the file's end, or to where they break off."""
    size = file.size()
    while place < size:
        chunk = file.read(CHUNK, place)
        records = decode.good_records(chunk, file.path, place)
        state = _behind(chunk, records, file, place, state)
        if records.fault is not None:
            return _Scan(state.settled, _Broken(place + records.fault.place, records.fault.expected))
        if not records.end:
            return _Scan(state.settled, _Broken(place, "a whole record"))
        place += records.end
    return _Scan(state.settled, None)


def _behind(chunk: bytes, records: Records, file: OpenedFile, base: int, state: _State) -> _State:
    """What is known behind a chunk's good records; the place before an open transaction's first row is settled."""
    settled, csn, opened = state.settled, state.csn, state.opened
    tables = max(state.tables, _highest_index(records))
    rows = np.flatnonzero(records.is_row)
    inds = records.header["trans_ind"][rows]
    begins = np.flatnonzero((inds == TransInd.BEGIN) | (inds == TransInd.SOLE))
    ends = np.flatnonzero(inds >= TransInd.END)
    following = 0
    if len(ends):
        following = int(ends[-1]) + 1
        before = begins[begins < following]
        csn = row_transaction(chunk, records, int(rows[before[-1]]), file, base).csn if len(before) else opened
        opened = None
    if opened is None:
        place = int(records.start[rows[following]]) if following < len(rows) else records.end
        settled = DurableMark(TrailPosition(file.seqno, base + place), csn, tables)
    if len(begins) and begins[-1] >= following:
        opened = row_transaction(chunk, records, int(rows[begins[-1]]), file, base).csn
    return _State(settled, csn, opened, tables)


def _highest_index(records: Records) -> int:
    definitions = ~records.is_row & (records.header["io_type"] == IoType.METADATA)
    return table_index(int(records.header["audit_rba"][definitions].max(initial=0)))


def _good_end_behind(path: Path, place: int) -> bool:
    """Whether a good record that ends a transaction stands anywhere behind a place."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        while place < size:
            chunk = os.pread(file.fileno(), CHUNK, place)
            at = chunk.find(_BEGIN)
            while at >= 0:
                if _is_good_end(chunk[at : at + _LONGEST_RECORD], path, place + at):
                    return True
                at = chunk.find(_BEGIN, at + 1)
            place += max(len(chunk) - _LONGEST_RECORD, 1) if place + len(chunk) < size else len(chunk)
    return False


def _is_good_end(data: bytes, path: Path, rba: int) -> bool:
    total = data[2] | data[3] << 8 if len(data) > 3 else 0
    if total < decode.SMALLEST or total > len(data) or data[total - 4] != layout.TRAILER:
        return False
    records = decode.good_records(data[:total], path, rba)
    return bool(len(records.start) and records.is_row[0] and records.header["trans_ind"][0] >= TransInd.END)
