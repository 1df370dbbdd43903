"""Cut batches at DDL statements: the mapping of the rows after a statement is not known before it has been executed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from ggshell.record.change import ChangeBatch
from ggshell.record.ddl import DdlStatement, decode_ddl
from ggshell.record.operation import DDL_OPERATIONS
from ggshell.record.transaction import TransactionPiece


def ddl_parts(batch: ChangeBatch) -> Iterator[ChangeBatch]:
    """Return a batch in parts: each DDL statement alone, and the rows between statements.

    A part names only the tables of its rows, and a transaction that is cut arrives in pieces. A batch without DDL is
    returned as it is, after one comparison.
    """
    is_ddl = batch.of_types(DDL_OPERATIONS)
    if not is_ddl.any() or len(batch) == 1:
        yield batch
        return
    found = np.flatnonzero(is_ddl)
    borders = sorted({0, len(batch), *found.tolist(), *(found + 1).tolist()})
    for first, last in pairwise(borders):
        yield _part(batch, first, last)


def is_ddl(batch: ChangeBatch) -> bool:
    """Whether a part of ``ddl_parts`` is a DDL statement."""
    return len(batch) == 1 and int(batch.io_type[0]) in DDL_OPERATIONS


def statement_of(batch: ChangeBatch) -> DdlStatement:
    """Return the statement of a part that is one. Raises ValueError if its record is damaged."""
    return decode_ddl(batch.data(0))


def _part(batch: ChangeBatch, first: int, last: int) -> ChangeBatch:
    """Return rows ``first`` to ``last - 1`` as a batch; reading continues after them."""
    pieces = tuple(_pieces(batch, first, last))
    part = batch.take(slice(first, last), pieces)
    used = [number for number in np.unique(part.table).tolist() if number < len(batch.tables)]
    numbers = np.full(max(len(batch.tables), int(part.table.max())) + 1, len(used), dtype=np.uint16)
    numbers[used] = np.arange(len(used), dtype=np.uint16)
    return replace(
        part,
        tables=tuple(batch.tables[number] for number in used),
        table=numbers[part.table],
        end_rba=int(batch.rba[last]) if last < len(batch) else batch.end_rba,
    )


def _pieces(batch: ChangeBatch, first: int, last: int) -> Iterator[TransactionPiece]:
    for piece in batch.pieces:
        low, high = max(piece.first, first), min(piece.first + piece.count, last)
        if low < high:
            begins = piece.begins and low == piece.first
            ends = piece.ends and high == piece.first + piece.count
            yield replace(piece, first=low - first, count=high - low, begins=begins, ends=ends)
