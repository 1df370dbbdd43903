"""Join the fragments of long data areas, so that a batch never shows how a record was cut."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ggshell.record import IoType, TransInd
from ggshell.trail.decode import Records, damaged


class Joined(NamedTuple):
    """Records without fragments, and the buffer that their data areas lie in."""

    buffer: bytes
    records: Records


def join_fragments(chunk: bytes, records: Records, file: object, base: int) -> Joined:
    """Records with every run of fragments made one; a run that is not whole at the chunk's end is left for later.

    Joined data areas are put behind the chunk.  Raises TrailError for a fragment without its first record.
    """
    continued = records.header["continued"]
    fragment = records.header["io_type"] == IoType.RECORD_FRAGMENT
    if not continued.any() and not fragment.any():
        return Joined(chunk, records)
    count, end = len(records.start), records.end
    firsts: list[int] = []
    parts: list[bytes] = [chunk]
    size = len(chunk)
    header = records.header.copy()
    start, length, total = records.data_start.copy(), records.data_length.copy(), records.total.copy()
    row = 0
    while row < count:
        if fragment[row]:
            raise damaged(file, base + int(records.start[row]), "the first record of a fragment")
        last = row
        while last < count and continued[last]:
            last += 1
            if last < count and not fragment[last]:
                raise damaged(file, base + int(records.start[last]), "the next fragment of a record")
        if last == count:
            end = int(records.start[row])
            break
        if last > row:
            pieces = [chunk[int(start[at]) : int(start[at] + length[at])] for at in range(row, last + 1)]
            start[row], length[row] = size, sum(map(len, pieces))
            total[row] = int(records.start[last] + records.total[last] - records.start[row])
            parts += pieces
            size += int(length[row])
            header["continued"][row] = 0
            header["trans_ind"][row] = _place(int(header["trans_ind"][row]), int(header["trans_ind"][last]))
        firsts.append(row)
        row = last + 1
    keep = np.array(firsts, dtype=np.int64)
    chosen = Records(
        records.start[keep], total[keep], header[keep], start[keep], length[keep],
        records.token_start[keep], records.token_end[keep], end,
    )  # fmt: skip
    return Joined(b"".join(parts), chosen)


def _place(first: int, last: int) -> int:
    begins, ends = first in (TransInd.BEGIN, TransInd.SOLE), last >= TransInd.END
    if begins:
        return TransInd.SOLE if ends else TransInd.BEGIN
    return TransInd.END if ends else TransInd.MIDDLE
