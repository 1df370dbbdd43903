"""Runs programs on batches: returns a batch with other rows, images and tables.

A row that is dropped belongs to no table (its table number is past the last one). So every piece of a transaction keeps its
rows, and no index moves. The clauses for a table are compiled when the table first appears.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ggshell.pipeline.transform.program import Program, ProgramResult
from ggshell.pipeline.transform.rows import Rows
from ggshell.record.change import ChangeBatch
from ggshell.record.definition import TableDefinition
from ggshell.record.operation import OPERATIONS
from ggshell.record.transaction import TransactionPiece

Programs = Sequence[Program] | None
"""The programs for a table's rows, one per statement. None: the rows stay unchanged."""
Raised = Callable[[ChangeBatch, int, int], Programs]
"""Called for a row that a FILTER with RAISEERROR refuses (batch, row, number).

Returns the programs to run for it instead.
"""


class _Part(NamedTuple):
    """An outcome and the number of its table."""

    table: int
    outcome: ProgramResult


class Stage:
    """Runs programs on batches.

    ``plan`` returns the programs of a table; ``raised`` those for rows that RAISEERROR names.
    """

    def __init__(self, plan: Callable[[TableDefinition], Programs], raised: Raised | None = None) -> None:
        self._plan = plan
        self._raised = raised
        self._known: dict[TableDefinition, Programs] = {}

    def forget(self) -> None:
        """Forget the compiled programs, as tables may have changed."""
        self._known.clear()

    def knows(self, table: TableDefinition) -> bool:
        """Whether the table is already compiled."""
        return table in self._known

    def run(self, batch: ChangeBatch) -> ChangeBatch:
        """Process a batch. Returns the same batch if no statement applies to its tables. Raises GgsError."""
        plans = {
            number: programs
            for number, table in enumerate(batch.tables)
            if (programs := self._programs_of(table)) is not None
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
        for row, program in self._error_programs(batch, list(parts)):
            parts.append(_Part(len(tables), program.run(Rows(batch, np.array([row], dtype=np.int64)))))
            tables.append(program.definition)
        return _assembled(batch, tables, list(plans), parts)

    def _programs_of(self, table: TableDefinition) -> Programs:
        if table not in self._known:
            self._known[table] = self._plan(table) if table.columns else None  # DDL records have no columns
        return self._known[table]

    def _error_programs(self, batch: ChangeBatch, parts: Sequence[_Part]) -> Iterator[tuple[int, Program]]:
        """The rows that RAISEERROR names, each with the programs to run for it."""
        if self._raised is None:
            return
        for row, error in sorted(pair for part in parts for pair in part.outcome.raised):
            for program in self._raised(batch, row, error) or ():
                yield row, program


def by_operation(batch: ChangeBatch, rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Split rows of one table by operation. Separate before images come after the updates."""
    codes = batch.io_type[rows].astype(np.int64)
    if not len(rows) or (batch.befores is None and (codes == codes[0]).all()):
        return [rows] if len(rows) else []
    if batch.befores is not None:
        codes += batch.befores[rows].astype(np.int64) << 8
    return [rows[codes == code] for code in np.unique(codes).tolist()]


def _outcomes(program: Program, groups: Sequence[Rows]) -> list[ProgramResult]:
    """A program's outcome for each group. A before image is kept if the update after it is kept."""
    found: list[ProgramResult] = []
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
    """The resulting batch: rows of other tables unchanged, and every outcome at the positions of its rows."""
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
    """Table, operation, start and length of every row of the outcomes, and the buffer that contains them."""
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


def _pieces(batch: ChangeBatch, rows: NDArray[np.int64]) -> Sequence[TransactionPiece]:
    """The pieces of the batch, adjusted to other rows; each row stays in its piece."""
    if len(rows) == len(batch):
        return batch.pieces
    ends = np.array([piece.first + piece.count for piece in batch.pieces], dtype=np.int64)
    borders = [0, *np.searchsorted(rows, ends, "left").tolist()]
    return tuple(
        replace(piece, first=low, count=high - low)
        for piece, low, high in zip(batch.pieces, borders[:-1], borders[1:], strict=True)
    )
