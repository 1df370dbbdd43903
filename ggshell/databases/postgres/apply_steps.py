"""Rows of a batch as steps for the wire: COPY for runs of inserts, arrays for runs of updates and deletes, else one by one.

A run is what stands together: the same table, the same operation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ggshell.apply.target import TableMapping
from ggshell.databases.postgres.apply_wire import Step
from ggshell.databases.postgres.batch_rows import array_literal, runs_of_distinct
from ggshell.databases.postgres.copy_rows import copy_text
from ggshell.databases.postgres.describe import quote_table
from ggshell.databases.postgres.statements import Operation, Statements
from ggshell.errors import ApplyError
from ggshell.record.change import ChangeBatch
from ggshell.record.fields import Field, after_images, split_image, values_of, walk
from ggshell.record.image import split_key_update
from ggshell.record.operation import TWO_IMAGES, IoType
from ggshell.types import TableName

BULK_ROWS = 20
"""From this many rows in a run on, one statement for all costs less than one for each."""

LARGEST_RUN = 4 << 20
"""Bytes of a run beyond which it goes row by row: its values are so long that nothing is won together."""

LONGEST_ARRAY = 1000
"""Rows of one array statement: the planner must not take so many for the whole table."""

MOST_ROWS = 1 << 30
"""Rows of one COPY where nobody sets a limit."""

_ONE_IMAGE = frozenset({IoType.FIELD_COMP, IoType.UPDATE})


class _Images:
    """The data areas of some rows; their places as plain integers, once for all."""

    def __init__(self, batch: ChangeBatch, first: int, last: int) -> None:
        self._buffer = batch.buffer
        self._first = first
        self._starts = batch.start[first:last].tolist()
        self._ends = (batch.start[first:last] + batch.length[first:last]).tolist()

    def __getitem__(self, row: int) -> bytes:
        number = row - self._first
        return bytes(self._buffer[self._starts[number] : self._ends[number]])


class _Run(NamedTuple):
    batch: ChangeBatch
    first: int
    last: int
    io_type: int
    statements: Statements
    images: _Images


class StepMaker:
    """Makes steps and remembers each mapping's statements; one target transaction after the other."""

    def __init__(self, most_rows: int = MOST_ROWS) -> None:
        """``most_rows``: of one statement (OPSPERBATCH)."""
        self._most_rows = most_rows
        self._statements: dict[int, Statements] = {}
        self._emptied: set[TableName] = set()

    def begin(self) -> None:
        """A new target transaction: nothing was deleted in it yet."""
        self._emptied.clear()

    def steps(
        self, batch: ChangeBatch, first: int, last: int, mappings: dict[int, TableMapping], *, bulk: bool = True
    ) -> list[Step]:
        """The steps of rows ``first`` to ``last - 1``.  Raises ApplyError for a row that no statement can find."""
        result: list[Step] = []
        truncated: dict[str, None] = {}
        images = _Images(batch, first, last)
        for low, high in _runs(batch, first, last):
            mapping = mappings.get(int(batch.table[low]))
            io_type = int(batch.io_type[low])
            if io_type == IoType.PURGE_DATA:
                if mapping is not None:
                    truncated[quote_table(mapping.target.name)] = None
                if truncated and not (high < last and batch.io_type[high] == IoType.PURGE_DATA):
                    # Tables emptied by one statement may refer to each other, so they must be emptied by one again.
                    result.append(Step(f"TRUNCATE {', '.join(truncated)}"))
                    truncated = {}
                continue
            if mapping is not None:
                self._run(_Run(batch, low, high, io_type, self._of(mapping), images), result, bulk)
        return result

    def _of(self, mapping: TableMapping) -> Statements:
        # Keyed by identity: hashing a mapping would read all its columns, and the statements keep it alive.
        known = self._statements.get(id(mapping))
        if known is None:
            known = self._statements[id(mapping)] = Statements(mapping)
        return known

    def _run(self, run: _Run, result: list[Step], bulk: bool) -> None:
        target = run.statements.mapping.target
        if run.io_type == IoType.DELETE and any(parent in self._emptied for parent in target.cascades):
            # The deleted parent took its rows along: those that are gone are no error.
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
            # The key did not change: the image after, which has it, is all that an update needs.
            after = after_images(raw, start, length)
            if after is None:
                return None
            start, length = after
        return walk(raw, start, length)

    def _bulk(self, run: _Run, fields: list[Field], result: list[Step]) -> bool:
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
                result.append(Step(text, arrays, affects=end - part))
        return True

    def _copy(self, run: _Run, fields: list[Field], result: list[Step]) -> bool:
        copy = run.statements.copy([field.column for field in fields])
        if copy is None:
            return False
        text, kept = copy
        raw = np.frombuffer(run.batch.buffer, dtype=np.uint8)
        result.append(Step(text, data=copy_text(raw, [fields[place] for place in kept])))
        return True

    def _singly(self, run: _Run, first: int, last: int) -> Iterator[Step]:
        make = _MAKERS.get(run.io_type)
        if make is None:
            raise ApplyError(f"the trail holds an operation of type {run.io_type}, which cannot be applied")
        affects = None if run.io_type == IoType.INSERT else 1
        for row in range(first, last):
            operation = make(run.statements, run.images[row])
            if operation is not None:
                yield Step(operation[0], operation[1], None, affects)


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


def _insert(statements: Statements, data: bytes) -> Operation:
    return statements.insert(split_image(data))


def _delete(statements: Statements, data: bytes) -> Operation:
    return statements.delete(split_image(data))


def _update(statements: Statements, data: bytes) -> Operation | None:
    return statements.update(split_image(data))


def _key_update(statements: Statements, data: bytes) -> Operation | None:
    before, after = split_key_update(data)
    return statements.key_update(split_image(bytes(before)), split_image(bytes(after)))


_MAKERS = {
    int(IoType.INSERT): _insert,
    int(IoType.DELETE): _delete,
    **dict.fromkeys(map(int, _ONE_IMAGE), _update),
    **dict.fromkeys(map(int, TWO_IMAGES), _key_update),
}
