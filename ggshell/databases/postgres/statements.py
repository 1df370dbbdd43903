"""Rows of a trail as SQL: one statement a shape (table, operation, columns present), its values as parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ggshell.apply.target import TableMapping, TargetColumn
from ggshell.databases.postgres.describe import quote, quote_table
from ggshell.record import IoType
from ggshell.record.image import decode_image, split_key_update

Values = list[tuple[int, bytes | None]]


class Operation(NamedTuple):
    """A statement with its values, and how many rows it must change (None: any number)."""

    statement: str
    values: Sequence[bytes | None]
    affects: int | None


class StatementBuilder:
    """Makes statements for one mapping and remembers them by shape."""

    def __init__(self, mapping: TableMapping) -> None:
        self._mapping = mapping
        self._table = quote_table(mapping.target.name)
        self._known: dict[tuple[object, ...], str] = {}
        self._keyed = bool(mapping.target.key) or bool(mapping.source.key)

    def operation(self, io_type: int, data: bytes | memoryview) -> Operation | None:
        """The statement for one row; None when there is nothing to do."""
        if io_type == IoType.INSERT:
            return self._insert(self._writable(decode_image(data)))
        if io_type == IoType.DELETE:
            return self._delete(decode_image(data))
        if io_type == IoType.KEY_FIELD_COMP:
            before, after = split_key_update(data)
            return self._update(decode_image(before), self._writable(decode_image(after)))
        image = decode_image(data)
        keys = set(self._mapping.key)
        where = [(index, value) for index, value in image if index in keys]
        return self._update(where, [pair for pair in self._writable(image) if pair[0] not in keys])

    def _column(self, index: int) -> TargetColumn:
        column = self._mapping.columns[index]
        if column is None:
            raise ValueError(f"column {index} is not written")
        return column

    def _writable(self, image: Values) -> Values:
        return [pair for pair in image if self._mapping.columns[pair[0]] is not None]

    def _insert(self, image: Values) -> Operation:
        shape = (IoType.INSERT, *(index for index, _ in image))
        statement = self._known.get(shape)
        if statement is None:
            names = ", ".join(quote(self._column(index).name) for index, _ in image)
            marks = ", ".join(f"${number}" for number in range(1, len(image) + 1))
            statement = f"INSERT INTO {self._table} ({names}) OVERRIDING SYSTEM VALUE VALUES ({marks})"
            self._known[shape] = statement
        return Operation(statement, [value for _, value in image], None)

    def _delete(self, image: Values) -> Operation:
        nulls = tuple(value is None for _, value in image)
        shape = (IoType.DELETE, *(index for index, _ in image), nulls)
        statement = self._known.get(shape)
        if statement is None:
            statement = self._known[shape] = f"DELETE FROM {self._table} WHERE {self._where(image, 1)}"
        return Operation(statement, [value for _, value in image if value is not None], 1)

    def _update(self, where: Values, image: Values) -> Operation | None:
        if not image:
            return None
        nulls = tuple(value is None for _, value in where)
        shape = (IoType.UPDATE, tuple(index for index, _ in image), tuple(index for index, _ in where), nulls)
        statement = self._known.get(shape)
        if statement is None:
            sets = ", ".join(
                f"{quote(self._column(index).name)} = ${number}" for number, (index, _) in enumerate(image, 1)
            )
            statement = f"UPDATE {self._table} SET {sets} WHERE {self._where(where, len(image) + 1)}"
            self._known[shape] = statement
        values = [value for _, value in image] + [value for _, value in where if value is not None]
        return Operation(statement, values, 1)

    def _where(self, image: Values, first: int) -> str:
        """The condition that finds one row; without a key exactly one of the equal ones."""
        parts, number = [], first
        for index, value in image:
            column = self._mapping.columns[index] or self._mapping.target.columns[index]
            name = quote(column.name)
            if value is None:
                parts.append(f"{name} IS NULL")
                continue
            if column.comparable:
                parts.append(f"{name} = ${number}")
            else:
                parts.append(f"{name}::text = ${number}::{column.type_name}::text")
            number += 1
        condition = " AND ".join(parts) or "true"
        if self._keyed:
            return condition
        return f"ctid = (SELECT ctid FROM {self._table} WHERE {condition} LIMIT 1)"
