"""Count the rows of a batch by table and operation, for STATS."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ggshell.record.change import ChangeBatch
from ggshell.types import TableName

_FEW = 16


def tally(batch: ChangeBatch) -> Iterator[tuple[TableName, int, int]]:
    """(table, operation type, rows) of a batch; one pass, whatever its length.  Before images are no operations."""
    if batch.befores is not None:
        batch = batch.take(np.flatnonzero(~batch.befores), batch.pieces)
    if len(batch) <= _FEW:
        counts: dict[tuple[int, int], int] = {}
        for pair in zip(batch.table.tolist(), batch.io_type.tolist(), strict=True):
            counts[pair] = counts.get(pair, 0) + 1
        for (table, io_type), number in counts.items():
            yield batch.tables[table].name, io_type, number
        return
    codes, numbers = np.unique(batch.table.astype(np.int64) << 8 | batch.io_type, return_counts=True)
    for code, number in zip(codes.tolist(), numbers.tolist(), strict=True):
        yield batch.tables[code >> 8].name, code & 0xFF, number
