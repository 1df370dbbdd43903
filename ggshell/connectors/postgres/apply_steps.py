"""Converts the rows of a batch to steps: COPY for runs of inserts, arrays for runs of updates and deletes.

A run is a sequence of adjacent rows with the same table and the same operation. Short runs are applied row by row.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import sub
from typing import NamedTuple

import numpy as np

from ggshell.connectors.postgres.apply_wire import ApplyStep
from ggshell.connectors.postgres.row_formats import array_literal, copy_text, runs_of_distinct
from ggshell.connectors.postgres.sequence_steps import sequence_step
from ggshell.connectors.postgres.shapes import TableShape, changed
from ggshell.connectors.postgres.statements import Operation, PostgresStatements
from ggshell.errors import ApplyError
from ggshell.pipeline.apply.target import Refusal, TableMapping, TargetTable
from ggshell.record.change import ChangeBatch
from ggshell.record.fields import LONG_IMAGE, Field, after_images, split_image, values_of, walk
from ggshell.record.image import split_key_update
from ggshell.record.operation import TWO_IMAGES, IoType
from ggshell.types import TableName

BULK_ROWS = 20
"""From this number of rows in a run, one statement for all costs less than one statement per row."""

LARGEST_RUN = 4 << 20
"""A run of more bytes is applied row by row: with values that long, nothing is gained by combining them."""

LONGEST_ARRAY = 1000
"""Maximum rows of one array statement. With more, the planner might scan the whole table."""

MOST_ROWS = 1 << 30
"""Maximum rows of one COPY when no limit is set."""

_ONE_IMAGE = frozenset({IoType.FIELD_COMP, IoType.UPDATE})


class _Images:
    """The data areas of some rows. Their offsets are converted to plain integers once."""

    def __init__(self, batch: ChangeBatch, first: int, last: int) -> None:
        self._buffer = batch.buffer
        self._first = first
        self._starts = batch.start[first:last].tolist()
        self._ends = (batch.start[first:last] + batch.length[first:last]).tolist()

    def __getitem__(self, row: int) -> bytes | memoryview:
        """A copy of the row's data, or a view if it is long."""
        number = row - self._first
        first, last = self._starts[number], self._ends[number]
        if last - first > LONG_IMAGE:
            return memoryview(self._buffer)[first:last]
        return bytes(self._buffer[first:last])

    def sizes(self, first: int, last: int) -> list[int]:
        """The size of each row, in bytes."""
        low, high = first - self._first, last - self._first
        return list(map(sub, self._ends[low:high], self._starts[low:high]))


class _Run(NamedTuple):
    batch: ChangeBatch
    first: int
    last: int
    io_type: int
    statements: PostgresStatements
    images: _Images


def _truncate_name(target: TargetTable, quoted: str) -> str:
    """The table's name for TRUNCATE, with ONLY unless it is partitioned.

    ONLY keeps inheritance children, because the log names every table that was emptied. The rows of a partitioned table
    are in its partitions.
    """
    return quoted if target.partitioned else f"ONLY {quoted}"


def _emptied_check(target: TargetTable, quoted: str) -> ApplyStep:
    """The step that fails if rows of an emptied table remain in inheritance children, where a trigger has stored them.

    TRUNCATE cannot tell them from rows that the source has in children of its own.
    """
    text = f"after TRUNCATE of {target.name}, tables that inherit from it still have rows, which its trigger may have stored"
    refusal = Refusal(text, hint="if these rows are those of the source's table, remove them in the target")
    return ApplyStep(f"SELECT 1 / (NOT EXISTS (SELECT FROM {quoted}))::int", on_failure=refusal)


class StepMaker:
    """Builds steps, for one target transaction at a time, and caches the statements of each mapping."""

    def __init__(self, most_rows: int = MOST_ROWS) -> None:
        """``most_rows``: the maximum number of rows per statement (OPSPERBATCH)."""
        self._most_rows = most_rows
        self._statements: dict[int, PostgresStatements] = {}
        self._described: dict[str, TableShape] = {}
        self._emptied: set[TableName] = set()
        self._touched: set[PostgresStatements] = set()

    @property
    def touched(self) -> dict[str, TableShape]:
        """The tables that the target transaction has touched, with their shapes."""
        return {known.table: known.shape for known in self._touched if known.shape.text}

    def begin(self) -> None:
        """Begin a new target transaction: no row deleted and no table touched yet."""
        self._emptied.clear()
        self._touched.clear()

    def steps(
        self, batch: ChangeBatch, first: int, last: int, mappings: dict[int, TableMapping], *, bulk: bool = True
    ) -> list[ApplyStep]:
        """The steps of rows ``first`` to ``last - 1``.

        Raises ApplyError for a row that no statement can find. Raises TargetChangedError for a table that was described
        twice with different results: statements that are already prepared may use the older description.
        """
        result: list[ApplyStep] = []
        truncated: dict[str, ApplyStep | None] = {}
        images = _Images(batch, first, last)
        for low, high in _runs(batch, first, last):
            mapping = mappings.get(int(batch.table[low]))
            io_type = int(batch.io_type[low])
            if io_type == IoType.PURGE_DATA:
                if mapping is not None:
                    target, quoted = mapping.target, self._statements_of(mapping).table
                    check = _emptied_check(target, quoted) if target.routed and not target.partitioned else None
                    truncated[_truncate_name(target, quoted)] = check
                if truncated and not (high < last and batch.io_type[high] == IoType.PURGE_DATA):
                    # Tables emptied by one statement may refer to each other, so one statement empties them here.
                    result.append(ApplyStep(f"TRUNCATE {', '.join(truncated)}"))
                    result += filter(None, truncated.values())
                    truncated = {}
                continue
            if mapping is not None and io_type == IoType.SEQUENCE_OP:
                result += [sequence_step(mapping.target.name, images[row]) for row in range(low, high)]
            elif mapping is not None:
                self._run(_Run(batch, low, high, io_type, self._statements_of(mapping), images), result, bulk)
        return result

    def replacement(self, batch: ChangeBatch, row: int, mapping: TableMapping) -> list[ApplyStep]:
        """The steps for an update that found no row because its identity columns differ from the source; usually none.

        Raises ApplyError.
        """
        if int(batch.io_type[row]) not in _ONE_IMAGE:
            return []
        images = _Images(batch, row, row + 1)
        operation = self._statements_of(mapping).replacement(split_image(images[row]))
        return (
            [ApplyStep(operation[0], operation[1], affects=1, size=images.sizes(row, row + 1)[0])]
            if operation is not None
            else []
        )

    def _statements_of(self, mapping: TableMapping) -> PostgresStatements:
        # Keyed by identity: hashing a mapping would read all its columns. The statements keep the mapping alive.
        known = self._statements.get(id(mapping))
        if known is None:
            known = self._statements[id(mapping)] = PostgresStatements(mapping)
            if self._described.setdefault(known.table, known.shape) != known.shape:
                raise changed(known.table)
        self._touched.add(known)
        return known

    def _run(self, run: _Run, result: list[ApplyStep], bulk: bool) -> None:
        target = run.statements.mapping.target
        if run.io_type == IoType.DELETE and any(parent in self._emptied for parent in target.cascades):
            # The delete of the parent cascaded to these rows, so a missing row is not an error.
            self._emptied.add(target.name)
            result.extend(step._replace(affects=None) for step in self._singly(run, run.first, run.last))
            return
        if run.io_type == IoType.DELETE:
            self._emptied.add(target.name)
        for first in range(run.first, run.last, self._most_rows):
            part = run._replace(first=first, last=min(first + self._most_rows, run.last))
            fields = self._fields(part) if bulk and part.last - first >= BULK_ROWS else None
            if fields is None or not self._bulk(part, fields, result):
                result.extend(self._singly(part, first, part.last))

    def _fields(self, run: _Run) -> list[Field] | None:
        start, length = run.batch.start[run.first : run.last], run.batch.length[run.first : run.last]
        raw = np.frombuffer(run.batch.buffer, dtype=np.uint8)
        if (start[1:] < start[:-1]).any() or int(length.sum()) > LARGEST_RUN:
            return None
        if run.io_type in TWO_IMAGES:
            mapping = run.statements.mapping
            if run.io_type != IoType.UNIFIED_UPDATE or not mapping.source.key or mapping.key != mapping.source.key:
                return None
            # The key did not change, so the after image, which contains the key, is all that an update needs.
            after = after_images(raw, start, length)
            if after is None:
                return None
            start, length = after
        return walk(raw, start, length)

    def _bulk(self, run: _Run, fields: list[Field], result: list[ApplyStep]) -> bool:
        if run.io_type == IoType.INSERT:
            return self._copy(run, fields, result)
        columns = tuple(field.column for field in fields)
        statements = run.statements
        delete = run.io_type == IoType.DELETE
        text = statements.delete_many(columns) if delete else statements.update_many(columns)
        keys = statements.key_places(columns)
        if text is None or any((fields[place].size < 0).any() for place in keys):
            return False
        values = [values_of(run.batch.buffer, field) for field in fields]
        found = values[keys[0]] if len(keys) == 1 else list(zip(*(values[place] for place in keys), strict=True))
        for low, high in runs_of_distinct(found):
            if high - low < BULK_ROWS:
                result.extend(self._singly(run, run.first + low, run.first + high))
                continue
            for part in range(low, high, LONGEST_ARRAY):
                end = min(part + LONGEST_ARRAY, high)
                arrays = [array_literal(column[part:end]) for column in values]
                result.append(ApplyStep(text, arrays, affects=end - part, size=sum(map(len, arrays))))
        return True

    def _copy(self, run: _Run, fields: list[Field], result: list[ApplyStep]) -> bool:
        copy = run.statements.copy([field.column for field in fields])
        if copy is None:
            return False
        text, kept = copy
        raw = np.frombuffer(run.batch.buffer, dtype=np.uint8)
        result.append(ApplyStep(text, data=copy_text(raw, [fields[place] for place in kept])))
        return True

    def _singly(self, run: _Run, first: int, last: int) -> Iterator[ApplyStep]:
        make = _MAKERS.get(run.io_type)
        if make is None:
            raise ApplyError(f"the trail contains an operation of type {run.io_type}, which cannot be applied")
        affects = None if run.io_type == IoType.INSERT else 1
        for row, size in enumerate(run.images.sizes(first, last), first):
            operation = make(run.statements, run.images[row])
            if operation is not None:
                yield ApplyStep(operation[0], operation[1], None, affects, False, None, size)


def _runs(batch: ChangeBatch, first: int, last: int) -> Iterator[tuple[int, int]]:
    if last - first == 1:
        yield first, last
        return
    table, io_type = batch.table[first:last], batch.io_type[first:last]
    edges = np.flatnonzero((table[1:] != table[:-1]) | (io_type[1:] != io_type[:-1])) + (first + 1)
    low = first
    for high in edges.tolist():
        yield low, high
        low = high
    yield low, last


def _insert(statements: PostgresStatements, data: bytes | memoryview) -> Operation:
    return statements.insert(split_image(data))


def _delete(statements: PostgresStatements, data: bytes | memoryview) -> Operation:
    return statements.delete(split_image(data))


def _update(statements: PostgresStatements, data: bytes | memoryview) -> Operation | None:
    return statements.update(split_image(data))


def _key_update(statements: PostgresStatements, data: bytes | memoryview) -> Operation | None:
    before, after = split_key_update(data)
    return statements.key_update(split_image(before), split_image(after))


_MAKERS = {
    int(IoType.INSERT): _insert,
    int(IoType.DELETE): _delete,
    **dict.fromkeys(map(int, _ONE_IMAGE), _update),
    **dict.fromkeys(map(int, TWO_IMAGES), _key_update),
}
