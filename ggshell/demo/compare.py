"""Source against target, row by row: counts and ordered checksums computed in the databases, and the first differences.

Each table is cut into chunks of rows in key order; a chunk's checksum is taken over its rows' text in that order.  Only
where chunks differ do rows travel, so equal tables cost one query a side whatever their size.  A table without a key is
ordered by the rows themselves.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import psycopg
from psycopg import sql

from ggshell.errors import NotFoundError

CHUNK_ROWS = 2000
FIRST_DIFFERENCES = 5
_SESSION = "-c timezone=UTC -c datestyle=ISO,MDY -c intervalstyle=postgres -c extra_float_digits=3 -c bytea_output=hex"


class Difference(StrEnum):
    """How a row differs."""

    MISSING = "missing in target"
    EXTRA = "only in target"
    CHANGED = "differs"


@dataclass(frozen=True, slots=True)
class RowDifference:
    """One differing row: its key and its text on either side (None where there is no such row)."""

    kind: Difference
    key: str
    source: str | None
    target: str | None

    def __str__(self) -> str:
        lines = [f"{self.kind}: {_clipped(self.key)}"]
        lines += [f"    source {_clipped(self.source)}"] if self.source is not None else []
        lines += [f"    target {_clipped(self.target)}"] if self.target is not None else []
        return "\n".join(lines)


def _clipped(text: str, length: int = 160) -> str:
    return text if len(text) <= length else f"{text[:length]}… ({len(text)} characters)"


@dataclass(frozen=True, slots=True)
class TableComparison:
    """One table on both sides; equal when both checksums are."""

    table: str
    source_rows: int
    target_rows: int
    source_checksum: str
    target_checksum: str
    differences: tuple[RowDifference, ...] = ()

    @property
    def equal(self) -> bool:
        return self.source_checksum == self.target_checksum


class _Table(NamedTuple):
    """A table as one side is asked for it: columns in the source's order, the order of rows as SQL."""

    schema: str
    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]

    def row(self) -> sql.Composed:
        return sql.SQL("ROW({})::text").format(sql.SQL(", ").join(map(sql.Identifier, self.columns)))

    def key_text(self) -> sql.Composed:
        if not self.key:
            return self.row()
        return sql.SQL("ROW({})::text").format(sql.SQL(", ").join(map(sql.Identifier, self.key)))

    def numbered(self) -> sql.Composed:
        """Every row with its number in an order that both servers agree on: key as text, by code point."""
        query = sql.SQL('SELECT {} AS key, {} AS row, row_number() OVER (ORDER BY {} COLLATE "C") - 1 AS n FROM {}')
        return query.format(self.key_text(), self.row(), self.key_text(), sql.Identifier(self.schema, self.name))


def compare(
    source: str, target: str, *, source_schema: str, target_schema: str, tables: Sequence[str] | None = None
) -> tuple[TableComparison, ...]:
    """Compare the named tables of a schema, or all of the source's.  Raises NotFoundError when a schema has no table."""
    with _connect(source) as left, _connect(target) as right:
        names = tables if tables is not None else _table_names(left, source_schema)
        if not names:
            raise NotFoundError(f"schema {source_schema} has no table to compare")
        return tuple(_compare_table(left, right, (source_schema, target_schema), name) for name in names)


def checksum(dsn: str, schema: str) -> str:
    """One checksum over all tables of a schema: a quick question whether anything has changed."""
    digest = hashlib.md5(usedforsecurity=False)
    with _connect(dsn) as connection:
        for name in _table_names(connection, schema):
            digest.update(f"{name}:{_total(_chunks(connection, _describe(connection, schema, name)))}".encode())
    return digest.hexdigest()


def _connect(dsn: str) -> psycopg.Connection:
    return psycopg.connect(dsn, autocommit=True, options=_SESSION, client_encoding="UTF8")


def _table_names(connection: psycopg.Connection, schema: str) -> list[str]:
    rows = connection.execute(
        """SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = %s AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY c.relname""",
        [schema],
    ).fetchall()
    return [name for (name,) in rows]


def _describe(connection: psycopg.Connection, schema: str, name: str) -> _Table:
    rows = connection.execute(
        """SELECT a.attname::text, array_position(k.conkey, a.attnum) FROM pg_class c
             JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
             LEFT JOIN pg_constraint k ON k.conrelid = c.oid AND k.contype = 'p'
            WHERE n.nspname = %s AND c.relname = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum""",
        [schema, name],
    ).fetchall()
    key = sorted((place, column) for column, place in rows if place is not None)
    return _Table(schema, name, tuple(column for column, _ in rows), tuple(column for _, column in key))


def _compare_table(
    left: psycopg.Connection, right: psycopg.Connection, schemas: tuple[str, str], name: str
) -> TableComparison:
    source = _describe(left, schemas[0], name)
    target = source._replace(schema=schemas[1])
    if not set(source.columns) <= set(_describe(right, schemas[1], name).columns):
        return TableComparison(name, _count(left, source), 0, "", "no such table, or a column is missing")
    ours, theirs = _chunks(left, source), _chunks(right, target)
    found: tuple[RowDifference, ...] = ()
    if ours != theirs:
        found = _first_differences(left, right, (source, target), _differing_chunk(ours, theirs))
    rows = [sum(count for count, _ in side) for side in (ours, theirs)]
    return TableComparison(name, rows[0], rows[1], _total(ours), _total(theirs), found)


def _chunks(connection: psycopg.Connection, table: _Table) -> list[tuple[int, str]]:
    query = sql.SQL(
        "SELECT count(*), md5(string_agg(md5(row), '' ORDER BY n)) FROM ({}) t GROUP BY n / {} ORDER BY n / {}"
    )
    size = sql.Literal(CHUNK_ROWS)
    return [
        (int(count), str(hashed)) for count, hashed in connection.execute(query.format(table.numbered(), size, size))
    ]


def _count(connection: psycopg.Connection, table: _Table) -> int:
    query = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table.schema, table.name))
    row = connection.execute(query).fetchone()
    return int(row[0]) if row else 0


def _total(chunks: Sequence[tuple[int, str]]) -> str:
    return hashlib.md5("".join(hashed for _, hashed in chunks).encode(), usedforsecurity=False).hexdigest()


def _differing_chunk(ours: Sequence[tuple[int, str]], theirs: Sequence[tuple[int, str]]) -> int:
    """The first chunk that is not the same on both sides; all before it are."""
    for number, (left, right) in enumerate(zip(ours, theirs, strict=False)):
        if left != right:
            return number
    return min(len(ours), len(theirs))


def _first_differences(
    left: psycopg.Connection, right: psycopg.Connection, tables: tuple[_Table, _Table], chunk: int
) -> tuple[RowDifference, ...]:
    """The first differing rows, in key order.

    Two chunks are fetched, since a row too many on one side pushes its neighbours over the edge; a key is judged only up to
    where both sides were read.
    """
    sides = [_rows(connection, table, chunk) for connection, table in zip((left, right), tables, strict=True)]
    full = [len(side) == 2 * CHUNK_ROWS for side in sides]
    ends = [max(row[0] for row in side) for side, more in zip(sides, full, strict=True) if more]
    merged = merge(sides[0], sides[1])
    judged = [row for row in merged if not ends or row.key.encode() <= min(end.encode() for end in ends)]
    return tuple(judged[:FIRST_DIFFERENCES])


def _rows(connection: psycopg.Connection, table: _Table, chunk: int) -> list[tuple[str, str]]:
    query = sql.SQL("SELECT key, row FROM ({}) t WHERE n >= {} AND n < {} ORDER BY n")
    start = chunk * CHUNK_ROWS
    bounds = (sql.Literal(start), sql.Literal(start + 2 * CHUNK_ROWS))
    return [(str(key), str(row)) for key, row in connection.execute(query.format(table.numbered(), *bounds))]


def merge(source: Sequence[tuple[str, str]], target: Sequence[tuple[str, str]]) -> list[RowDifference]:
    """Walk two lists of (key, row), both in code point order of their keys, and name what differs."""
    found: list[RowDifference] = []
    left, right = 0, 0
    while left < len(source) or right < len(target):
        ours = source[left] if left < len(source) else None
        theirs = target[right] if right < len(target) else None
        if theirs is None or (ours is not None and ours[0].encode() < theirs[0].encode()):
            assert ours is not None  # noqa: S101 - the loop's condition
            found.append(RowDifference(Difference.MISSING, ours[0], ours[1], None))
            left += 1
        elif ours is None or theirs[0].encode() < ours[0].encode():
            found.append(RowDifference(Difference.EXTRA, theirs[0], None, theirs[1]))
            right += 1
        else:
            if ours[1] != theirs[1]:
                found.append(RowDifference(Difference.CHANGED, ours[0], ours[1], theirs[1]))
            left, right = left + 1, right + 1
    return found
