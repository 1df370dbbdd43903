"""Join the fragments of long data areas, so that a batch holds whole data areas only."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ggshell.record.change import Areas
from ggshell.record.operation import IoType, TransInd
from ggshell.trail.decode import Records, damaged


class JoinedRecords(NamedTuple):
    """Records after joining, and the buffer that holds their data areas."""

    buffer: bytes
    records: Records


class _Run(NamedTuple):
    """Records ``first`` to ``last`` of a chunk, which form one data area."""

    first: int
    last: int


def join_fragments(chunk: bytes, records: Records, file: object, base: int) -> JoinedRecords:
    """Join each run of fragments to one record; a run that is incomplete at the chunk's end is left for the next chunk.

    Joined data areas are appended to the chunk. Raises TrailError for a fragment out of order.
    """
    if not records.header["continued"].any() and not (records.header["io_type"] == IoType.RECORD_FRAGMENT).any():
        return JoinedRecords(chunk, records)
    runs = _runs(records, file, base)
    keep = np.array([run.first for run in runs], dtype=np.int64)
    header = records.header[keep]
    start, length, total = records.data_start[keep], records.data_length[keep], records.total[keep]
    view, size = memoryview(chunk), len(chunk)
    parts: list[bytes | memoryview] = [chunk]
    for row, (first, last) in enumerate(runs):
        if first == last:
            continue
        pieces = _pieces(view, records, first, last)
        parts += pieces
        start[row], length[row] = size, sum(map(len, pieces))
        size += int(length[row])
        total[row] = int(records.start[last] + records.total[last] - records.start[first])
        header["continued"][row] = 0
        header["trans_ind"][row] = _place(int(header["trans_ind"][row]), int(records.header["trans_ind"][last]))
    whole = runs[-1].last if runs else -1
    end = int(records.start[whole] + records.total[whole]) if runs else 0
    chosen = Records(
        records.start[keep], total, header, start, length,
        records.token_start[keep], records.token_end[keep], end, records.fault,
        None if records.user is None else Areas(records.user.start[keep], records.user.length[keep]),
    )  # fmt: skip
    return JoinedRecords(b"".join(parts), chosen)


def _runs(records: Records, file: object, base: int) -> list[_Run]:
    continued = records.header["continued"].tolist()
    fragment = (records.header["io_type"] == IoType.RECORD_FRAGMENT).tolist()
    number = records.header["rec_count"].tolist()
    runs, row, count = [], 0, len(continued)
    while row < count:
        if fragment[row]:
            raise damaged(file, base + int(records.start[row]), "the first record of a fragment")
        last = row
        while last < count and continued[last]:
            last += 1
            if last < count and not (fragment[last] and number[last] == (last - row + 1) & 0xFF):
                raise damaged(file, base + int(records.start[last]), f"fragment {last - row + 1} of a record")
        if last == count:
            break
        runs.append(_Run(row, last))
        row = last + 1
    return runs


def _pieces(chunk: memoryview, records: Records, first: int, last: int) -> list[memoryview]:
    """Return the parts of one data area as views, so that a long data area is copied only once."""
    starts = records.data_start[first : last + 1].tolist()
    lengths = records.data_length[first : last + 1].tolist()
    return [chunk[at : at + length] for at, length in zip(starts, lengths, strict=True)]


def _place(first: int, last: int) -> int:
    begins, ends = first in (TransInd.BEGIN, TransInd.SOLE), last >= TransInd.END
    if begins:
        return TransInd.SOLE if ends else TransInd.BEGIN
    return TransInd.END if ends else TransInd.MIDDLE
