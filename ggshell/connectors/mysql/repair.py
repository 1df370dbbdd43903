"""Writes a script that makes a target's rows equal to the source's. A person reads and runs it; ggshell never does."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ggshell.connectors.mysql.literals import GEOMETRIES, labels_of
from ggshell.connectors.mysql.session import quote_name
from ggshell.connectors.mysql.statements import quote_table
from ggshell.pipeline.apply.target import TargetColumn, TargetTable
from ggshell.pipeline.compare.drill import Difference, DifferenceKind, Values
from ggshell.pipeline.compare.portable import Family
from ggshell.types import text_literal

HEAD: Final = """-- Makes the rows of the target equal to those of the source, as COMPARE found them{when}.
-- Rows that were in flight are left out. A row that has changed in the target since then is not changed.
-- Read the script before you run it; run it in the target: mariadb < this-file
{marked}{strict}
SET SESSION time_zone = '+00:00';
SET NAMES utf8mb4;
SET SESSION foreign_key_checks = 0;
START TRANSACTION;
"""
UNLOGGED: Final = """-- The changes are not logged: no Extract captures them. The user needs the privilege BINLOG ADMIN.
-- To replicate the changes from the target to other databases, write the script with REPAIR file REPLICATE.
SET SESSION sql_log_bin = 0;
"""
_MODES: Final = "NO_BACKSLASH_ESCAPES,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES"
_STRICT: Final = f"SET SESSION sql_mode = 'STRICT_ALL_TABLES,{_MODES}';"
_NOT_STRICT: Final = f"SET SESSION sql_mode = '{_MODES}';"
"""How the server accepts the error value of an ENUM."""
LONG: Final = 200
"""A text or binary value with more characters or digits is recognized by its MD5."""
_OPAQUE: Final = GEOMETRIES | {"vector"}
"""Types that the server does not compare with a binary value."""
_NUMBERS: Final = frozenset({Family.INTEGER, Family.DECIMAL, Family.FLOAT, Family.TRUTH})


class Repaired(NamedTuple):
    """A table to repair. ``families``: the compared columns, in the order of the differences' values."""

    target: TargetTable
    families: Mapping[str, Family]
    differences: Sequence[Difference]


def script(tables: Iterable[Repaired], when: str = "", *, replicated: bool = False) -> str:
    """The whole script: deletions first, then changes and insertions."""
    repairs = [_Repair(table) for table in tables]
    lines = [
        *(line for each in repairs for line in each.removals()),
        *(line for each in repairs for line in each.rest()),
    ]
    head = HEAD.format(when=f" at {when}" if when else "", marked="" if replicated else UNLOGGED, strict=_STRICT)
    return "".join([head, *(f"{line}\n" for line in lines), "COMMIT;\n"])


class _Repair:
    """The statements for a table."""

    def __init__(self, table: Repaired) -> None:
        self._target = table.target
        self._families = table.families
        self._names = tuple(table.families)
        self._table = quote_table(table.target.name)
        self._columns = {column.name.lower(): column for column in table.target.columns}
        self._key = {name.lower() for unique in table.target.unique for name in unique}
        found = [each for each in table.differences if not each.in_flight]
        self._extra = [each for each in found if each.kind is DifferenceKind.EXTRA]
        self._missing = [each for each in found if each.kind is DifferenceKind.MISSING]
        changed = [each for each in found if each.kind is DifferenceKind.CHANGED]
        self._replaced = self._taking(changed)
        self._changed = [each for each in changed if each not in self._replaced]

    def removals(self) -> Iterator[str]:
        for each in (*self._extra, *self._replaced):
            if each.target is not None:
                yield f"DELETE FROM {self._table} WHERE {self._equals(each.target)} LIMIT 1;"

    def rest(self) -> Iterator[str]:
        for each in self._changed:
            if each.source is not None and each.target is not None:
                yield from self._updates(each.source, each.target)
        for each in (*self._replaced, *self._missing):
            if each.source is not None:
                yield from self._inserts(each.source)

    def _taking(self, changed: Sequence[Difference]) -> list[Difference]:
        """Changes that take a unique value from another row: the server checks each row, so such rows are inserted again."""
        names = [name.lower() for name in self._names]
        if any(column.writable and name not in names for name, column in self._columns.items()):
            return []  # the values of other columns would be lost
        found: dict[int, Difference] = {}
        for unique in self._target.unique:
            places = [names.index(name.lower()) for name in sorted(unique) if name.lower() in names]
            before = {_loose(each.target, places): each for each in changed}
            for each in changed:
                values = _loose(each.source, places)
                if None not in values and before.get(values, each) is not each:
                    found[id(each)] = each
        return list(found.values())

    def _inserts(self, row: Values) -> Iterator[str]:
        """Insert a row, at first with a label instead of the error value of an ENUM."""
        possible = tuple(
            self._labels(name)[0] if self._is_error(name, value) else value
            for name, value in zip(self._names, row, strict=True)
        )
        values = ", ".join(self._literal(*pair) for pair in zip(self._names, possible, strict=True))
        yield f"INSERT INTO {self._table} ({', '.join(map(quote_name, self._names))}) VALUES ({values});"
        if possible != row:
            yield from self._updates(row, possible)

    def _updates(self, source: Values, target: Values) -> Iterator[str]:
        """Change a row, error values of ENUM columns last and without the strict mode, which refuses them."""
        rows = list(zip(self._names, source, target, strict=True))
        errors = {name for name, value, before in rows if value != before and self._is_error(name, value)}
        between = tuple(before if name in errors else value for name, value, before in rows)
        if between != target:
            yield self._update(between, target)
        if errors:
            yield from (_NOT_STRICT, self._update(source, between), _STRICT)

    def _update(self, source: Values, target: Values) -> str:
        rows = zip(self._names, source, target, strict=True)
        changed = {name: self._literal(name, value) for name, value, before in rows if value != before}
        written = {name.lower() for name in changed}
        # The server sets such a column to the time of the script, unless the statement sets it.
        kept = [column.name for name, column in self._columns.items() if column.renewed and name not in written]
        sets = {**changed, **{name: quote_name(name) for name in kept}}
        text = ", ".join(f"{quote_name(name)} = {value}" for name, value in sets.items())
        return f"UPDATE {self._table} SET {text} WHERE {self._equals(target)} LIMIT 1;"

    def _is_error(self, name: str, value: str | None) -> bool:
        """Whether a value is the error value of an ENUM: the empty text, without being a label."""
        return value == "" and self._column(name).base_type == "enum" and "" not in self._labels(name)

    def _labels(self, name: str) -> list[str]:
        return labels_of(self._column(name).type_name)

    def _equals(self, row: Values) -> str:
        return " AND ".join(self._equal(name, value) for name, value in zip(self._names, row, strict=True))

    def _equal(self, name: str, value: str | None) -> str:
        """The condition that a column has exactly a value: under its collation, other texts may be equal to it."""
        quoted, family = quote_name(name), self._families[name]
        if value is None:
            return f"{quoted} IS NULL"
        literal = self._literal(name, value)
        if family is Family.BYTES and (len(value) > LONG or self._column(name).base_type in _OPAQUE):
            return f"MD5({quoted}) = '{_md5(bytes.fromhex(value))}'"
        if family not in (Family.TEXT, Family.DOCUMENT):
            return f"{quoted} = {literal}"
        text = f"CONVERT({quoted} USING utf8mb4)"
        if len(value) > LONG:
            return f"MD5({text}) = '{_md5(value.encode())}'"
        exactly = f"CAST({text} AS BINARY) = {literal}"
        return f"{quoted} = {literal} AND {exactly}" if name.lower() in self._key else exactly  # an index finds the row

    def _literal(self, name: str, value: str | None) -> str:
        if value is None:
            return "NULL"
        family = self._families[name]
        if family in _NUMBERS:
            return value
        if family is Family.BYTES:
            return f"x'{value}'"
        return f"b'{value}'" if family is Family.BITS else text_literal(value)

    def _column(self, name: str) -> TargetColumn:
        return self._columns[name.lower()]


def _md5(value: bytes) -> str:
    return hashlib.md5(value, usedforsecurity=False).hexdigest()


def _loose(row: Values | None, places: Sequence[int]) -> tuple[str | None, ...]:
    """Values without what a collation may ignore: case, accents, and spaces at the end."""
    return tuple(_plain(row[place]) if row is not None else None for place in places)


def _plain(value: str | None) -> str | None:
    if value is None or value.isascii():
        return value.casefold().rstrip(" ") if value is not None else None
    letters = unicodedata.normalize("NFKD", value)
    return "".join(each for each in letters if not unicodedata.combining(each)).casefold().rstrip(" ")
