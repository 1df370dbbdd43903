"""One side of a table for comparisons, in PostgreSQL: sums of hashes over key ranges, computed there.

A row's content is the text of its compared columns; two 64-bit hashes of it, added up, stand for a range.  Keys are ordered
the same on every server: texts by code point.  A table without a primary key is ordered by a hash of its rows, and equal
rows are told apart by a number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.compare.side import Key, KeyRange, RangeSum, Values
from ggshell.databases.postgres.describe import quote, quote_table, table_id
from ggshell.databases.postgres.session import execute
from ggshell.errors import NotFoundError
from ggshell.types import TableName

if TYPE_CHECKING:
    import psycopg

_SEEDS = (0, 4711)
_COLUMNS = """
SELECT a.attname::text, format_type(a.atttypid, a.atttypmod), a.attcollation <> 0, a.attgenerated <> '', a.attidentity::text,
       array_position(pk.indkey::int2[], a.attnum)
  FROM pg_attribute a
  LEFT JOIN pg_index pk ON pk.indrelid = a.attrelid AND pk.indisprimary
 WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
 ORDER BY a.attnum"""


class Column(NamedTuple):
    """A column as the catalog has it; ``key`` is its place in the primary key, None outside of it."""

    name: str
    type: str
    is_text: bool
    is_generated: bool
    identity: str
    key: int | None


@dataclass(frozen=True, slots=True)
class Shape:
    """What is compared of a table: the columns whose values are stored, and those that identify a row (none: all do)."""

    columns: tuple[Column, ...]

    @property
    def key(self) -> tuple[Column, ...]:
        return tuple(sorted((each for each in self.columns if each.key is not None), key=lambda each: each.key or 0))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


def shape_of(connection: psycopg.Connection[Any], table: TableName) -> Shape:
    """A table's columns, without those that are computed from others.  Raises NotFoundError."""
    relation = table_id(connection, table)
    if relation is None:
        raise NotFoundError(f"no table is called {table}", code="GGS-00211", hint="check schema, spelling and case")
    columns = (Column(*row) for row in execute(connection, _COLUMNS, [relation]))
    return Shape(tuple(column for column in columns if not column.is_generated))


class PostgresTableSide:
    """A table by the source's shape; ``own`` is its own, whose types may be others."""

    def __init__(self, connection: psycopg.Connection[Any], table: TableName, shape: Shape, other: Shape) -> None:
        self._connection = connection
        self._table = _escaped(quote_table(table))
        theirs = {column.name: column.type for column in other.columns}
        self._texts = [_text(column, theirs.get(column.name, column.type)) for column in shape.columns]
        self._row = f"ROW({', '.join(self._texts)})::text"
        self._keyed = bool(shape.key)
        if shape.key:
            self._key = [f'{_name(each)} COLLATE "C"' if each.is_text else _name(each) for each in shape.key]
            self._types = [each.type for each in shape.key]
        else:
            self._key, self._types = [f"hashtextextended({self._row}, {_SEEDS[0]})"], ["bigint"]

    def without_key(self) -> int:
        """How many rows have no value in a column of the key: none where the key is this table's own."""
        missing = " OR ".join(f"{each} IS NULL" for each in self._key)
        rows = self._ask(f"SELECT count(*) FROM {self._table} r WHERE {missing}", ()) if self._keyed else [(0,)]
        return int(rows[0][0])

    def sum(self, keys: KeyRange) -> RangeSum:
        """Rows, and the sums of two hashes."""
        where, values = self._where(keys)
        hashes = ", ".join(f"coalesce(sum(hashtextextended(content, {seed})), 0)::text" for seed in _SEEDS)
        rows = self._ask(
            f"SELECT count(*), {hashes} FROM (SELECT {self._row} AS content FROM {self._table} r{where}) t", values
        )
        return RangeSum(int(rows[0][0]), tuple(rows[0][1:]))

    def bounds(self, keys: KeyRange, step: int) -> list[Key]:
        """Every ``step``-th key."""
        where, values = self._where(keys)
        texts = ", ".join(f"({each})::text AS k{place}" for place, each in enumerate(self._key))
        names = ", ".join(f"k{place}" for place in range(len(self._key)))
        numbered = (
            f"SELECT {texts}, row_number() OVER (ORDER BY {', '.join(self._key)}) AS n FROM {self._table} r{where}"
        )
        found = self._ask(f"SELECT {names} FROM ({numbered}) t WHERE n %% {step} = 0 ORDER BY n", values)
        # Rows without a key may share their hash: a bound stands once, and makes no empty range.
        return [key for key in dict.fromkeys(tuple(row) for row in found) if key != keys.low]

    def rows(self, keys: KeyRange) -> dict[Key, Values]:
        """The rows of a range; those behind the first with one key have their number behind it."""
        where, values = self._where(keys)
        return self._rows(where, values)

    def rows_of(self, keys: Iterable[Key]) -> dict[Key, Values]:
        """The rows of some keys."""
        wanted = list(dict.fromkeys(key[: len(self._key)] for key in keys))
        if not wanted:
            return {}
        marks = ", ".join(f"({self._marks()})" for _ in wanted)
        return self._rows(f" WHERE ({', '.join(self._key)}) IN ({marks})", [text for key in wanted for text in key])

    def _rows(self, where: str, values: Sequence[str]) -> dict[Key, Values]:
        texts = ", ".join(f"({each})::text" for each in self._key)
        order = ", ".join([*self._key, *([] if self._keyed else [f'{self._row} COLLATE "C"'])])
        found = self._ask(
            f"SELECT {texts}, {', '.join(self._texts)} FROM {self._table} r{where} ORDER BY {order}", values
        )
        width = len(self._key)
        seen: Counter[Key] = Counter()
        rows: dict[Key, Values] = {}
        for row in found:
            key = tuple(row[:width])
            rows[key if self._keyed and not seen[key] else (*key, str(seen[key]))] = tuple(row[width:])
            seen[key] += 1
        return rows

    def _where(self, keys: KeyRange) -> tuple[str, list[str]]:
        parts, values = [], list[str]()
        for bound, sign in ((keys.low, ">="), (keys.high, "<")):
            if bound is not None:
                parts.append(f"({', '.join(self._key)}) {sign} ({self._marks()})")
                values += bound
        return (" WHERE " + " AND ".join(parts) if parts else ""), values

    def _marks(self) -> str:
        return ", ".join(f"%s::{kind}" for kind in self._types)

    def _ask(self, query: str, values: Sequence[str]) -> list[tuple[Any, ...]]:
        return execute(self._connection, query, list(values))


def _escaped(sql: str) -> str:
    """Percent signs of names stand for themselves beside parameters."""
    return sql.replace("%", "%%")


def _name(column: Column) -> str:
    return f"r.{_escaped(quote(column.name))}"


def _text(column: Column, other_type: str) -> str:
    """A value as text; a number that the other side keeps with another scale without zeros at its end."""
    name = _name(column)
    if column.type != other_type and column.type.startswith("numeric"):
        return f"trim_scale({name})::text"
    return f"{name}::text"
