"""What the catalog says of tables: which there are, their columns, their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ggshell.databases.postgres.session import execute
from ggshell.errors import NotFoundError
from ggshell.types import TableName, split_name

if TYPE_CHECKING:
    import psycopg

_COLUMNS = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.atttypid::bigint, NOT a.attnotnull,
       coalesce(a.attnum = ANY (pk.indkey::int2[]), false), a.attidentity::text, a.attgenerated::text
  FROM pg_attribute a
  LEFT JOIN pg_index pk ON pk.indrelid = a.attrelid AND pk.indisprimary
 WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
 ORDER BY a.attnum"""


def quote(name: str) -> str:
    """An identifier for SQL."""
    return '"' + name.replace('"', '""') + '"'


def quote_table(table: TableName) -> str:
    return f"{quote(table.owner)}.{quote(table.name)}"


def like_pattern(text: str) -> str:
    """A name with ``*`` and ``?`` as a LIKE pattern (escape character ``\\``)."""
    escaped = text.replace("\\", "\\\\").replace("%", r"\%").replace("_", r"\_")
    return escaped.replace("*", "%").replace("?", "_")


def resolve(connection: psycopg.Connection[Any], pattern: str) -> list[TableName]:
    """The tables that ``schema.table`` names, wildcards ``*`` and ``?`` in both parts; partitions count as their root.

    Raises NotFoundError when there is none.
    """
    parts = split_name(pattern)
    owner, name = parts[-2:] if len(parts) > 1 else ("public", parts[0])
    rows = execute(
        connection,
        "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence = 'p'"
        " AND n.nspname LIKE %s AND c.relname LIKE %s AND n.nspname NOT LIKE 'pg\\_%%' AND n.nspname <> 'information_schema'"
        " ORDER BY 1, 2",
        (like_pattern(owner), like_pattern(name)),
    )
    if not rows:
        raise NotFoundError(f"no table is called {pattern}", code="GGS-00211", hint="check schema, spelling and case")
    return [TableName(*row) for row in rows]


def table_id(connection: psycopg.Connection[Any], table: TableName) -> int | None:
    """The table's OID, None when it does not exist."""
    rows = execute(connection, "SELECT to_regclass(%s)::oid::bigint", [quote_table(table)])
    return rows[0][0] if rows[0][0] is None else int(rows[0][0])


def columns(connection: psycopg.Connection[Any], relation: int) -> list[tuple[str, str, int, bool, bool, str, str]]:
    """(name, type text, type OID, nullable, in the primary key, identity, generated) of a table's columns, in order."""
    return [(*row,) for row in execute(connection, _COLUMNS, [relation])]
