"""What COMPARE asks of a PostgreSQL database: sums of hashes over key ranges, computed in the server.

The content of a row is the texts of its compared columns. A range is represented by the number of its rows and the sum of
64-bit hashes of their contents. The hash of a row is that of an array of its texts, hashed once more as text, because the
first one adds up the hashes of the columns: rows that have swapped a value would have the same sum. Keys are ordered in the
same way on every server: texts by code point. A table without a primary key is ordered by a hash of its rows, and equal rows
are distinguished by a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.connectors.postgres.compare_connection import CompareConnection
from ggshell.connectors.postgres.compared_columns import ComparedColumn, PostgresColumns, postgres_columns
from ggshell.connectors.postgres.describe import require_all_rows, resolve, table_id
from ggshell.connectors.postgres.portable_side import portable_side
from ggshell.connectors.postgres.repair import script
from ggshell.connectors.postgres.session import execute
from ggshell.errors import NO_TABLE, NotFoundError
from ggshell.pipeline.compare.drill import TableSide
from ggshell.pipeline.compare.portable import common
from ggshell.pipeline.compare.table_side import SideExpressions, SqlTableSide
from ggshell.pipeline.heartbeat.names import INCOMING, OUTGOING
from ggshell.types import TableName, quote, quote_table

if TYPE_CHECKING:
    import psycopg

    from ggshell.pipeline.compare.tables import ComparedColumns, ComparedDatabase, ComparedTable

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
        """The columns of a table, without generated ones. Raises DatabaseError if not all rows are visible."""
        relation = table_id(self.connection, table)
        if relation is None:
            raise NotFoundError(f"table {table} does not exist", code=NO_TABLE, hint="check schema, spelling and case")
        require_all_rows(self.connection, table)
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
        expressions = _expressions(table, shape, theirs, partitioned=partitioned)
        return SqlTableSide(CompareConnection(self.connection), expressions)

    def time(self) -> str:
        return str(execute(self.connection, "SELECT date_trunc('second', now())::text")[0][0])

    def can_repair(self, source: ComparedDatabase) -> bool:
        return isinstance(source, PostgresComparison)

    def repair_script(self, found: Sequence[ComparedTable], when: str, *, replicated: bool) -> str:
        return script(found, when, replicated=replicated)


def _expressions(
    table: TableName, shape: PostgresColumns, other: PostgresColumns, *, partitioned: bool
) -> SideExpressions:
    """A table compared by the source's columns. ``other`` is the columns of the other side, whose types may differ.

    The rows of inheritance children are not compared with those of their parent: each child is a table of its own.
    """
    theirs = {column.name: column.type for column in other.columns}
    texts = [_text(column, theirs.get(column.name, column.type)) for column in shape.columns]
    row = f"ROW({', '.join(texts)})::text"
    array = f'ARRAY[{", ".join(texts)}]::text[] COLLATE "C"'
    key_texts = ", ".join(_text(each, theirs.get(each.name, each.type)) for each in shape.key)
    bucketed = _hash(f"ROW({key_texts})::text" if shape.key else row)
    key = [f'{_name(each)} COLLATE "C"' if each.is_text else _name(each) for each in shape.key] or [bucketed]
    return SideExpressions(
        table=f"{'' if partitioned else 'ONLY '}{_escaped(quote_table(table))} r",
        texts=texts,
        row=f'{row} COLLATE "C"',
        sums=f"count(*), coalesce(sum({_hash(f'hash_array_extended({array}, {_SEED})::text')}), 0)::text",
        key=key,
        key_texts=[f"({each})::text" for each in key],
        marks=", ".join(f"%s::{kind}" for kind in [each.type for each in shape.key] or ["bigint"]),
        bucketed=bucketed,
        keyed=bool(shape.key),
    )


def _hash(text: str) -> str:
    return f"hashtextextended({text}, {_SEED})"


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
