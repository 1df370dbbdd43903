"""Rows of batches worked on: a batch goes in, a batch with other rows, other images and other tables comes out.

A row that does not go on belongs to no table (its table's number is behind the last one): so every piece of a transaction keeps
a row, and every place stays where it was.  What a statement does to a table is compiled when the table comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ggshell.columns.program import Outcome, Program
from ggshell.columns.rows import Rows
from ggshell.record.change import ChangeBatch
from ggshell.record.definition import TableDefinition
from ggshell.record.operation import OPERATIONS
from ggshell.record.transaction import TransactionPiece

Programs = Sequence[Program] | None
"""What becomes of a table's rows, one program a statement; None: they go on as they are."""
Raised = Callable[[ChangeBatch, int, int], Programs]
"""Told of a row that a FILTER with RAISEERROR refuses (the batch, the row, the number): programs that tell of it instead."""


class _Part(NamedTuple):
    """An outcome and the number that its table gets."""

    table: int
    outcome: Outcome


class Stage:
    """Works on batches.  ``plan`` says what becomes of a table's rows; ``raised`` what of those that RAISEERROR names."""

    def __init__(self, plan: Callable[[TableDefinition], Programs], raised: Raised | None = None) -> None:
        self._plan = plan
        self._raised = raised
        self._known: dict[TableDefinition, Programs] = {}

    def forget(self) -> None:
        """Compile anew: tables may have changed."""
        self._known.clear()

    def knows(self, table: TableDefinition) -> bool:
        """Whether the table was compiled before, so that nobody need be asked."""
        return table in self._known

    def run(self, batch: ChangeBatch) -> ChangeBatch:
        """The batch, worked on; itself where no statement does anything to its tables.  Raises GgsError."""
        plans = {
            number: programs for number, table in enumerate(batch.tables) if (programs := self._of(table)) is not None
        }
        if not plans:
            return batch
        parts: list[_Part] = []
        tables = list(batch.tables)
        for number, programs in plans.items():
            groups = [Rows(batch, numbers) for numbers in by_operation(batch, np.flatnonzero(batch.table == number))]
            places = [number, *range(len(tables), len(tables) + len(programs) - 1)]
            tables += [batch.tables[number]] * (len(places) - 1)
            for place, program in zip(places, programs, strict=False):
                parts += [_Part(place, outcome) for outcome in _outcomes(program, groups)]
                tables[place] = program.definition
        for row, program in self._told(batch, list(parts)):
            parts.append(_Part(len(tables), program.run(Rows(batch, np.array([row], dtype=np.int64)))))
            tables.append(program.definition)
        return _assembled(batch, tables, list(plans), parts)

    def _of(self, table: TableDefinition) -> Programs:
        if table not in self._known:
            self._known[table] = self._plan(table)
        return self._known[table]

    def _told(self, batch: ChangeBatch, parts: Sequence[_Part]) -> Iterator[tuple[int, Program]]:
        """The rows that RAISEERROR speaks of with what tells of them, one after the other."""
        if self._raised is None:
            return
        for row, error in sorted(pair for part in parts for pair in part.outcome.raised):
            for program in self._raised(batch, row, error) or ():
                yield row, program


def by_operation(batch: ChangeBatch, rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Rows of one table, cut into those of one operation; images before updates come apart, behind the updates."""
    codes = batch.io_type[rows].astype(np.int64)
    if not len(rows) or (batch.befores is None and (codes == codes[0]).all()):
        return [rows] if len(rows) else []
    if batch.befores is not None:
        codes += batch.befores[rows].astype(np.int64) << 8
    return [rows[codes == code] for code in np.unique(codes).tolist()]


def _outcomes(program: Program, groups: Sequence[Rows]) -> list[Outcome]:
    """A program's outcome for each group; an image before an update goes on where the update behind it does."""
    found: list[Outcome] = []
    for rows in groups:
        if not rows.is_before:
            found.append(program.run(rows))
            continue
        kept = np.concatenate([outcome.numbers for outcome in found]) if found else rows.numbers[:0]
        places = np.flatnonzero(np.isin(rows.numbers + 1, kept))
        if len(places):
            found.append(program.work(rows.take(places.tolist())))
    return found


def _assembled(
    batch: ChangeBatch, tables: list[TableDefinition], worked_on: list[int], parts: Sequence[_Part]
) -> ChangeBatch:
    """The batch that leaves: rows of other tables as they were, and every outcome at its rows' places."""
    done = np.concatenate([part.outcome.numbers for part in parts]) if parts else np.zeros(0, dtype=np.int64)
    table, io_type, start, length, buffer = _columns(batch, parts, len(done))
    known = np.zeros(max(len(batch.tables), int(batch.table.max()) + 1), dtype=np.bool_)
    known[worked_on] = True
    left = known[batch.table]
    others = np.flatnonzero(~left)
    left[done] = False
    left_out = np.flatnonzero(left)
    outside = batch.table[others]
    outside = np.where(outside < len(batch.tables), outside, len(tables))
    rest = np.concatenate([others, left_out])
    order = np.concatenate([done, rest])
    sort = np.argsort(order, kind="stable")
    rows = order[sort]
    io_type = np.concatenate([io_type, batch.io_type[rest]])[sort]
    befores = None if batch.befores is None else batch.befores[rows] & np.isin(io_type, list(OPERATIONS["UPDATES"]))
    return replace(
        batch.take(rows, _pieces(batch, rows)),
        tables=tuple(tables),
        table=np.concatenate([table, outside, np.full(len(left_out), len(tables))]).astype(np.uint16)[sort],
        io_type=io_type,
        start=np.concatenate([start, batch.start[rest]])[sort],
        length=np.concatenate([length, batch.length[rest]])[sort],
        buffer=buffer,
        befores=befores,
    )


def _columns(
    batch: ChangeBatch, parts: Sequence[_Part], count: int
) -> tuple[NDArray[np.uint16], NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64], bytes | bytearray | memoryview]:
    """Table, operation, place and length of every row of the outcomes, and the buffer they lie in."""
    table, io_type = np.empty(count, dtype=np.uint16), np.empty(count, dtype=np.uint8)
    start, length = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    chunks: list[bytes | bytearray | memoryview] = []
    if count < len(batch) or batch.user_tokens is not None or any(part.outcome.data is None for part in parts):
        chunks.append(batch.buffer)
    size, first = sum(map(len, chunks)), 0
    for number, outcome in parts:
        last = first + len(outcome.numbers)
        table[first:last], io_type[first:last] = number, outcome.io_type
        if outcome.data is None:
            start[first:last], length[first:last] = batch.start[outcome.numbers], batch.length[outcome.numbers]
        else:
            data, sizes = outcome.data
            start[first:last], length[first:last] = size + np.cumsum(sizes) - sizes, sizes
            chunks.append(data)
            size += len(data)
        first = last
    unchanged = len(chunks) == 1 and chunks[0] is batch.buffer
    buffer = batch.buffer if unchanged else bytes(chunks[0]) if len(chunks) == 1 else b"".join(chunks)
    return table, io_type, start, length, buffer


def _pieces(batch: ChangeBatch, rows: NDArray[np.int64]) -> tuple[TransactionPiece, ...]:
    """The pieces of the batch over other rows; each row stays in its piece."""
    if len(rows) == len(batch):
        return batch.pieces
    ends = np.array([piece.first + piece.count for piece in batch.pieces], dtype=np.int64)
    borders = [0, *np.searchsorted(rows, ends, "left").tolist()]
    return tuple(
        replace(piece, first=low, count=high - low)
        for piece, low, high in zip(batch.pieces, borders[:-1], borders[1:], strict=True)
    )
