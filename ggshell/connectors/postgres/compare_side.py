"""What COMPARE asks of a PostgreSQL database: sums of hashes over key ranges, computed in the server.

The content of a row is the texts of its compared columns. A range is represented by the number of its rows and the sum of
64-bit hashes of their contents. The hash of a row is that of an array of its texts, hashed once more as text, because the
first one adds up the hashes of the columns: rows that have swapped a value would have the same sum. Keys are ordered in the
same way on every server: texts by code point. A table without a primary key is ordered by a hash of its rows, and equal rows
are distinguished by a number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.connectors.postgres.compared_columns import ComparedColumn, PostgresColumns, postgres_columns
from ggshell.connectors.postgres.describe import resolve, table_id
from ggshell.connectors.postgres.portable_side import portable_side
from ggshell.connectors.postgres.repair import script
from ggshell.connectors.postgres.session import execute
from ggshell.errors import NotFoundError, StateError
from ggshell.pipeline.compare.drill import Key, KeyRange, RangeSum, TableSide, Values
from ggshell.pipeline.compare.portable import common
from ggshell.pipeline.heartbeat.names import INCOMING, OUTGOING
from ggshell.types import TableName, quote, quote_table

if TYPE_CHECKING:
    import psycopg

    from ggshell.pipeline.compare.tables import ComparedColumns, ComparedTable

_SEED = 0
_COLUMNS = """
SELECT a.attname::text, format_type(a.atttypid, a.atttypmod), a.attcollation <> 0, a.attgenerated <> '', a.attidentity::text,
       array_position(pk.indkey::int2[], a.attnum)
  FROM pg_attribute a
  LEFT JOIN pg_index pk ON pk.indrelid = a.attrelid AND pk.indisprimary
 WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
 ORDER BY a.attnum"""


class PostgresComparison(NamedTuple):
    """A database that is compared, with its connection."""

    connection: psycopg.Connection[Any]

    def tables(self, pattern: str) -> list[TableName]:
        return resolve(self.connection, pattern)

    def own_tables(self) -> set[TableName]:
        return own_tables(self.connection)

    def columns(self, table: TableName) -> PostgresColumns:
        """The columns of a table, without generated ones."""
        relation = table_id(self.connection, table)
        if relation is None:
            raise NotFoundError(
                f"table {table} does not exist", code="GGS-00211", hint="check schema, spelling and case"
            )
        columns = (ComparedColumn(*row) for row in execute(self.connection, _COLUMNS, [relation]))
        return PostgresColumns(tuple(column for column in columns if not column.is_generated))

    def side(self, table: TableName, columns: ComparedColumns, other: ComparedColumns) -> TableSide:
        asked = "SELECT relkind = 'p' FROM pg_class WHERE oid = %s"
        partitioned = any(row[0] for row in execute(self.connection, asked, [table_id(self.connection, table)]))
        if not (isinstance(columns, PostgresColumns) and isinstance(other, PostgresColumns)):
            families = {name: common(family, other.families[name]) for name, family in columns.families.items()}
            own = self.columns(table).columns
            return portable_side(self.connection, table, own, families, columns.key_names, partitioned=partitioned)
        shape, theirs = postgres_columns(columns), postgres_columns(other)
        return PostgresTableSide(self.connection, table, shape, theirs, partitioned=partitioned)

    def time(self) -> str:
        return str(execute(self.connection, "SELECT date_trunc('second', now())::text")[0][0])

    def repair_script(self, found: Sequence[ComparedTable], when: str, *, replicated: bool) -> str:
        if any(not isinstance(each.columns, PostgresColumns) and each.differences for each in found):
            raise StateError("REPAIR requires a source of the same kind", hint="run COMPARE without REPAIR")
        return script(found, when, replicated=replicated)


class PostgresTableSide:
    """A table compared by the source's columns. ``other`` is the columns of the other side, whose types may differ.

    The rows of inheritance children are not compared with those of their parent: each child is a table of its own.
    """

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        table: TableName,
        shape: PostgresColumns,
        other: PostgresColumns,
        *,
        partitioned: bool = False,
    ) -> None:
        self._connection = connection
        self._table = f"{'' if partitioned else 'ONLY '}{_escaped(quote_table(table))}"
        theirs = {column.name: column.type for column in other.columns}
        self._texts = [_text(column, theirs.get(column.name, column.type)) for column in shape.columns]
        self._row = f"ROW({', '.join(self._texts)})::text"
        array = f'ARRAY[{", ".join(self._texts)}]::text[] COLLATE "C"'
        row_hash = f"hashtextextended(hash_array_extended({array}, {_SEED})::text, {_SEED})"
        self._sum = f"count(*), coalesce(sum({row_hash}), 0)::text"
        self._keyed = bool(shape.key)
        self._key_texts = [_text(each, theirs.get(each.name, each.type)) for each in shape.key]
        if shape.key:
            self._key = [f'{_name(each)} COLLATE "C"' if each.is_text else _name(each) for each in shape.key]
            self._types = [each.type for each in shape.key]
        else:
            self._key, self._types = [f"hashtextextended({self._row}, {_SEED})"], ["bigint"]

    def cancel(self) -> None:
        import psycopg

        with suppress(psycopg.Error):  # the connection is lost, so nothing runs any more
            self._connection.cancel()

    def without_key(self) -> int:
        """The number of rows with a NULL in a key column. None can exist if the key is the table's own."""
        missing = " OR ".join(f"{each} IS NULL" for each in self._key)
        rows = self._ask(f"SELECT count(*) FROM {self._table} r WHERE {missing}", ()) if self._keyed else [(0,)]
        return int(rows[0][0])

    def sum(self, keys: KeyRange) -> RangeSum:
        """The number of rows in a range, and the sum of their hashes."""
        where, values = self._where(keys)
        rows = self._ask(f"SELECT {self._sum} FROM {self._table} r{where}", values)
        return RangeSum(int(rows[0][0]), tuple(rows[0][1:]))

    def sums(self, keys: KeyRange, buckets: int) -> dict[int, RangeSum]:
        """The number of rows and the sums per bucket of keys."""
        where, values = self._where(keys)
        query = f"SELECT {self._bucket(buckets)} AS bucket, {self._sum} FROM {self._table} r{where} GROUP BY 1"
        found = self._ask(query, values)
        return {int(row[0]): RangeSum(int(row[1]), tuple(row[2:])) for row in found}

    def bounds(self, keys: KeyRange, step: int) -> list[Key]:
        """Every ``step``-th key of a range."""
        where, values = self._where(keys)
        texts = ", ".join(f"({each})::text AS k{place}" for place, each in enumerate(self._key))
        names = ", ".join(f"k{place}" for place in range(len(self._key)))
        numbered = (
            f"SELECT {texts}, row_number() OVER (ORDER BY {', '.join(self._key)}) AS n FROM {self._table} r{where}"
        )
        found = self._ask(f"SELECT {names} FROM ({numbered}) t WHERE n %% {step} = 0 ORDER BY n", values)
        # Rows without a key may share a hash. A bound must appear only once and must not start an empty range.
        return [key for key in dict.fromkeys(tuple(row) for row in found) if key != keys.low]

    def rows(self, keys: KeyRange, buckets: int, chosen: Sequence[int]) -> dict[Key, Values]:
        """The rows of some buckets. From the second row with the same key on, a number is appended to the key."""
        where, values = self._where(keys)
        numbers = ", ".join(map(str, map(int, chosen)))
        within = f"{self._bucket(buckets)} IN ({numbers})" if chosen else "false"
        return self._rows(f"{where} AND {within}" if where else f" WHERE {within}", values)

    def rows_of(self, keys: Iterable[Key]) -> dict[Key, Values]:
        """The rows with some keys."""
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

    def _bucket(self, buckets: int) -> str:
        """The bucket of a row, by a hash of its key. Without a key, the hash of the row is the key."""
        texts = ", ".join(self._key_texts)
        return f"mod({f'hashtextextended(ROW({texts})::text, {_SEED})' if self._keyed else self._key[0]}, {buckets})"

    def _marks(self) -> str:
        return ", ".join(f"%s::{kind}" for kind in self._types)

    def _ask(self, query: str, values: Sequence[str]) -> list[tuple[Any, ...]]:
        return execute(self._connection, query, list(values))


def _escaped(sql: str) -> str:
    """Escape percent signs in names, because the query has parameters."""
    return sql.replace("%", "%%")


def _name(column: ComparedColumn) -> str:
    return f"r.{_escaped(quote(column.name))}"


def _text(column: ComparedColumn, other_type: str) -> str:
    """A value as text. Trailing zeros are removed from a number that has another scale on the other side."""
    name = _name(column)
    if column.type != other_type and column.type.startswith("numeric"):
        return f"trim_scale({name})::text"
    return f"{name}::text"


# The tables of replication itself, heartbeats and checkpoints, by their columns instead of their names.


_CHECKPOINTS = ("group_name", "group_key", "seqno", "rba", "audit_ts", "create_ts", "last_update_ts", "current_dir")
_TRANSACTIONS = ("group_name", "group_key", "log_cmplt_csn", "log_cmplt_xids_seq", "log_cmplt_xids")
_JOBS = ("job_name", "every_seconds", "retention_days", "last_run", "next_run", "runs")
_HEARTBEATS = ("local_database", "remote_database", *INCOMING, *OUTGOING)
_SIGNATURES = (_CHECKPOINTS, _TRANSACTIONS, _HEARTBEATS, _JOBS)
"""Columns that the tables have in every release."""
_FIND = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'p') AND %s::text[] <@ ARRAY(
   SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped)"""


def own_tables(connection: psycopg.Connection[Any]) -> set[TableName]:
    """The checkpoint tables, their transaction tables, and the heartbeat tables."""
    return {TableName(*row) for columns in _SIGNATURES for row in execute(connection, _FIND, [list(columns)])}
