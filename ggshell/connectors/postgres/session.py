"""Connections to PostgreSQL: the login forms of GoldenGate scripts, and error messages that name the remedy."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ggshell.connectors.data_sources import data_source
from ggshell.errors import ConnectionLostError, DatabaseError, GgsError
from ggshell.links import LINKS, Blocker, Link, Seen

if TYPE_CHECKING:
    import psycopg

    from ggshell.connectors.postgres.limited import LimitedConnection
    from ggshell.time_limit import TimeLimit


LOGIN = re.compile(r"(?P<user>[^@/:\s]+)@(?P<host>/[^:]*|[^:/\s]+)(:(?P<port>\d+))?/(?P<db>[^/\s]+)")
OWN_DDL: Final = "ggshell.own_ddl"
"""The setting that marks the sessions of ggshell: their DDL statements, such as those of ADD TRANDATA, are not captured."""
REPLICATED_DDL: Final = "replicated"
"""Its value for a statement that a Replicat executes: it is in the log, marked by the origin of its transaction."""
_SESSION = (
    "-c timezone=UTC -c datestyle=ISO,MDY -c intervalstyle=postgres -c extra_float_digits=3 -c bytea_output=hex"
    f" -c default_transaction_read_only=off -c {OWN_DDL}=on"
)
CONNECT_SECONDS, BESIDE_SECONDS = 10, 2
_KEEPALIVES: Final = {"keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3"}
"""How soon the system notices that a server can no longer be reached: after a minute, instead of hours."""
_UNACKNOWLEDGED: Final = {"tcp_user_timeout": "60000"}
"""The same for a statement that the server's system does not receive.

Not for processes: a server that waits for a lock does not read either, and Replicat may send more than the buffers hold.
"""
_NOT_REACHED: Final = ("connection refused", "could not translate host name", "no route to host", "timeout expired")
_UNREACHABLE: Final = "start the server, or correct host and port of the login: ALTER CREDENTIALSTORE REPLACE USER …"
_ODBC_FIELDS = ("host", "port", "dbname", "user")
_FILES = ("passfile", "servicefile", "sslcert", "sslcrl", "sslcrldir", "sslkey", "sslkeylogfile", "sslrootcert")
"""The parameters of a connection string that name a file or a folder."""
_NO_FILES = ("system",)
"""What these parameters can be besides a file: the certificate authorities of the operating system."""


def connection_info(userid: str, password: str | None = None, source_db: str | None = None) -> str:
    """Return a libpq connection string for a login as scripts write it.

    Accepts ``user@host:port/db`` (the host may be a socket's folder), a ``postgresql://`` URL, libpq's own
    ``name=value`` form, and the name of an ODBC data source with a separate user. Raises DatabaseError for anything
    else.
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


def files_of(home: Path, login: str) -> tuple[Path, ...]:
    """The files that a login names: keys, certificates, password files and key logs. The folder of a socket is none."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    text = login.strip()
    if not text.startswith(("postgresql://", "postgres://")) and "=" not in text:
        return ()
    try:
        fields = conninfo_to_dict(text)
    except ProgrammingError:  # no connection is made with it
        return ()
    return tuple(home / str(fields[name]) for name in _FILES if fields.get(name) not in (None, "", *_NO_FILES))


def _data_source(name: str) -> dict[str, Any]:
    found = data_source(name)
    if found is not None:
        return {field: value for field, value in found.items() if field in _ODBC_FIELDS}
    if LOGIN.fullmatch(name):
        raise DatabaseError(
            f"{name} is a login, not a data source", hint=f"specify it in USERID: DBLOGIN USERID {name} PASSWORD …"
        )
    raise DatabaseError(
        f"login or data source {name} does not exist",
        hint="use user@host:port/database, or a section of odbc.ini (variable ODBCINI)",
    )


def connect(conninfo: str, *, replication: bool = False, program: str = "ggshell") -> psycopg.Connection[Any]:
    """Open an autocommit connection whose text output does not depend on the server's settings.

    Raises DatabaseError (wrong password, database does not exist …) or ConnectionLostError (the server does not
    answer).
    """

    extra: dict[str, Any] = {"replication": "database"} if replication else {}
    connection = _connect(conninfo, program, CONNECT_SECONDS, extra)
    enter(connection, conninfo, replication=replication)
    return connection


def connect_limited(conninfo: str, limit: TimeLimit | None) -> LimitedConnection:
    """Open a connection for the statements of a shell or a request, which end when the limit is reached.

    Raises the same errors as ``connect``; a limit that is reached is a lost connection.
    """
    left = CONNECT_SECONDS if limit is None else limit.left(CONNECT_SECONDS)
    if not left:
        raise ConnectionLostError("the database is not responding: the time limit of the request is reached")
    connection = _connect(conninfo, "ggshell", max(1, round(left)), {**_UNACKNOWLEDGED})
    enter(connection, conninfo, replication=False)
    connection.limit = limit
    return connection


def connect_beside(conninfo: str) -> psycopg.Connection[Any]:
    """Open a connection for a single monitoring query, with a short timeout. Raises the same errors as ``connect``."""
    return _connect(conninfo, "ggshell watch", BESIDE_SECONDS, {})


def _connect(conninfo: str, program: str, seconds: int, extra: dict[str, Any]) -> LimitedConnection:
    import psycopg

    from ggshell.connectors.postgres.limited import LimitedConnection

    try:
        return LimitedConnection.connect(
            conninfo,
            autocommit=True,
            application_name=program,
            client_encoding="UTF8",
            options=_SESSION,
            connect_timeout=seconds,
            **_unless_given(conninfo, {**_KEEPALIVES, **extra}),
        )
    except psycopg.Error as error:
        raise translate(error) from error


def _unless_given(conninfo: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings without those that the login itself has."""
    from psycopg.conninfo import conninfo_to_dict

    given = conninfo_to_dict(conninfo)
    return {name: value for name, value in settings.items() if name not in given}


def address(conninfo: str) -> str:
    """The database that a connection string names, without user or secret, as ``host:port/database``."""
    from psycopg.conninfo import conninfo_to_dict

    fields = conninfo_to_dict(conninfo)
    where = fields.get("host") or fields.get("hostaddr") or ""
    return f"{where}:{fields.get('port') or 5432}/{fields.get('dbname') or fields.get('user') or ''}"


_POSITION = re.compile(r"\n?LINE \d+: [^\n]*\n *\^")
"""The line of the statement in the server's message and the caret under it, which mean nothing in one line of text."""


def translate(error: Exception) -> GgsError:
    """Translate a database driver's error to an error of ggshell, by its SQLSTATE if it has one."""
    import psycopg

    operational = isinstance(error, psycopg.OperationalError)
    return refusal(str(error), getattr(error, "sqlstate", None) or "", operational=operational)


class _Refusal(NamedTuple):
    """A reason why a server refuses something, and its remedy.

    ``states``: its SQLSTATEs, which decide; ``part``: what the text of an error with one of them must contain, because the
    SQLSTATE has further meanings. ``text``: the reason in an error without a SQLSTATE, as libpq returns for a refused
    connection.
    """

    states: frozenset[str]
    part: str
    text: re.Pattern[str]
    words: str
    hint: str
    code: str = DatabaseError.code

    def explains(self, text: str, state: str) -> bool:
        if state:
            return state in self.states and self.part in text
        return self.text.search(text) is not None


_LOGIN_HINT: Final = "correct the login: ALTER CREDENTIALSTORE REPLACE USER …"
_REFUSALS: Final = (
    _Refusal(
        frozenset({"28000"}),
        "pg_hba.conf",
        re.compile(r"pg_hba\.conf"),
        "the server refuses the connection",
        "add a line for this host, user and database to pg_hba.conf on the server, and reload it",
    ),
    _Refusal(
        frozenset({"28000", "28P01"}),
        "",
        re.compile(r"authentication failed|no password supplied|role \".*\" (does not exist|is not permitted)"),
        "login failed",
        _LOGIN_HINT,
    ),
    _Refusal(
        frozenset({"3D000"}),
        "",
        re.compile(r"database \".*\" does not exist"),
        "login failed",
        "check the database name in the login",
    ),
    _Refusal(
        frozenset({"55000"}),
        "wal_level",
        re.compile(r"requires wal_level"),
        "the server does not log the data that replication requires",
        "ALTER SYSTEM SET wal_level = logical, then restart the server",
    ),
    _Refusal(
        frozenset({"55006"}),
        "slot",
        re.compile(r"slot .* is active for pid"),
        "the replication slot is already in use",
        "stop its other reader",
        "GGS-00411",
    ),
    _Refusal(
        frozenset({"42501"}),
        "",
        re.compile(r"must be superuser or replication role|permission denied (for|to) "),
        "a privilege is missing",
        "grant it: ALTER ROLE … REPLICATION, or GRANT …",
    ),
)
"""The first that explains an error counts."""


def refusal(text: str, state: str, *, operational: bool = False) -> GgsError:
    """Translate the server's message to an error of ggshell, by its SQLSTATE; by its text only if it has none.

    ``operational`` means that an error without a SQLSTATE is a lost connection.
    """
    text = " ".join(_POSITION.sub("", text).split())
    lowered = text.lower()
    for known in _REFUSALS:
        if known.explains(lowered, state):
            return DatabaseError(f"{known.words}: {text}", code=known.code, hint=known.hint)
    if state[:2] in ("08", "57", "53") or (operational and not state):
        hint = _UNREACHABLE if any(reason in lowered for reason in _NOT_REACHED) else ""
        return ConnectionLostError(f"the database is not responding: {text}", hint=hint)
    return DatabaseError(f"the database returned an error: {text}")


def refused(result: Any) -> GgsError:
    """Translate the error that is a result of libpq."""
    state = (result.error_field(ord("C")) or b"").decode()
    return refusal(result.error_message.decode(errors="replace"), state, operational=not state)


def execute(connection: psycopg.Connection[Any], statement: str, parameters: Any = None) -> list[tuple[Any, ...]]:
    """Run one statement and return its rows (none for a command). Driver errors are translated."""
    import psycopg

    try:
        cursor = connection.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else []
    except psycopg.Error as error:
        raise translate(error) from error


@contextmanager
def transaction(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """A transaction with translated driver errors. Its commit too may be refused or find the connection lost."""
    import psycopg

    try:
        with connection.transaction():
            yield
    except psycopg.Error as error:
        raise translate(error) from error


def require_primary(connection: psycopg.Connection[Any]) -> None:
    """Raise ConnectionLostError while the server is in recovery. A server that starts or is promoted is ready soon."""
    if execute(connection, "SELECT pg_is_in_recovery()")[0][0]:
        raise ConnectionLostError(
            "the server is in recovery and does not accept writes",
            hint="wait until it has started or is promoted; if it remains a standby, log in to its primary",
        )


def current_position(connection: psycopg.Connection[Any]) -> tuple[int, int]:
    """The current end of the log as (LSN, time in microseconds since 1970 by the database's clock)."""
    rows = execute(connection, "SELECT pg_current_wal_lsn() - '0/0', extract(epoch FROM clock_timestamp()) * 1000000")
    return int(rows[0][0]), int(rows[0][1])


def inserted_position(connection: psycopg.Connection[Any]) -> int:
    """The LSN up to which the server has generated its log, including what is not written yet."""
    return int(execute(connection, "SELECT pg_current_wal_insert_lsn() - '0/0'")[0][0])


def database_facts(connection: psycopg.Connection[Any]) -> tuple[str, str, str]:
    """(database, user, server version) of a connection."""
    row = execute(connection, "SELECT current_database(), current_user, current_setting('server_version')")[0]
    return str(row[0]), str(row[1]), str(row[2])


# The connection to PostgreSQL for other threads: what blocks it, and how to cancel its statement.


_ACTIVE = 1
PATIENCE_SECONDS = 1.0
LONGEST_STATEMENT = 200
_OBSERVED = f"""SELECT a.pid, concat(a.query_start, a.xact_start), b.pid, coalesce(b.usename, b.backend_type, ''),
       coalesce(b.application_name, ''), coalesce(b.state, ''),
       coalesce(extract(epoch FROM b.xact_start) * 1000000, 0)::bigint, left(coalesce(b.query, ''), {LONGEST_STATEMENT})
  FROM pg_stat_activity a LEFT JOIN pg_stat_activity b ON b.pid = ANY (pg_blocking_pids(a.pid))
 WHERE a.pid = ANY (%s::int[]) ORDER BY b.xact_start"""


class PostgresLink:
    """One connection to PostgreSQL. Each query about it runs on a separate, short connection."""

    patience = PATIENCE_SECONDS
    observable = True

    def __init__(self, connection: psycopg.Connection[Any], conninfo: str, *, replication: bool) -> None:
        self.canceled = False
        self.pid = connection.info.backend_pid
        self._connection = weakref.ref(connection)
        self._conninfo = conninfo
        self._replication = replication

    @property
    def waits(self) -> bool:
        """Whether a statement is running that a stop should wait for.

        A replication connection always has a running statement, and nothing waits for its end.
        """
        connection = self._connection()
        return (
            connection is not None
            and not connection.closed
            and not self._replication
            and int(connection.pgconn.transaction_status) == _ACTIVE
        )

    def address(self) -> str:
        return address(self._conninfo)

    def observe(self, links: Sequence[Link]) -> Mapping[Link, Seen]:
        mine = {link.pid: link for link in links if isinstance(link, PostgresLink)}
        with connect_beside(self._conninfo) as beside:
            rows = execute(beside, _OBSERVED, [list(mine)])
        found: dict[Link, Seen] = {}
        for pid, statement, *blocker in rows:
            link = mine[pid]
            before = found.get(link, Seen(statement or ""))
            more = () if blocker[0] is None else (Blocker(*blocker),)
            found[link] = before._replace(blockers=before.blockers + more)
        return found

    def cancel(self) -> None:
        self.canceled = True
        with connect_beside(self._conninfo) as beside:
            execute(beside, "SELECT pg_cancel_backend(%s)", [self.pid])

    def break_off(self) -> None:
        self.canceled = True
        connection = self._connection()
        if connection is None or connection.closed:
            return
        with contextlib.suppress(OSError):  # the connection has just ended by itself
            number = os.dup(connection.pgconn.socket)
            with socket.socket(fileno=number) as same:
                same.shutdown(socket.SHUT_RDWR)


def enter(connection: psycopg.Connection[Any], conninfo: str, *, replication: bool) -> None:
    """Register a connection with the process."""
    LINKS.enter(connection, PostgresLink(connection, conninfo, replication=replication))
