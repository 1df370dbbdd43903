"""The tables of a server."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING, Any

from ggshell.connectors.mysql.session import execute
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


def matches(name: TableName, pattern: str) -> bool:
    """Whether a pattern such as ``schema.*`` takes a table. A pattern that is not valid takes none."""
    try:
        owner, table = split_name(pattern)
    except ValueError:
        return False
    return fnmatch.fnmatchcase(name.owner, owner) and fnmatch.fnmatchcase(name.name, table)
