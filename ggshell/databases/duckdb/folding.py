"""Changes in as few statements as possible: what a statement of an analytical engine costs hardly depends on its rows.

Changes of rows with different keys may change places when nothing but the key joins rows of the table.  So each change goes
into the earliest wave behind the one before it on the same key, and a wave is one statement for each kind and shape.  An
update of a row that an earlier insert or update of the same wave writes is folded into that; a row that moves to another key
is deleted and inserted, when its image is whole.  Where more than the key joins
rows, only what stands together goes together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from operator import itemgetter
from typing import NamedTuple

from ggshell.apply.target import TableMapping
from ggshell.databases.duckdb.changes import Change, Kind
from ggshell.record.families import family
from ggshell.record.fields import Value

Key = tuple[object, ...]
Shape = tuple[int, tuple[int, ...]]
"""A kind and the columns present."""


class Work(NamedTuple):
    """What one statement does: rows of one shape with different keys, or a change that goes alone."""

    mapping: TableMapping
    kind: Kind
    columns: tuple[int, ...]
    rows: list[list[Value]]
    alone: Change | None = None


def works(changes: Sequence[Change]) -> Iterator[Work]:
    """The statements of changes, in an order that gives the same rows."""
    tables: dict[object, list[Change]] = {}
    for change in changes:
        tables.setdefault(change.mapping.target.name, []).append(change)
    if any(of_one[0].mapping.target.foreign or of_one[0].mapping.target.referenced for of_one in tables.values()):
        yield from _runs(changes)
        return
    for of_one in tables.values():
        yield from _folded(of_one) if _foldable(of_one) else _runs(of_one)


def _foldable(changes: Sequence[Change]) -> bool:
    """Whether rows of a table are joined by their key and nothing else, and equal keys can be told by their texts."""
    mapping = changes[0].mapping
    if any(change.mapping is not mapping for change in changes):
        return False
    if not mapping.single or mapping.target.opaque or mapping.compared_updates or mapping.compared_deletes:
        return False
    columns = [mapping.columns[index] for index in mapping.key]
    names = {column.name for column in columns if column is not None}
    told = all(
        column is not None and (column.exact or _is_number(mapping, index))
        for index, column in zip(mapping.key, columns, strict=True)
    )
    return told and mapping.target.unique == (frozenset(names),)


def _is_number(mapping: TableMapping, index: int) -> bool:
    column = mapping.columns[index]
    return family(mapping.source.columns[index].type_name) == "number" and (
        column is not None and column.base_type.upper() == "DECIMAL"
    )


class _Latest(NamedTuple):
    """The last change of a key: its wave, and what it writes (a list that later updates may change)."""

    wave: int
    kind: Kind
    columns: tuple[int, ...]
    values: list[Value]


class Fold:
    """Gathers changes of one table until something stands in the way; ``take`` gives what has gathered."""

    def __init__(self, mapping: TableMapping) -> None:
        self._mapping = mapping
        self._waves: list[dict[Shape, list[list[Value]]]] = []
        self._latest: dict[Key, _Latest] = {}
        self._readers: dict[tuple[int, ...], Callable[[list[Value]], Key | None]] = {}

    def add(self, change: Change) -> bool:
        """Take a change in; false when it must go alone."""
        if change.kind is Kind.MOVE and self._whole(change.columns):
            gone = Change(change.mapping, Kind.DELETE, *change.before)
            come = Change(change.mapping, Kind.INSERT, change.columns, change.values)
            return self._key(gone) is not None and self._key(come) is not None and self.add(gone) and self.add(come)
        if change.kind not in (Kind.INSERT, Kind.UPDATE, Kind.DELETE):
            return False
        key = self._key(change)
        if key is None:
            return False
        _, kind, columns, values, _ = change
        before = self._latest.get(key)
        if before is not None and kind is Kind.UPDATE and before.kind is not Kind.DELETE:
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

    def take(self) -> Iterator[Work]:
        """What has gathered, wave by wave; then nothing is left."""
        waves, self._waves, self._latest = self._waves, [], {}
        for wave in waves:
            for (kind, columns), rows in wave.items():
                yield Work(self._mapping, Kind(kind), columns, rows)

    def _whole(self, columns: tuple[int, ...]) -> bool:
        """Whether an image has all of the target's columns, so that its row can be made anew."""
        there = {column.name for index in columns if (column := self._mapping.columns[index]) is not None}
        return all(column.name in there for column in self._mapping.target.columns if column.writable)

    def _key(self, change: Change) -> Key | None:
        """What tells the row from others; None when that is not known, or NULL."""
        reader = self._readers.get(change.columns)
        if reader is None:
            reader = self._readers[change.columns] = _key_reader(self._mapping, change.columns)
        return reader(change.values)


def _folded(changes: Sequence[Change]) -> Iterator[Work]:
    fold = Fold(changes[0].mapping)
    for change in changes:
        if not fold.add(change):
            yield from fold.take()
            yield Work(change.mapping, change.kind, change.columns, [change.values], change)
    yield from fold.take()


def _runs(changes: Sequence[Change]) -> Iterator[Work]:
    """What stands together: the same table, kind and columns; of updates and deletes no key twice."""
    run: Work | None = None
    seen: set[Key] = set()
    for change in changes:
        key: Key | None = ()
        if change.kind is not Kind.INSERT:
            key = _key_reader(change.mapping, change.columns)(change.values) if _many(change) else None
        if run is not None and (
            key is None
            or key in seen
            or (change.mapping is not run.mapping or change.kind is not run.kind or change.columns != run.columns)
        ):
            yield run
            run = None
        if key is None:
            yield Work(change.mapping, change.kind, change.columns, [change.values], change)
            continue
        if run is None:
            run = Work(change.mapping, change.kind, change.columns, [])
            seen.clear()
        run.rows.append(change.values)
        if change.kind is not Kind.INSERT:
            seen.add(key)
    if run is not None:
        yield run


def _many(change: Change) -> bool:
    """Whether one statement may find many such rows."""
    mapping = change.mapping
    compares = mapping.compared_updates or mapping.compared_deletes
    return change.kind in (Kind.UPDATE, Kind.DELETE) and mapping.single and not compares


def _key_reader(mapping: TableMapping, columns: tuple[int, ...]) -> Callable[[list[Value]], Key | None]:
    """What reads the key out of a row's values."""
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
    """A key with numbers in it, which may be written in several ways."""
    key: list[object] = []
    for value, number in zip(values, numbers, strict=True):
        if value is None:
            return None
        try:
            key.append(Decimal(value.decode()) if number else value)
        except InvalidOperation:
            return None
    return tuple(key)
