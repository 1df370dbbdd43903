"""Folds changes into as few statements as possible, for targets where a statement costs more than a row.

Changes of rows with different keys may be reordered if rows of the table are related by nothing but the key. Therefore
each change goes into the earliest wave after the previous change of the same key, and a wave is one statement per kind
and shape. An update of a row that a collected insert or update writes is merged into that one. A row whose key
changes is deleted and inserted, if its image is complete. If more than the key relates rows, only adjacent changes are
combined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from enum import IntEnum
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ggshell.errors import ApplyError
from ggshell.pipeline.apply.target import TableMapping
from ggshell.record.change import ChangeBatch
from ggshell.record.families import family
from ggshell.record.fields import Image, Value, split_image, values_of, walk
from ggshell.record.operation import TWO_IMAGES, IoType

Key = tuple[object, ...]
Shape = tuple[int, tuple[int, ...]]
"""A kind and the columns present."""


class StatementRows(NamedTuple):
    """The work of one statement: rows of one shape with different keys, or a single change."""

    mapping: TableMapping
    kind: ChangeKind
    columns: tuple[int, ...]
    rows: list[list[Value]]
    alone: Change | None = None


def statement_rows(changes: Sequence[Change]) -> Iterator[StatementRows]:
    """The statements for changes, in an order that produces the same rows."""
    tables: dict[object, list[Change]] = {}
    for change in changes:
        tables.setdefault(change.mapping.target.name, []).append(change)
    if any(of_one[0].mapping.target.foreign or of_one[0].mapping.target.referenced for of_one in tables.values()):
        yield from _runs(changes)
        return
    for of_one in tables.values():
        yield from _folded(of_one) if _foldable(of_one) else _runs(of_one)


def _foldable(changes: Sequence[Change]) -> bool:
    """Whether rows of a table are related by their key alone, and equal keys can be recognized by their texts."""
    mapping = changes[0].mapping
    if any(change.mapping is not mapping for change in changes):
        return False
    if not mapping.single or mapping.target.opaque or mapping.compared_updates or mapping.compared_deletes:
        return False
    columns = [mapping.columns[index] for index in mapping.key]
    names = {column.name for column in columns if column is not None}
    compares_as_text = all(
        column is not None and (column.exact or _is_number(mapping, index))
        for index, column in zip(mapping.key, columns, strict=True)
    )
    return compares_as_text and mapping.target.unique == (frozenset(names),)


def _is_number(mapping: TableMapping, index: int) -> bool:
    column = mapping.columns[index]
    return family(mapping.source.columns[index].type_name) == "number" and (
        column is not None and column.base_type.upper() == "DECIMAL"
    )


class _Latest(NamedTuple):
    """The last change of a key: its wave, and the values it writes (a list that later updates may modify)."""

    wave: int
    kind: ChangeKind
    columns: tuple[int, ...]
    values: list[Value]


class Fold:
    """Collects changes of one table until one cannot be combined. ``take`` returns what was collected."""

    def __init__(self, mapping: TableMapping) -> None:
        self._mapping = mapping
        self._waves: list[dict[Shape, list[list[Value]]]] = []
        self._latest: dict[Key, _Latest] = {}
        self._readers: dict[tuple[int, ...], Callable[[list[Value]], Key | None]] = {}

    def add(self, change: Change) -> bool:
        """Add a change. Return False if it must be applied alone."""
        if change.kind is ChangeKind.MOVE and self._whole(change.columns):
            gone = Change(change.mapping, ChangeKind.DELETE, *change.before)
            come = Change(change.mapping, ChangeKind.INSERT, change.columns, change.values)
            return self._key(gone) is not None and self._key(come) is not None and self.add(gone) and self.add(come)
        if change.kind not in (ChangeKind.INSERT, ChangeKind.UPDATE, ChangeKind.DELETE):
            return False
        key = self._key(change)
        if key is None:
            return False
        _, kind, columns, values, _ = change
        before = self._latest.get(key)
        if before is not None and kind is ChangeKind.UPDATE and before.kind is not ChangeKind.DELETE:
            if columns == before.columns:
                before.values[:] = values
                return True
            if set(columns) <= set(before.columns):
                places = {index: place for place, index in enumerate(before.columns)}
                for index, value in zip(columns, values, strict=True):
                    before.values[places[index]] = value
                return True
        wave = 0 if before is None else before.wave + 1
        self._latest[key] = _Latest(wave, kind, columns, values)
        if wave == len(self._waves):
            self._waves.append({})
        self._waves[wave].setdefault((kind, columns), []).append(values)
        return True

    def take(self) -> Iterator[StatementRows]:
        """Return what was collected, wave by wave, and start empty."""
        waves, self._waves, self._latest = self._waves, [], {}
        for wave in waves:
            for (kind, columns), rows in wave.items():
                yield StatementRows(self._mapping, ChangeKind(kind), columns, rows)

    def _whole(self, columns: tuple[int, ...]) -> bool:
        """Whether an image has all columns of the target, so that the row can be inserted again."""
        there = {column.name for index in columns if (column := self._mapping.columns[index]) is not None}
        return all(column.name in there for column in self._mapping.target.columns if column.writable)

    def _key(self, change: Change) -> Key | None:
        """The key of the changed row. None if it is not known or contains NULL."""
        reader = self._readers.get(change.columns)
        if reader is None:
            reader = self._readers[change.columns] = _key_reader(self._mapping, change.columns)
        return reader(change.values)


def _folded(changes: Sequence[Change]) -> Iterator[StatementRows]:
    inserts = _distinct_inserts(changes)
    if inserts is not None:
        yield inserts
        return
    fold = Fold(changes[0].mapping)
    for change in changes:
        if not fold.add(change):
            yield from fold.take()
            yield StatementRows(change.mapping, change.kind, change.columns, [change.values], change)
    yield from fold.take()


def _distinct_inserts(changes: Sequence[Change]) -> StatementRows | None:
    """Inserts of the same columns with different keys as one statement; None for other changes."""
    mapping, kind, columns, *_ = changes[0]
    if kind is not ChangeKind.INSERT or any(each.kind is not kind or each.columns != columns for each in changes):
        return None
    rows = [each.values for each in changes]
    keys = set(map(_key_reader(mapping, columns), rows))
    return None if None in keys or len(keys) < len(rows) else StatementRows(mapping, kind, columns, rows)


def _runs(changes: Sequence[Change]) -> Iterator[StatementRows]:
    """Combine adjacent changes of the same table, kind and columns. A run of updates or deletes repeats no key."""
    run: StatementRows | None = None
    seen: set[Key] = set()
    for change in changes:
        key: Key | None = ()
        if change.kind is not ChangeKind.INSERT:
            key = _key_reader(change.mapping, change.columns)(change.values) if _many(change) else None
        if run is not None and (
            key is None
            or key in seen
            or (change.mapping is not run.mapping or change.kind is not run.kind or change.columns != run.columns)
        ):
            yield run
            run = None
        if key is None:
            yield StatementRows(change.mapping, change.kind, change.columns, [change.values], change)
            continue
        if run is None:
            run = StatementRows(change.mapping, change.kind, change.columns, [])
            seen.clear()
        run.rows.append(change.values)
        if change.kind is not ChangeKind.INSERT:
            seen.add(key)
    if run is not None:
        yield run


def _many(change: Change) -> bool:
    """Whether one statement can find many such rows."""
    mapping = change.mapping
    compares = mapping.compared_updates or mapping.compared_deletes
    return change.kind in (ChangeKind.UPDATE, ChangeKind.DELETE) and mapping.single and not compares


def _key_reader(mapping: TableMapping, columns: tuple[int, ...]) -> Callable[[list[Value]], Key | None]:
    """The function that reads the key from a row's values."""
    wanted = sorted(mapping.key)
    if any(index not in columns or mapping.columns[index] is None for index in wanted):
        return lambda _: None
    places = [columns.index(index) for index in wanted]
    numbers = [_is_number(mapping, index) for index in wanted]
    if not any(numbers):
        if len(places) == 1:
            place = places[0]
            return lambda values: None if values[place] is None else (values[place],)
        take = itemgetter(*places)

        def several(values: list[Value]) -> Key | None:
            key: Key = take(values)
            return None if None in key else key

        return several
    return lambda values: _number_key([values[place] for place in places], numbers)


def _number_key(values: Sequence[Value], numbers: Sequence[bool]) -> Key | None:
    """A key that contains numbers, which may be written in several ways."""
    key: list[object] = []
    for value, number in zip(values, numbers, strict=True):
        if value is None:
            return None
        try:
            key.append(Decimal(value.decode()) if number else value)
        except InvalidOperation:
            return None
    return tuple(key)


# From the rows of a batch to changes: what each row does, and its values.


class ChangeKind(IntEnum):
    """What a change does. MOVE finds its row by the before image."""

    INSERT = 1
    UPDATE = 2
    DELETE = 3
    MOVE = 4
    TRUNCATE = 5


_KINDS = {
    int(IoType.INSERT): ChangeKind.INSERT,
    int(IoType.DELETE): ChangeKind.DELETE,
    int(IoType.UPDATE): ChangeKind.UPDATE,
    int(IoType.FIELD_COMP): ChangeKind.UPDATE,
    int(IoType.PURGE_DATA): ChangeKind.TRUNCATE,
    **dict.fromkeys(TWO_IMAGES, ChangeKind.MOVE),
}
FEW_ROWS: Final = 16
"""Up to so many rows of a table are split one by one: array operations cost as much as some thirty rows."""
_NO_IMAGE: Image = ((), [])


class Change(NamedTuple):
    """The change of one row: the columns present and their values. A MOVE finds its row by the image ``before``."""

    mapping: TableMapping
    kind: ChangeKind
    columns: tuple[int, ...]
    values: list[Value]
    before: Image = _NO_IMAGE


def changes(batch: ChangeBatch, first: int, last: int, mappings: dict[int, TableMapping]) -> list[Change]:
    """The changes of the rows ``first`` to ``last - 1`` whose tables are mapped, in order. Raises ApplyError."""
    found: list[Change | None] = [None] * (last - first)
    sort = batch.table[first:last].astype(np.int64) << 8 | batch.io_type[first:last]
    for number in np.unique(sort).tolist():
        mapping = mappings.get(number >> 8)
        if mapping is not None:
            rows = np.flatnonzero(sort == number) + first
            for row, change in zip(rows.tolist(), _alike(batch, rows, mapping, number & 0xFF), strict=True):
                found[row - first] = change
    return [change for change in found if change is not None]


def _alike(batch: ChangeBatch, rows: NDArray[np.int64], mapping: TableMapping, io_type: int) -> Iterator[Change]:
    """The changes of rows with the same table and operation."""
    kind = _KINDS.get(io_type)
    if kind is None:
        raise ApplyError(f"the trail contains an operation of type {io_type}, which cannot be applied")
    if kind is ChangeKind.TRUNCATE:
        yield from (Change(mapping, kind, (), []) for _ in rows)
        return
    if kind is ChangeKind.MOVE:
        for row in rows.tolist():
            yield _move(mapping, batch.images(row), io_type)
        return
    few = len(rows) <= FEW_ROWS
    fields = None if few else walk(np.frombuffer(batch.buffer, dtype=np.uint8), batch.start[rows], batch.length[rows])
    if fields is None:
        for row in rows.tolist():
            yield Change(mapping, kind, *split_image(batch.data(row)))
        return
    columns = tuple(field.column for field in fields)
    each: Sequence[list[Value]] = [values_of(batch.buffer, field) for field in fields]
    for values in zip(*each, strict=True):
        yield Change(mapping, kind, columns, list(values))


def _move(mapping: TableMapping, images: tuple[bytes, bytes], io_type: int) -> Change:
    before, after = (split_image(image) for image in images)
    compares = mapping.compared_updates
    if io_type == IoType.UNIFIED_UPDATE and mapping.source.key and mapping.key == mapping.source.key and not compares:
        # The key did not change, so the after image, which contains the key, is all that an update needs.
        return Change(mapping, ChangeKind.UPDATE, *after)
    return Change(mapping, ChangeKind.MOVE, *after, before)
