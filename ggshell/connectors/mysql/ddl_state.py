"""The state of the tables that a DDL statement names: after a crash it shows whether the statement was executed.

The server commits a statement by itself. Some can be executed again without an error, with another result: names are exchanged
back, and an index without a name is added twice.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from ggshell.connectors.mysql.session import execute, quote_name
from ggshell.errors import ConnectionLostError, DatabaseError
from ggshell.types import TableName

if TYPE_CHECKING:
    from pymysql.connections import Connection

_IDENTITY: Final = (
    "SELECT NAME, TABLE_ID FROM information_schema.INNODB_SYS_TABLES WHERE SUBSTRING_INDEX(CAST(NAME AS BINARY), '#', 1) ="
    " CONCAT(CAST(CONVERT(%s USING filename) AS BINARY), '/', CAST(CONVERT(%s USING filename) AS BINARY)) ORDER BY 1"
)
_IDENTITY_MYSQL: Final = (
    "SELECT NAME, TABLE_ID FROM information_schema.INNODB_TABLES WHERE SUBSTRING_INDEX(CAST(NAME AS BINARY), '#', 1) ="
    " CAST(%s AS BINARY) ORDER BY 1"
)
_CREATED: Final = "SELECT CREATE_TIME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
_COUNTER: Final = re.compile(r" AUTO_INCREMENT=\d+")


def state_of(connection: Connection[Any], tables: Iterable[TableName]) -> str:
    """A text that changes with the definition of one of the tables, and if one takes the place of another."""
    found = hashlib.sha256()
    for table in tables:
        found.update(repr((table, _definition(connection, table), _identity(connection, table))).encode())
    return found.hexdigest()


def _definition(connection: Connection[Any], table: TableName) -> str:
    """The definition of a table; empty if there is none."""
    rows = _answer(connection, f"SHOW CREATE TABLE {quote_name(table.owner)}.{quote_name(table.name)}")
    return _COUNTER.sub("", str(rows[0][1])) if rows else ""


def _identity(connection: Connection[Any], table: TableName) -> list[tuple[Any, ...]]:
    """What stays with a table when its name changes: InnoDB's number, or else, without the privilege PROCESS, its time."""
    return (
        _answer(connection, _IDENTITY, [*table])
        or _answer(connection, _IDENTITY_MYSQL, ["/".join(map(_file_name, table))])
        or _answer(connection, _CREATED, [*table])
    )


def _file_name(name: str) -> str:
    """A name as InnoDB has it, if it is in ASCII. Others are not found: MySQL cannot convert them in a query."""
    return re.sub(r"[^0-9A-Za-z_]", lambda match: f"@{ord(match[0]):04x}", name)


def _answer(connection: Connection[Any], text: str, values: list[str] | None = None) -> list[tuple[Any, ...]]:
    """The rows of a query; none if the server refuses it."""
    try:
        return execute(connection, text, values)
    except ConnectionLostError:
        raise
    except DatabaseError:
        return []
