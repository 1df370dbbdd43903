"""Rows as SQL: one statement per shape (table, operation, columns present), with the values as parameters."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import NamedTuple

from ggshell.connectors.postgres import shapes
from ggshell.connectors.postgres.target_tables import own_rows
from ggshell.errors import ApplyError
from ggshell.pipeline.apply.row_search import RowSearch
from ggshell.pipeline.apply.target import TableMapping
from ggshell.record.fields import Image, Value
from ggshell.types import quote, quote_table

Shape = tuple[object, ...]


Values = Sequence[Value]
Operation = tuple[str, Values]
"""A statement and its parameters."""


class PreparedPlan(NamedTuple):
    """A statement, and the function that takes its parameters from an image's values (None: all values, in order)."""

    text: str
    take: Callable[[list[Value]], Values] | None


def _plan(text: str, order: Sequence[int], width: int) -> PreparedPlan:
    if list(order) == list(range(width)):
        return PreparedPlan(text, None)
    if len(order) > 1:
        return PreparedPlan(text, itemgetter(*order))
    return PreparedPlan(text, lambda values: [values[place] for place in order])


class PostgresStatements:
    """Builds the statements of one mapping and caches them by shape."""

    def __init__(self, mapping: TableMapping) -> None:
        self.mapping = mapping
        self.table = quote_table(mapping.target.name)
        self._rows = own_rows(mapping.target)
        columns = mapping.target.columns
        # Whether a column is generated, or may not be updated, can change without a change of the types.
        typed = bool(columns) and all(column.writable and not column.identity_always for column in columns)
        self.shape = shapes.TableShape(mapping.target.shape, typed)
        self._search = RowSearch(mapping)
        self._key = self._search.key
        self._always = frozenset(
            index for index, column in enumerate(mapping.columns) if column is not None and column.identity_always
        )
        self._plans: dict[Shape, PreparedPlan | None] = {}
        self._texts: dict[Shape, str | None] = {}

    def insert(self, image: Image) -> Operation:
        """INSERT of the columns present. Identity columns take the values of the source."""
        columns, values = image
        plan = self._plan(("insert", columns), lambda: self._insert(columns))
        return _operation(plan, values)

    def delete(self, image: Image) -> Operation:
        """DELETE of exactly the row whose identifying columns are in the image."""
        columns, values = image
        nulls = _nulls(values)
        plan = self._plan(("delete", columns, nulls), lambda: self._delete(columns, nulls))
        return _operation(plan, values)

    def update(self, image: Image) -> Operation | None:
        """UPDATE of a row whose key did not change. None when the image holds only the key."""
        columns, values = image
        nulls = _nulls(values)
        if nulls:
            nulls = frozenset(place for place in nulls if columns[place] in self._key)
        plan = self._plan(("update", columns, nulls), lambda: self._update(columns, columns, 0, nulls, self._key))
        return _operation(plan, values) if plan is not None else None

    def key_update(self, before: Image, after: Image) -> Operation | None:
        """UPDATE of a row that is identified by its columns before the change."""
        kept = dict(zip(*before, strict=True))
        columns, values = before[0] + after[0], before[1] + after[1]
        nulls = frozenset(index for index in _nulls(values) if index < len(before[0]))
        fixed = frozenset(index for index, value in zip(*after, strict=True) if index in kept and kept[index] == value)
        fixed &= self._always
        if any(index in kept and index not in fixed for index in after[0] if index in self._always):
            return self._replaced(before, after, nulls)
        shape = ("key update", columns, len(before[0]), nulls, fixed)
        plan = self._plan(shape, lambda: self._update(columns, after[0], len(before[0]), nulls, fixed))
        return _operation(plan, values) if plan is not None else None

    def replacement(self, image: Image) -> Operation | None:
        """A statement that also changes columns that UPDATE cannot set. None when the image has no such columns."""
        columns, values = image
        if not self._always.intersection(columns) - self._key:
            return None
        keys = [place for place, index in enumerate(columns) if index in self._key]
        before = tuple(columns[place] for place in keys), [values[place] for place in keys]
        return self._replaced(before, image, _nulls(before[1]))

    def _replaced(self, before: Image, after: Image, nulls: frozenset[int]) -> Operation:
        """Delete and insert in one statement: an identity column GENERATED ALWAYS takes a value only from an INSERT."""
        if self.mapping.target.referenced:
            names = ", ".join(self.mapping.column(index).name for index in sorted(self._always.intersection(after[0])))
            raise ApplyError(
                f"{self.mapping.target.name} is referenced by foreign keys, and its column {names} is GENERATED ALWAYS AS"
                " IDENTITY: UPDATE cannot set it, and deleting and inserting the row would change the rows that reference it",
                code="GGS-00573",
                hint=f"ALTER TABLE {self.mapping.target.name} ALTER COLUMN {names} SET GENERATED BY DEFAULT on the target",
            )
        columns, values = before[0] + after[0], before[1] + after[1]
        shape = ("replace", columns, len(before[0]), nulls)
        return _operation(self._plan(shape, lambda: self._replace(columns, len(before[0]), nulls)), values)

    def _replace(self, columns: tuple[int, ...], first: int, nulls: frozenset[int]) -> PreparedPlan:
        """``first`` is where the after image begins among ``columns``. Columns that it lacks keep their values."""
        known = {
            self.mapping.column(index).name: place
            for place, index in enumerate(columns[first:], first)
            if self.mapping.writable(index)
        }
        order: list[int] = []
        values = []
        writable = [column.name for column in self.mapping.target.columns if column.writable]
        for name in writable:
            if name in known:
                order.append(known[name])
            values.append(f"${len(order)}" if name in known else f"gone.{quote(name)}")
        where = self._search.places(columns[:first], self.mapping.compared_updates)
        condition, more = self._where(columns, where, nulls, len(order) + 1)
        text = (
            f"WITH gone AS (DELETE FROM {self._rows} WHERE {condition} RETURNING *)"
            f" INSERT INTO {self.table} ({', '.join(map(quote, writable))}) OVERRIDING SYSTEM VALUE"
            f" SELECT {', '.join(values)} FROM gone"
        )
        return _plan(text, order + more, len(columns))

    def copy(self, columns: Sequence[int]) -> tuple[str, list[int]] | None:
        """COPY, and the places of the columns that it takes. None when rows cannot be copied into the table."""
        if not self.mapping.target.bulk:
            return None
        kept = [place for place, index in enumerate(columns) if self.mapping.writable(index)]
        names = ", ".join(quote(self.mapping.column(columns[place]).name) for place in kept)
        return (f"COPY {self.table} ({names}) FROM STDIN", kept) if kept else None

    def update_many(self, columns: tuple[int, ...]) -> str | None:
        """UPDATE of many rows, with an array of texts per column. None when the shape does not allow it."""
        return self._text(("update", columns), lambda: self._update_many(columns))

    def delete_many(self, columns: tuple[int, ...]) -> str | None:
        """DELETE of many rows, with arrays for the key columns of ``columns``. None if the shape does not allow it."""
        return self._text(("delete", columns), lambda: self._delete_many(columns))

    def key_places(self, columns: Sequence[int]) -> list[int]:
        """The places of the key columns among ``columns``."""
        return [place for place, index in enumerate(columns) if index in self._key]

    def _plan(self, shape: Shape, make: Callable[[], PreparedPlan | None]) -> PreparedPlan | None:
        try:
            return self._plans[shape]
        except KeyError:
            plan = self._plans[shape] = make()
            return plan

    def _text(self, shape: Shape, make: Callable[[], str | None]) -> str | None:
        if shape not in self._texts:
            self._texts[shape] = make()
        return self._texts[shape]

    def _insert(self, columns: tuple[int, ...]) -> PreparedPlan:
        order = tuple(place for place, index in enumerate(columns) if self.mapping.writable(index))
        names = ", ".join(quote(self.mapping.column(columns[place]).name) for place in order)
        marks = ", ".join(f"${number}" for number in range(1, len(order) + 1))
        what = f"({names}) OVERRIDING SYSTEM VALUE VALUES ({marks})" if order else "DEFAULT VALUES"
        return _plan(f"INSERT INTO {self.table} {what}", order, len(columns))

    def _delete(self, columns: tuple[int, ...], nulls: frozenset[int]) -> PreparedPlan:
        condition, order = self._where(columns, self._search.for_delete(columns), nulls, 1)
        return _plan(f"DELETE FROM {self._rows} WHERE {condition}", order, len(columns))

    def _update(
        self, columns: tuple[int, ...], after: tuple[int, ...], first: int, nulls: frozenset[int], kept: frozenset[int]
    ) -> PreparedPlan | None:
        """``first`` is where the after image begins among ``columns``; its columns in ``kept`` are not set.

        A column that must not be updated is compared instead, so that a difference is detected.
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
        if not sets and compared:  # nothing to set, but the comparison must still run
            free = (
                quote(each.name) for each in self.mapping.target.columns if each.writable and not each.identity_always
            )
            sets = [f"{name} = {name}" for name in itertools.islice(free, 1)]
        if not sets:
            return None
        where = self._search.for_update(columns[:first] if first else columns, moves=first > 0)
        condition, more = self._where(columns, where, nulls, len(order) + 1)
        order += more
        for place, column in compared:
            order.append(place)
            condition += f" AND {quote(column.name)} IS NOT DISTINCT FROM ${len(order)}"
        return _plan(f"UPDATE {self._rows} SET {', '.join(sets)} WHERE {condition}", order, len(columns))

    def _where(
        self, columns: tuple[int, ...], where: list[int], nulls: frozenset[int], number: int
    ) -> tuple[str, list[int]]:
        """The condition that finds one row. If several rows may be equal, it selects exactly one of them."""
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
            if column.comparable and (column.exact or not self._search.whole_row):
                parts.append(f"{name} = {mark}")
            else:
                # A text keeps the collation of its column, under which different texts may be equal.
                parts.append(f'{name}::text COLLATE "C" = {mark}::{column.base_type or column.type_name}::text')
        condition = " AND ".join(parts) or "true"
        if self.mapping.single and not any(place in nulls for place in where):
            return condition, order
        if self.mapping.target.partitioned or self.mapping.target.routed:
            one = f"SELECT tableoid, ctid FROM {self._rows} WHERE {condition} LIMIT 1"
            return f"(tableoid, ctid) IN ({one})", order
        return f"ctid = (SELECT ctid FROM {self._rows} WHERE {condition} LIMIT 1)", order

    def _update_many(self, columns: tuple[int, ...]) -> str | None:
        keys = self.key_places(columns)
        others = self._search.set_places(columns)
        if not self._many(keys) or not others:
            return None
        if any(self.mapping.column(columns[place]).identity_always for place in others):
            return None
        sets = ", ".join(
            f"{quote(self.mapping.column(columns[place]).name)} = {self._cast(columns, place)}" for place in others
        )
        return f"UPDATE {self._rows} AS t SET {sets} FROM {_arrays(len(columns))} WHERE {self._joined(columns, keys)}"

    def _delete_many(self, columns: tuple[int, ...]) -> str | None:
        keys = self.key_places(columns)
        if not self._many(keys):
            return None
        return f"DELETE FROM {self._rows} AS t USING {_arrays(len(columns))} WHERE {self._joined(columns, keys)}"

    def _many(self, keys: list[int]) -> bool:
        compares = self.mapping.compared_updates or self.mapping.compared_deletes
        return self.mapping.single and len(keys) == len(self._key) and not compares

    def _joined(self, columns: tuple[int, ...], keys: Iterable[int]) -> str:
        return " AND ".join(
            f"t.{quote(self.mapping.column(columns[place]).name)} = {self._cast(columns, place)}" for place in keys
        )

    def _cast(self, columns: tuple[int, ...], place: int) -> str:
        """An element cast to the column's type without its length, which only an assignment may enforce."""
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


def _operation(plan: PreparedPlan | None, values: list[Value]) -> Operation:
    if plan is None:
        raise ValueError("a shape without a statement")
    return plan.text, values if plan.take is None else plan.take(values)
