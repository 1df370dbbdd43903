"""Rows as SQL: one statement a shape (table, operation, columns present), its values as parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import NamedTuple

from ggshell.apply.target import TableMapping
from ggshell.databases.postgres.describe import quote, quote_table
from ggshell.errors import ApplyError
from ggshell.record.fields import Image, Value

Shape = tuple[object, ...]


Values = Sequence[Value]
Operation = tuple[str, Values]
"""A statement and its parameters."""


class Plan(NamedTuple):
    """A statement, and what takes its parameters out of an image's values (None: all, as they stand)."""

    text: str
    take: Callable[[list[Value]], Values] | None


def _plan(text: str, order: Sequence[int], width: int) -> Plan:
    if list(order) == list(range(width)):
        return Plan(text, None)
    if len(order) > 1:
        return Plan(text, itemgetter(*order))
    return Plan(text, lambda values: [values[place] for place in order])


class Statements:
    """Makes the statements of one mapping and remembers them by shape."""

    def __init__(self, mapping: TableMapping) -> None:
        self.mapping = mapping
        self.table = quote_table(mapping.target.name)
        self._key = frozenset(mapping.key)
        self._whole_row = not mapping.single and len(self._key) == len(mapping.source.columns)
        self._plans: dict[Shape, Plan | None] = {}
        self._texts: dict[Shape, str | None] = {}

    def insert(self, image: Image) -> Operation:
        """INSERT of the columns present; identity columns take the source's values."""
        columns, values = image
        plan = self._plan(("insert", columns), lambda: self._insert(columns))
        return _operation(plan, values)

    def delete(self, image: Image) -> Operation:
        """DELETE of exactly the row whose identifying columns the image holds."""
        columns, values = image
        where = self._where_columns(columns, self.mapping.compared_deletes)
        nulls = _nulls(values)
        plan = self._plan(("delete", columns, nulls), lambda: self._delete(columns, where, nulls))
        return _operation(plan, values)

    def update(self, image: Image) -> Operation | None:
        """UPDATE of a row whose key did not change; None when the image holds nothing else."""
        columns, values = image
        nulls = _nulls(values)
        if nulls:
            nulls = frozenset(place for place in nulls if columns[place] in self._key)
        plan = self._plan(("update", columns, nulls), lambda: self._update(columns, columns, 0, nulls, self._key))
        return _operation(plan, values) if plan is not None else None

    def key_update(self, before: Image, after: Image) -> Operation | None:
        """UPDATE of a row that its columns before the change identify."""
        kept = dict(zip(*before, strict=True))
        columns, values = before[0] + after[0], before[1] + after[1]
        nulls = frozenset(index for index in _nulls(values) if index < len(before[0]))
        fixed = frozenset(index for index, value in zip(*after, strict=True) if index in kept and kept[index] == value)
        fixed &= frozenset(
            index for index, column in enumerate(self.mapping.columns) if column and column.identity_always
        )
        shape = ("key update", columns, len(before[0]), nulls, fixed)
        plan = self._plan(shape, lambda: self._update(columns, after[0], len(before[0]), nulls, fixed))
        return _operation(plan, values) if plan is not None else None

    def copy(self, columns: Sequence[int]) -> tuple[str, list[int]] | None:
        """COPY, and which of the columns it takes; None when rows cannot be copied into the table."""
        if not self.mapping.target.bulk:
            return None
        kept = [place for place, index in enumerate(columns) if self.mapping.writable(index)]
        names = ", ".join(quote(self.mapping.column(columns[place]).name) for place in kept)
        return (f"COPY {self.table} ({names}) FROM STDIN", kept) if kept else None

    def update_many(self, columns: tuple[int, ...]) -> str | None:
        """UPDATE of many rows, each column an array of texts; None when the shape does not allow it."""
        return self._text(("update", columns), lambda: self._update_many(columns))

    def delete_many(self, columns: tuple[int, ...]) -> str | None:
        """DELETE of many rows, the key columns among ``columns`` being arrays."""
        return self._text(("delete", columns), lambda: self._delete_many(columns))

    def key_places(self, columns: Sequence[int]) -> list[int]:
        """Where the key's columns stand among others."""
        return [place for place, index in enumerate(columns) if index in self._key]

    def _plan(self, shape: Shape, make: Callable[[], Plan | None]) -> Plan | None:
        try:
            return self._plans[shape]
        except KeyError:
            plan = self._plans[shape] = make()
            return plan

    def _text(self, shape: Shape, make: Callable[[], str | None]) -> str | None:
        if shape not in self._texts:
            self._texts[shape] = make()
        return self._texts[shape]

    def _insert(self, columns: tuple[int, ...]) -> Plan:
        order = tuple(place for place, index in enumerate(columns) if self.mapping.writable(index))
        names = ", ".join(quote(self.mapping.column(columns[place]).name) for place in order)
        marks = ", ".join(f"${number}" for number in range(1, len(order) + 1))
        what = f"({names}) OVERRIDING SYSTEM VALUE VALUES ({marks})" if order else "DEFAULT VALUES"
        return _plan(f"INSERT INTO {self.table} {what}", order, len(columns))

    def _delete(self, columns: tuple[int, ...], where: list[int], nulls: frozenset[int]) -> Plan:
        condition, order = self._where(columns, where, nulls, 1)
        return _plan(f"DELETE FROM {self.table} WHERE {condition}", order, len(columns))

    def _update(
        self, columns: tuple[int, ...], after: tuple[int, ...], first: int, nulls: frozenset[int], kept: frozenset[int]
    ) -> Plan | None:
        """``first``: where the image after begins among ``columns``; ``kept``: columns of it that are not set.

        A column that nobody may update is compared instead, so that a difference shows.
        """
        sets, order, compared = [], [], []
        for place, index in enumerate(after, first):
            if index in kept or not self.mapping.writable(index):
                continue
            column = self.mapping.column(index)
            if column.identity_always and index not in columns[:first]:
                compared.append((place, column))
                continue
            order.append(place)
            sets.append(f"{quote(column.name)} = ${len(order)}")
        if not sets:
            return None
        identifying = columns[:first] if first else columns
        compared_too = self.mapping.compared_updates if first else _NONE
        condition, more = self._where(columns, self._where_columns(identifying, compared_too), nulls, len(order) + 1)
        order += more
        for place, column in compared:
            order.append(place)
            condition += f" AND {quote(column.name)} IS NOT DISTINCT FROM ${len(order)}"
        return _plan(f"UPDATE {self.table} SET {', '.join(sets)} WHERE {condition}", order, len(columns))

    def _where_columns(self, columns: tuple[int, ...], compared: frozenset[int]) -> list[int]:
        """Where the columns that find a row stand in an image, and those that must be as they were."""
        places = [place for place, index in enumerate(columns) if index in self._key and self.mapping.columns[index]]
        if len(places) < len(self._key) and not self._whole_row:
            lacking = self._key - set(columns)
            names = ", ".join(self.mapping.source.columns[index].name for index in sorted(lacking))
            raise ApplyError(f"the trail's row lacks {names}, which finds rows of {self.mapping.target.name}")
        return places + [place for place, index in enumerate(columns) if index in compared]

    def _where(
        self, columns: tuple[int, ...], where: list[int], nulls: frozenset[int], number: int
    ) -> tuple[str, list[int]]:
        """The condition that finds one row; where several may be equal, exactly one of them."""
        parts, order = [], []
        for place in where:
            column = self.mapping.column(columns[place])
            name = quote(column.name)
            if place in nulls:
                parts.append(f"{name} IS NULL")
                continue
            order.append(place)
            mark = f"${number}"
            number += 1
            if column.comparable and (column.exact or not self._whole_row):
                parts.append(f"{name} = {mark}")
            else:
                # A text keeps its column's collation, by which others may be equal to it.
                parts.append(f'{name}::text COLLATE "C" = {mark}::{column.base_type or column.type_name}::text')
        condition = " AND ".join(parts) or "true"
        if self.mapping.single and not any(place in nulls for place in where):
            return condition, order
        if self.mapping.target.partitioned:
            one = f"SELECT tableoid, ctid FROM {self.table} WHERE {condition} LIMIT 1"
            return f"(tableoid, ctid) IN ({one})", order
        return f"ctid = (SELECT ctid FROM {self.table} WHERE {condition} LIMIT 1)", order

    def _update_many(self, columns: tuple[int, ...]) -> str | None:
        keys = self.key_places(columns)
        others = [place for place in range(len(columns)) if place not in keys and self.mapping.writable(columns[place])]
        if not self._many(keys) or not others:
            return None
        if any(self.mapping.column(columns[place]).identity_always for place in others):
            return None
        sets = ", ".join(
            f"{quote(self.mapping.column(columns[place]).name)} = {self._cast(columns, place)}" for place in others
        )
        return f"UPDATE {self.table} AS t SET {sets} FROM {_arrays(len(columns))} WHERE {self._joined(columns, keys)}"

    def _delete_many(self, columns: tuple[int, ...]) -> str | None:
        keys = self.key_places(columns)
        if not self._many(keys):
            return None
        return f"DELETE FROM {self.table} AS t USING {_arrays(len(columns))} WHERE {self._joined(columns, keys)}"

    def _many(self, keys: list[int]) -> bool:
        compares = self.mapping.compared_updates or self.mapping.compared_deletes
        return self.mapping.single and len(keys) == len(self._key) and not compares

    def _joined(self, columns: tuple[int, ...], keys: Iterable[int]) -> str:
        return " AND ".join(
            f"t.{quote(self.mapping.column(columns[place]).name)} = {self._cast(columns, place)}" for place in keys
        )

    def _cast(self, columns: tuple[int, ...], place: int) -> str:
        """An element as the column's type, but without its length, which only an assignment may enforce."""
        column = self.mapping.column(columns[place])
        return f"v.c{place}::{column.base_type or column.type_name}"


def _arrays(number: int) -> str:
    marks = ", ".join(f"${place + 1}::text[]" for place in range(number))
    names = ", ".join(f"c{place}" for place in range(number))
    return f"unnest({marks}) AS v({names})"


def _nulls(values: list[Value]) -> frozenset[int]:
    if None not in values:
        return _NONE
    return frozenset(place for place, value in enumerate(values) if value is None)


_NONE: frozenset[int] = frozenset()


def _operation(plan: Plan | None, values: list[Value]) -> Operation:
    if plan is None:
        raise ValueError("a shape without a statement")
    return plan.text, values if plan.take is None else plan.take(values)
