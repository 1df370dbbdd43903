"""Reads the catalog's descriptions of tables: their names, columns and keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ggshell.connectors.postgres.session import execute
from ggshell.errors import NO_TABLE, DatabaseError, NotFoundError
from ggshell.record.definition import Column, column_number
from ggshell.types import TableName, quote_table, split_name

if TYPE_CHECKING:
    import psycopg

OWN_SCHEMA: Final = "ggshell"
"""The schema with ggshell's bookkeeping. A pattern with wildcards never matches a table in it."""
_PRIVATE: Final = (
    "'schematrandata', 'ddl_secret', 'truncate_secret', 'load', 'load_part', 'load_entry', 'move_checkpoints',"
    " 'move_checkpoints_lox'"
)
"""The tables there that no statement may name either."""
_COLUMNS = """
WITH RECURSIVE family (member) AS (  -- pg_partition_tree would wait for the locks of DDL
  SELECT %(relation)s::oid UNION
  SELECT c.oid FROM family JOIN pg_inherits i ON i.inhparent = member JOIN pg_class c ON c.oid = i.inhrelid
   WHERE c.relispartition)
SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.atttypid::bigint, NOT a.attnotnull,
       coalesce(a.attnum = ANY ((pk.indkey::int2[])[0:pk.indnkeyatts - 1]), false), a.attidentity::text, a.attgenerated::text,
       a.attnum::int, missing.value, a.attrelid::bigint
  FROM pg_attribute a
  LEFT JOIN (SELECT DISTINCT ON (attname) attname, (attmissingval::text::text[])[1] AS value
               FROM pg_attribute
              WHERE atthasmissing AND attrelid IN (SELECT member FROM family)
              ORDER BY attname, attrelid) missing USING (attname)
  LEFT JOIN pg_index pk ON pk.indrelid = a.attrelid AND pk.indisprimary AND pk.indimmediate
 WHERE a.attrelid = %(relation)s AND a.attnum > 0 AND NOT a.attisdropped
 ORDER BY a.attnum"""


def like_pattern(text: str) -> str:
    """Convert a name with ``*`` and ``?`` to a LIKE pattern (escape character ``\\``)."""
    escaped = text.replace("\\", "\\\\").replace("%", r"\%").replace("_", r"\_")
    return escaped.replace("*", "%").replace("?", "_")


def resolve(connection: psycopg.Connection[Any], pattern: str) -> list[TableName]:
    """The tables that ``schema.table`` names, with ``*`` and ``?`` as wildcards in both parts.

    Partitions are left out, and ggshell's own schema if there are wildcards. Raises NotFoundError when there are none.
    """
    found = matching(connection, pattern)
    if not found:
        raise NotFoundError(f"no table matches {pattern}", code=NO_TABLE, hint="check schema, spelling and case")
    return found


def matching(connection: psycopg.Connection[Any], pattern: str) -> list[TableName]:
    """Same as ``resolve``, but returns an empty list when there are none."""
    return _matching(connection, pattern, "p")


def unlogged(connection: psycopg.Connection[Any], pattern: str) -> list[TableName]:
    """The UNLOGGED tables that a pattern names. Their changes are not in the log."""
    return _matching(connection, pattern, "u")


def _matching(connection: psycopg.Connection[Any], pattern: str, persistence: str) -> list[TableName]:
    parts = split_name(pattern)
    owner, name = parts[-2:] if len(parts) > 1 else ("public", parts[0])
    rows = execute(
        connection,
        "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence = %s"
        " AND n.nspname LIKE %s AND c.relname LIKE %s AND n.nspname NOT LIKE 'pg\\_%%' AND n.nspname <> 'information_schema'"
        f" AND (n.nspname <> '{OWN_SCHEMA}' OR %s AND c.relname NOT IN ({_PRIVATE})) ORDER BY 1, 2",
        (persistence, like_pattern(owner), like_pattern(name), not set("*?") & set(pattern)),
    )
    return [TableName(*row) for row in rows]


def all_tables(connection: psycopg.Connection[Any]) -> dict[TableName, bool]:
    """Every table that a pattern may name, and whether its changes are in the log (False if UNLOGGED), in one query."""
    rows = execute(
        connection,
        "SELECT n.nspname, c.relname, c.relpersistence = 'p' FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence IN ('p', 'u')"
        " AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'"
        f" AND (n.nspname <> '{OWN_SCHEMA}' OR c.relname NOT IN ({_PRIVATE})) ORDER BY 1, 2",
    )
    return {TableName(owner, name): logged for owner, name, logged in rows}


def table_id(connection: psycopg.Connection[Any], table: TableName) -> int | None:
    """The OID of a table. None if it does not exist."""
    rows = execute(connection, "SELECT to_regclass(%s)::oid::bigint", [quote_table(table)])
    return rows[0][0] if rows[0][0] is None else int(rows[0][0])


def require_all_rows(connection: psycopg.Connection[Any], table: TableName) -> None:
    """Raise DatabaseError if row security may hide rows of a table from the user of the connection."""
    if execute(connection, "SELECT row_security_active(%s::regclass)", [quote_table(table)])[0][0]:
        raise DatabaseError(
            f"row security applies to the user for {table}, so rows may be hidden",
            code="GGS-00745",
            hint="ALTER ROLE … BYPASSRLS, or use the alias of another user",
        )


class CatalogColumn(NamedTuple):
    """A column in the catalog.

    ``identity`` and ``generated``: as in pg_attribute; ``number``: attnum; ``missing``: as in ``record.definition.Column``;
    ``table``: the OID of the table.
    """

    name: str
    type_name: str
    type_id: int
    nullable: bool
    in_key: bool
    identity: str
    generated: str
    number: int
    missing: str | None
    table: int

    @property
    def recorded(self) -> Column:
        """The column as a trail describes it."""
        number = column_number(self.table, self.number)
        return Column(self.name, self.type_name, self.type_id, self.nullable, number, self.missing)


def recently_dropped(connection: psycopg.Connection[Any], relation: int) -> list[int]:
    """The numbers of the columns that were dropped since the oldest change that a slot of the database has yet to send."""
    rows = execute(
        connection,
        "SELECT attnum::int FROM pg_attribute WHERE attrelid = %s AND attnum > 0 AND attisdropped AND age(xmin) <="
        " (SELECT max(age(catalog_xmin)) FROM pg_replication_slots WHERE database = current_database())",
        [relation],
    )
    return [number for (number,) in rows]


def columns(connection: psycopg.Connection[Any], relation: int) -> list[CatalogColumn]:
    """The columns of a table, in order. A deferrable primary key is ignored: within a transaction, several rows may have the
    same one."""
    return [CatalogColumn(*row) for row in execute(connection, _COLUMNS, {"relation": relation})]
