"""The tables of a server."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING, Any

from ggshell.connectors.mysql.session import execute
from ggshell.errors import NO_TABLE, NotFoundError
from ggshell.types import TableName, split_name

if TYPE_CHECKING:
    from pymysql.connections import Connection

_SYSTEM_SCHEMAS = ("information_schema", "performance_schema", "mysql", "sys")
"""The databases of the server itself."""


def user_tables(connection: Connection[Any]) -> list[TableName]:
    """Return the tables of all schemas that are not the server's own, in order."""
    rows = execute(
        connection,
        "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE IN ('BASE TABLE',"
        " 'SYSTEM VERSIONED') AND TABLE_SCHEMA NOT IN %s ORDER BY 1, 2",
        [_SYSTEM_SCHEMAS],
    )
    return [TableName(owner, name) for owner, name in rows]


def table_exists(connection: Connection[Any], table: TableName) -> bool:
    """Whether a table exists, as the login may see it."""
    text = "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
    return bool(execute(connection, text, [*table]))


def matches(name: TableName, pattern: str) -> bool:
    """Whether a pattern such as ``schema.*`` takes a table. A pattern that is not valid takes none."""
    try:
        owner, table = split_name(pattern)
    except ValueError:
        return False
    return fnmatch.fnmatchcase(name.owner, owner) and fnmatch.fnmatchcase(name.name, table)


def named_tables(connection: Connection[Any], pattern: str) -> list[TableName]:
    """Return the tables that a pattern takes. Raises NotFoundError if there are none."""
    found = [table for table in user_tables(connection) if matches(table, pattern)]
    if not found:
        raise NotFoundError(f"no table matches {pattern}", code=NO_TABLE, hint="check the name and its case")
    return found


def primary_key(connection: Connection[Any], table: TableName) -> tuple[str, ...]:
    """Return the columns of a table's primary key; none if it has no primary key."""
    rows = execute(
        connection,
        "SELECT COLUMN_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
        " AND INDEX_NAME = 'PRIMARY' ORDER BY SEQ_IN_INDEX",
        list(table),
    )
    return tuple(str(name) for (name,) in rows)
