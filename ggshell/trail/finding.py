"""Find a CSN or a time in a trail: first by file headers, then by binary search inside one file.

CSNs ascend from transaction to transaction. Commit times may be slightly out of order, so the search for a time starts
``MARGIN`` earlier and then continues transaction by transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import numpy as np

from ggshell.record.operation import TransInd
from ggshell.record.transaction import TransactionHeader
from ggshell.trail import decode
from ggshell.trail.decode import Records
from ggshell.trail.fileheader import LONGEST, FileHeader, decode_header
from ggshell.trail.inspection import InspectedFile
from ggshell.trail.name import TrailName
from ggshell.trail.reader import visible_end
from ggshell.trail.tokens import transaction_headers
from ggshell.types import Csn, TrailPosition

MARGIN: Final = 1_000_000
"""Microseconds by which commit times may be out of order."""
CHUNK: Final = 1 << 20
_PROBE: Final = 128 << 10
_CLOSE: Final = 256 << 10
"""Ranges up to this size, in bytes, are scanned: that is faster than searching further."""
Key = Callable[[TransactionHeader], int]


def position_of_csn(name: TrailName, csn: Csn) -> TrailPosition | None:
    """Return the start of the first transaction with this CSN or a later one; None if the trail has none."""
    return _find(name, lambda header: header.csn.value, csn.value, csn.value, lambda file: _csn_of(file.first_csn))


def position_of_time(name: TrailName, time: int) -> TrailPosition | None:
    """Return the start of the first transaction that committed at a time (microseconds since 1970, UTC) or later."""
    return _find(name, lambda header: header.commit_time, time, time - MARGIN, lambda file: file.first_time)


def transactions_of(name: TrailName, csn: Csn) -> frozenset[str]:
    """Return the ids of the trail's transactions with its last CSN, searching backwards from the newest file.

    Purged files are not an error: the caller's checkpoint records what they contained.
    """
    found: set[str] = set()
    for seqno in reversed(name.sequences()):
        file = InspectedFile(name.file(seqno))
        try:
            header = _header(name.file(seqno))
            earlier = header.first_csn is not None and header.first_csn < csn
            place = _halve(file, lambda item: item.csn.value, csn.value) if earlier else file.first
            found |= {item.xid for _, item in transactions_from(file, place) if item.csn == csn}
            if header.inside is not None and header.inside.csn == csn:  # it began in an earlier file
                found.add(header.inside.xid)
        finally:
            file.close()
        if earlier or (header.previous_csn is not None and header.previous_csn < csn):
            break
    return frozenset(found)


def last_csn(name: TrailName) -> Csn | None:
    """Return the CSN of the last transaction that begins in a trail; None if it has none."""
    for seqno in reversed(name.sequences()):
        file = InspectedFile(name.file(seqno))
        try:
            size, place = _PROBE, file.size
            while place > file.first:
                place = max(file.first, file.size - size)
                found = [header.csn for _, header in transactions_from(file, place)]
                if found:
                    return max(found)
                size *= 8
        finally:
            file.close()
    return None


def _csn_of(csn: Csn | None) -> int | None:
    return csn.value if csn is not None else None


def _find(
    name: TrailName, key: Key, wanted: int, sure: int, first_of: Callable[[FileHeader], int | None]
) -> TrailPosition | None:
    """Return the start of the first visible transaction whose key is at least ``wanted``.

    File headers and binary search find a place before the first key of ``sure``; from there each transaction is compared.
    What is not durable yet does not count: after a crash, other records can take its place."""
    end = visible_end(name)
    sequences = name.sequences()
    start = 0
    for number, seqno in enumerate(sequences):
        first = first_of(_header(name.file(seqno)))
        if first is not None and first < sure:
            start = number
    for seqno in sequences[start:]:
        file = InspectedFile(name.file(seqno))
        try:
            place = _halve(file, key, sure) if seqno == sequences[start] else file.first
            for rba, header in transactions_from(file, place):
                if key(header) >= wanted:
                    found = TrailPosition(seqno, rba)
                    return found if end is not None and found < end else None
        finally:
            file.close()
    return None


def _header(path: Path) -> FileHeader:
    with path.open("rb") as file:
        try:
            return decode_header(file.read(LONGEST))
        except ValueError:
            return FileHeader()


def _halve(file: InspectedFile, key: Key, sure: int) -> int:
    """Return a place shortly before the first transaction whose key is at least ``sure``, by binary search."""
    low, high = file.first, file.size
    while high - low > _CLOSE:
        middle = (low + high) // 2
        found = next(transactions_from(file, middle, _PROBE), None)
        if found is None or found[0] >= high or key(found[1]) >= sure:
            high = middle
        else:
            low = found[0]
    return low


def transactions_from(file: InspectedFile, place: int, size: int = CHUNK) -> Iterator[tuple[int, TransactionHeader]]:
    """Yield the transactions that begin at or after a place, skipping damaged records."""
    for base, chunk, records in _undamaged(file, place, size):
        places = records.header["trans_ind"]
        begins = np.flatnonzero(records.is_row & ((places == TransInd.BEGIN) | (places == TransInd.SOLE)))
        if len(begins):
            headers = transaction_headers(
                chunk, records.token_start[begins], records.token_end[begins], records.header["io_time"][begins]
            )
            yield from zip((records.start[begins] + base).tolist(), headers, strict=True)


def undamaged_records(file: InspectedFile, place: int) -> Iterator[tuple[int, Records]]:
    """Yield the undamaged records at or after a place, chunk by chunk, each with the RBA of the chunk."""
    return ((base, records) for base, _, records in _undamaged(file, place, CHUNK))


def _undamaged(file: InspectedFile, place: int, size: int) -> Iterator[tuple[int, bytes, Records]]:
    seen = file.good_behind(place)
    while seen is not None and seen.rba < file.size:
        base = seen.rba
        chunk = file.read(size, base)
        records = decode.good_records(chunk, file.path, base)
        yield base, chunk, records
        following = base + records.end if records.end else base + 1
        seen = file.at(following)
        if seen is not None and (seen.fault or not seen.size):
            seen = file.good_behind(following + 1)
