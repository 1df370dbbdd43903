"""Where in a trail a CSN or a time stands: file headers first, then by halves within one file.

CSNs rise from transaction to transaction.  Commit times need not, by the time that commits take, so a time is looked for
``MARGIN`` earlier and then transaction by transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import numpy as np

from ggshell.record.operation import TransInd
from ggshell.record.transaction import TransactionHeader
from ggshell.trail import decode
from ggshell.trail.fileheader import LONGEST, FileHeader, decode_header
from ggshell.trail.look import LookedFile
from ggshell.trail.name import TrailName
from ggshell.trail.tokens import transaction_headers
from ggshell.types import Csn, TrailPosition

MARGIN: Final = 1_000_000
"""Microseconds by which commits may stand out of the order of their times."""
CHUNK: Final = 1 << 20
_PROBE: Final = 128 << 10
_CLOSE: Final = 256 << 10
"""So near, going through is faster than halving."""
Key = Callable[[TransactionHeader], int]


def position_of_csn(name: TrailName, csn: Csn) -> TrailPosition | None:
    """Where the first transaction of a CSN or a later one begins; None when the trail has none."""
    return _find(name, lambda header: header.csn.value, csn.value, csn.value, lambda file: _csn_of(file.first_csn))


def position_of_time(name: TrailName, time: int) -> TrailPosition | None:
    """Where the first transaction begins that committed at a time (microseconds since 1970, UTC) or later."""
    return _find(name, lambda header: header.commit_time, time, time - MARGIN, lambda file: file.first_time)


def _csn_of(csn: Csn | None) -> int | None:
    return csn.value if csn is not None else None


def _find(
    name: TrailName, key: Key, wanted: int, sure: int, first_of: Callable[[FileHeader], int | None]
) -> TrailPosition | None:
    """The first transaction with a key of ``wanted`` or more; every key before the first of ``sure`` or more is less."""
    sequences = name.sequences()
    start = 0
    for number, seqno in enumerate(sequences):
        first = first_of(_header(name.file(seqno)))
        if first is not None and first < sure:
            start = number
    for seqno in sequences[start:]:
        file = LookedFile(name.file(seqno))
        try:
            place = _halve(file, key, sure) if seqno == sequences[start] else file.first
            for rba, header in _transactions(file, place):
                if key(header) >= wanted:
                    return TrailPosition(seqno, rba)
        finally:
            file.close()
    return None


def _header(path: Path) -> FileHeader:
    with path.open("rb") as file:
        try:
            return decode_header(file.read(LONGEST))
        except ValueError:
            return FileHeader()


def _halve(file: LookedFile, key: Key, sure: int) -> int:
    """A place before which every transaction's key is less than ``sure``, near the first whose key is not."""
    low, high = file.first, file.size
    while high - low > _CLOSE:
        middle = (low + high) // 2
        found = next(_transactions(file, middle, _PROBE), None)
        if found is None or found[0] >= high or key(found[1]) >= sure:
            high = middle
        else:
            low = found[0]
    return low


def _transactions(file: LookedFile, place: int, size: int = CHUNK) -> Iterator[tuple[int, TransactionHeader]]:
    """The transactions that begin at a place or behind it, past what is damaged."""
    seen = file.good_behind(place)
    while seen is not None and seen.rba < file.size:
        base = seen.rba
        chunk = file.read(size, base)
        records = decode.good_records(chunk, file.path, base)
        places = records.header["trans_ind"]
        begins = np.flatnonzero(records.is_row & ((places == TransInd.BEGIN) | (places == TransInd.SOLE)))
        if len(begins):
            headers = transaction_headers(
                chunk, records.token_start[begins], records.token_end[begins], records.header["io_time"][begins]
            )
            yield from zip((records.start[begins] + base).tolist(), headers, strict=True)
        following = base + records.end if records.end else base + 1
        seen = file.at(following)
        if seen is not None and (seen.fault or not seen.size):
            seen = file.good_behind(following + 1)
