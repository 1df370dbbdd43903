"""What a server must be set to before it can be captured, checked when an Extract is added and at each start."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ggshell.connectors.mysql.session import ServerVersion, execute, variables
from ggshell.errors import CaptureError, DatabaseError
from ggshell.types import TableName

if TYPE_CHECKING:
    from pymysql.connections import Connection

UNSUITABLE: Final = "GGS-00479"
_OPAQUE_TYPES: Final = frozenset({"uuid", "inet4", "inet6"})
"""Types of MariaDB whose values are bytes in the log, with nothing that says what they are."""
_FIRST: Final = {True: (10, 5, 0), False: (8, 0, 1)}
"""The first versions that log the names of columns: of MariaDB, and of MySQL."""


class Setting(NamedTuple):
    """A setting that capture requires. ``holds``: whether a value will do; ``hint``: how to set it."""

    name: str
    holds: Callable[[str], bool]
    hint: str


SETTINGS: Final = (
    Setting("log_bin", lambda value: value == "ON", "set log_bin in the server's option file and restart the server"),
    Setting("binlog_format", lambda value: value == "ROW", "SET GLOBAL binlog_format = ROW"),
    Setting("binlog_row_image", lambda value: value.upper() == "FULL", "SET GLOBAL binlog_row_image = FULL"),
    Setting("binlog_row_metadata", lambda value: value == "FULL", "SET GLOBAL binlog_row_metadata = FULL"),
    Setting("server_id", lambda value: value != "0", "set server_id in the server's option file"),
)
"""In the order in which they are reported."""


def unmet(connection: Connection[Any], version: ServerVersion) -> list[str]:
    """Return what is missing for capture, each with what to do; empty if the server can be captured."""
    if version.number < _FIRST[version.mariadb]:
        first = ".".join(map(str, _FIRST[version.mariadb]))
        return [f"{version.product} {version.shown} does not log column names: use {version.product} {first} or newer"]
    found = variables(connection, *(setting.name for setting in SETTINGS))
    missing: list[str] = []
    for setting in SETTINGS:
        value = found.get(setting.name)
        if value is None or not setting.holds(value):
            missing.append(f"{setting.name} is {value or 'not set'}: {setting.hint}")
    return missing + _missing_rights(connection, version)


def _missing_rights(connection: Connection[Any], version: ServerVersion) -> list[str]:
    """The privileges that the user of the login lacks."""
    grants = [str(row[0]).upper().removeprefix("GRANT ") for row in execute(connection, "SHOW GRANTS")]
    held = {
        name.strip() for grant in grants if " ON *.* TO " in grant for name in grant.partition(" ON ")[0].split(",")
    }
    if held & {"ALL PRIVILEGES", "SUPER"}:
        return []
    needed = ["REPLICATION SLAVE"]
    needed.append("BINLOG MONITOR" if version.mariadb else "REPLICATION CLIENT")
    names: dict[str, tuple[str, ...]] = {
        "REPLICATION SLAVE": ("REPLICATION SLAVE", "REPLICATION REPLICA"),
        "BINLOG MONITOR": ("BINLOG MONITOR", "REPLICATION CLIENT"),
        "REPLICATION CLIENT": ("REPLICATION CLIENT",),
    }
    lacking = [name for name in needed if not held & set(names[name])]
    user = execute(connection, "SELECT CURRENT_USER()")[0][0]
    return [f"{user} lacks the privilege {name}: GRANT {name} ON *.* TO the user" for name in lacking]


def require_captured(connection: Connection[Any], version: ServerVersion) -> None:
    """Raise DatabaseError if the server cannot be captured, with everything that is missing."""
    missing = unmet(connection, version)
    if missing:
        first, _, hint = missing[0].partition(": ")
        more = f"; also: {'; '.join(missing[1:])}" if len(missing) > 1 else ""
        raise DatabaseError(
            f"the server does not log the information that capture requires: {first}",
            code=UNSUITABLE,
            hint=f"{hint}{more}",
        )


def opaque_columns(connection: Connection[Any], table: TableName) -> list[tuple[str, str]]:
    """Return the name and type of the columns of a table whose type the log does not name."""
    text = (
        "SELECT COLUMN_NAME, DATA_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
        " AND DATA_TYPE IN %s ORDER BY ORDINAL_POSITION"
    )
    return [(str(name), str(kind)) for name, kind in execute(connection, text, [*table, sorted(_OPAQUE_TYPES)])]


def require_named_types(connection: Connection[Any], wanted: Callable[[TableName], bool]) -> None:
    """Raise DatabaseError if a column of a wanted table has a type that the log does not name."""
    for schema, table, column, kind in execute(
        connection,
        "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, DATA_TYPE FROM information_schema.COLUMNS WHERE DATA_TYPE IN %s",
        (sorted(_OPAQUE_TYPES),),
    ):
        if wanted(name := TableName(schema, table)):
            require_named_type(name, column, kind)


def require_named_type(table: TableName, column: str, kind: str) -> None:
    """Raise DatabaseError if the log does not name a column's type, so that its values cannot be read."""
    if kind in _OPAQUE_TYPES:
        raise DatabaseError(
            f"column {column} of {table} has the type {kind}, which the log does not identify",
            code="GGS-00481",
            hint="leave the table out with TABLEEXCLUDE, or change the type to char or binary",
        )


def require_no_versions(connection: Connection[Any], wanted: Callable[[TableName], bool]) -> None:
    """Raise CaptureError if a wanted table is system-versioned."""
    text = "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE = 'SYSTEM VERSIONED'"
    for row in execute(connection, text):
        if wanted(name := TableName(*row)):
            raise versioned(name)


def versioned(table: TableName) -> CaptureError:
    """The log has the former versions of rows as rows, and a delete as an update of the hidden column with its time."""
    return CaptureError(
        f"table {table} is system-versioned: the log mixes its rows with their former versions",
        code="GGS-00490",
        hint="leave the table out with TABLEEXCLUDE",
    )


def server_identity(connection: Connection[Any], version: ServerVersion) -> str:
    """A text that is the same for the same server at each start, and another one for each other server."""
    name = "server_uid" if version.mariadb else "server_uuid"
    found = variables(connection, name, "hostname", "port", "server_id")
    if found.get(name):
        return found[name]
    return ":".join(found.get(part, "") for part in ("hostname", "port", "server_id"))
