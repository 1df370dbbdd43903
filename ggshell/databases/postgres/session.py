"""Connections to PostgreSQL: the logins GoldenGate scripts use, and errors that say what to do."""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ggshell.errors import ConnectionLostError, DatabaseError, GgsError

if TYPE_CHECKING:
    import psycopg

LOGIN = re.compile(r"(?P<user>[^@/:\s]+)@(?P<host>/[^:]*|[^:/\s]+)(:(?P<port>\d+))?/(?P<db>[^/\s]+)")
_SESSION = "-c timezone=UTC -c datestyle=ISO,MDY -c intervalstyle=postgres -c extra_float_digits=3 -c bytea_output=hex"
_ODBC_NAMES = {
    "host": ("servername", "hostname", "server", "host"),
    "port": ("portnumber", "port"),
    "dbname": ("database", "db"),
    "user": ("logonid", "username", "user", "uid"),
}


def connection_info(userid: str, password: str | None = None, source_db: str | None = None) -> str:
    """A libpq connection string from a login as scripts write it.

    ``user@host:port/db`` (the host may be a socket's folder), a ``postgresql://`` URL, libpq's own ``name=value`` form, or
    the name of an ODBC data source with the user beside it.  Raises DatabaseError when it is none of these.
    """
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    text = userid.strip()
    match = LOGIN.fullmatch(text)
    if match:
        fields: dict[str, Any] = {"user": match["user"], "host": match["host"], "dbname": match["db"]}
        if match["port"]:
            fields["port"] = match["port"]
    elif text.startswith(("postgresql://", "postgres://")) or "=" in text:
        fields = dict(conninfo_to_dict(text))
    else:
        name = source_db or text.rpartition("@")[2]
        fields = _data_source(name)
        if source_db or "@" in text:
            fields["user"] = text.partition("@")[0]
    if password:
        fields["password"] = password
    return make_conninfo("", **fields)


def _data_source(name: str) -> dict[str, Any]:
    candidates = [os.environ.get("ODBCINI", ""), "odbc.ini", str(Path.home() / ".odbc.ini"), "/etc/odbc.ini"]
    for candidate in filter(None, candidates):
        parser = configparser.ConfigParser(strict=False, interpolation=None)
        try:
            parser.read(candidate)
        except configparser.Error as error:
            raise DatabaseError(f"{candidate} cannot be read: {error}") from error
        if parser.has_section(name):
            section = {key.lower(): value for key, value in parser.items(name)}
            found = {
                field: next((section[key] for key in keys if key in section), None)
                for field, keys in _ODBC_NAMES.items()
            }
            return {field: value for field, value in found.items() if value}
    raise DatabaseError(
        f"no login or data source is called {name}",
        hint="write user@host:port/database, or name a section of odbc.ini (variable ODBCINI)",
    )


def connect(conninfo: str, *, replication: bool = False, program: str = "ggshell") -> psycopg.Connection[Any]:
    """An autocommit connection whose text output is the same whatever the server's settings.

    Raises DatabaseError (wrong password, no such database …) or ConnectionLostError (nobody answers).
    """
    import psycopg

    extra: dict[str, Any] = {"replication": "database"} if replication else {}
    try:
        return psycopg.connect(
            conninfo,
            autocommit=True,
            application_name=program,
            client_encoding="UTF8",
            options=_SESSION,
            connect_timeout=10,
            **extra,
        )
    except psycopg.Error as error:
        raise translate(error) from error


def place(conninfo: str) -> str:
    """Which database a connection string leads to, without user or secret: ``host:port/database``."""
    from psycopg.conninfo import conninfo_to_dict

    fields = conninfo_to_dict(conninfo)
    where = fields.get("host") or fields.get("hostaddr") or ""
    return f"{where}:{fields.get('port') or 5432}/{fields.get('dbname') or fields.get('user') or ''}"


def translate(error: Exception) -> GgsError:
    """A database driver's error as ours, by its SQLSTATE where it has one."""
    import psycopg

    operational = isinstance(error, psycopg.OperationalError)
    return refusal(str(error), getattr(error, "sqlstate", None) or "", operational=operational)


def refusal(text: str, state: str, *, operational: bool = False) -> GgsError:
    """What the server said as one of our errors, by its SQLSTATE; ``operational``: the driver takes it for a lost connection
    when there is none."""
    text = " ".join(text.split())
    lowered = text.lower()
    if state == "28P01" or "password authentication failed" in lowered or "no password supplied" in lowered:
        return DatabaseError(f"login refused: {text}", hint="check user and password (ALTER CREDENTIALSTORE … REPLACE)")
    if "database" in lowered and "does not exist" in lowered:
        return DatabaseError(f"login refused: {text}", hint="check the database's name in the login")
    if "wal_level" in lowered:
        return DatabaseError(
            f"the server does not log what replication needs: {text}",
            hint="ALTER SYSTEM SET wal_level = logical, then restart the server",
        )
    if state == "55006" or "is active for pid" in lowered:
        return DatabaseError(
            f"the replication slot is taken: {text}", code="GGS-00411", hint="stop its other reader first"
        )
    if state == "42501" or "must be superuser or replication role" in lowered or "permission denied" in lowered:
        return DatabaseError(
            f"a privilege is missing: {text}", hint="ALTER ROLE … REPLICATION, and GRANT what it names"
        )
    if state[:2] in ("08", "57", "53") or (operational and not state):
        return ConnectionLostError(f"the database does not answer: {text}")
    return DatabaseError(f"the database refuses: {text}")


def execute(connection: psycopg.Connection[Any], statement: str, parameters: Any = None) -> list[tuple[Any, ...]]:
    """Run one statement and fetch its rows (none for a command), with our errors."""
    import psycopg

    try:
        cursor = connection.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else []
    except psycopg.Error as error:
        raise translate(error) from error


@contextmanager
def transaction(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """A transaction, with our errors: its end too may be refused, or find the connection gone."""
    import psycopg

    try:
        with connection.transaction():
            yield
    except psycopg.Error as error:
        raise translate(error) from error


def require_primary(connection: psycopg.Connection[Any]) -> None:
    """Raises ConnectionLostError while the server is in recovery: one that starts or is promoted is ready soon."""
    if execute(connection, "SELECT pg_is_in_recovery()")[0][0]:
        raise ConnectionLostError(
            "the server is in recovery, it takes no writes yet",
            hint="it is waited for while it starts or is promoted; if it is to stay a standby, log in to its primary",
        )


def current_position(connection: psycopg.Connection[Any]) -> tuple[int, int]:
    """The log's present end as (LSN, time in microseconds since 1970 by the database's clock)."""
    rows = execute(connection, "SELECT pg_current_wal_lsn() - '0/0', extract(epoch FROM clock_timestamp()) * 1000000")
    return int(rows[0][0]), int(rows[0][1])


def database_facts(connection: psycopg.Connection[Any]) -> tuple[str, str, str]:
    """(database, user, server version) of a connection."""
    row = execute(connection, "SELECT current_database(), current_user, current_setting('server_version')")[0]
    return str(row[0]), str(row[1]), str(row[2])
