"""Limits and reports what an administrator's statement waits for, naming the sessions.

A lock is waited for only briefly, because a waiting lock request blocks every later statement on the table, and an
application must never wait for ggshell. Other transactions are waited for as long as they take.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.connectors.postgres.session import connect_limited, execute, refused, transaction, translate
from ggshell.errors import ConflictError, GgsError
from ggshell.types import TableName, quote_table

if TYPE_CHECKING:
    import psycopg

LOCK_SECONDS = 3.0
_LONGEST = 120
_SHOWN = 3
NOT_AVAILABLE = "55P03"
"""The SQLSTATE of a lock that was not granted within lock_timeout."""
_FACTS = """
SELECT a.pid, coalesce(a.usename, ''), coalesce(extract(epoch FROM clock_timestamp() - a.xact_start), 0)::float8,
       coalesce(a.query, ''), coalesce(a.application_name, '')
  FROM pg_stat_activity a WHERE a.pid = ANY (%s) ORDER BY a.xact_start"""
_HOLDERS = """
SELECT l.pid FROM pg_locks l WHERE l.granted AND l.relation = to_regclass(%s) AND l.pid <> pg_backend_pid()
   AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"""


CHECK_SECONDS = 1.0
_TUPLES = 2


class BlockingSession(NamedTuple):
    """A session of the server that blocks another; ``seconds`` is the age of its transaction."""

    pid: int
    user: str
    seconds: float
    statement: str
    program: str = ""

    @property
    def name(self) -> str:
        """What identifies the transaction: a prepared one has no process, but its statement names it."""
        return f"{self.pid} {'' if self.pid else self.statement}"

    @property
    def text(self) -> str:
        """The session as text for a message."""
        flat = " ".join(self.statement.split())
        short = flat if len(flat) <= _LONGEST else f"{flat[: _LONGEST - 3]}..."
        if not self.pid:
            return f"prepared transaction of user {self.user}, {self.seconds:.0f} s old: {short}"
        who = f"pid {self.pid}, user {self.user}" + (f", program {self.program}" if self.program else "")
        return f"{who}, transaction open for {self.seconds:.0f} s, last statement: {short or 'not shown to this login'}"


Waiting = Callable[[list[BlockingSession]], None]


def sessions(connection: psycopg.Connection[Any], pids: list[int]) -> list[BlockingSession]:
    """The server's facts about some sessions, oldest transaction first."""
    return [BlockingSession(*row) for row in execute(connection, _FACTS, [pids])] if pids else []


@contextmanager
def explained(connection: psycopg.Connection[Any], table: TableName) -> Iterator[None]:
    """Run a block in a transaction. If it times out on a table's lock, raise ConflictError naming the holders."""
    try:
        with transaction(connection):
            yield
    except GgsError as error:
        if getattr(error.__cause__, "sqlstate", "") != NOT_AVAILABLE:
            raise
        pids = {row[0] for row in execute(connection, _HOLDERS, [quote_table(table)])}
        found = sessions(connection, sorted(pids))
        named = "; ".join(each.text for each in found[:_SHOWN]) or "the session that held it has ended"
        more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise ConflictError(
            f"table {table} is locked, so its TRANDATA cannot be changed: {named}{more}",
            code="GGS-00416",
            hint="try again after these transactions have ended",
        ) from None


def watched(connection: psycopg.Connection[Any], statement: str, waiting: Waiting) -> str:
    """Run a statement that may wait for other transactions, and return its single value.

    ``waiting`` is called with those transactions about once a second. An interrupt (KeyboardInterrupt) cancels the
    statement. The time limit of the login counts only while there are none. Raises DatabaseError, ConnectionLostError.
    """
    import psycopg

    from ggshell.connectors.postgres.limited import LimitedConnection

    pgconn, poll = connection.pgconn, select.poll()
    limited = connection if isinstance(connection, LimitedConnection) else None
    since = limited.now() if limited is not None else 0.0
    poll.register(pgconn.socket, select.POLLIN)
    try:
        pgconn.send_query(statement.encode())
        pgconn.flush()
        while pgconn.is_busy():
            if not poll.poll(CHECK_SECONDS * 1000):
                others = _others(connection)
                if limited is not None:
                    since = limited.now() if others else since
                    limited.require_time(since)
                waiting(others)
            else:
                pgconn.consume_input()
    except psycopg.Error as error:
        raise translate(error) from error
    except BaseException as error:
        _abandon(connection, answers=not isinstance(error, GgsError))
        raise
    first = _results(pgconn)[0]
    if first.status != _TUPLES:
        raise refused(first)
    return (first.get_value(0, 0) or b"").decode()


def _abandon(connection: psycopg.Connection[Any], *, answers: bool) -> None:
    """Cancel a statement; close the connection unless the server answers, which then confirms the cancellation."""
    from ggshell.connectors.postgres.limited import LimitedConnection

    if not answers and isinstance(connection, LimitedConnection):
        connection.give_up()
        return
    connection.cancel()
    _results(connection.pgconn)


def _results(pgconn: Any) -> list[Any]:
    results = []
    while (result := pgconn.get_result()) is not None:
        results.append(result)
    return results


def _others(connection: psycopg.Connection[Any]) -> list[BlockingSession]:
    """The transactions that are writing now in any database, including prepared ones. Uses a separate connection."""
    from psycopg.conninfo import make_conninfo

    login = make_conninfo(connection.info.dsn, password=connection.info.password or None)
    with connect_limited(login, getattr(connection, "limit", None)) as other:
        rows = execute(
            other,
            "SELECT pid FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND pid <> %s",
            [connection.info.backend_pid],
        )
        found = sessions(other, [pid for (pid,) in rows])
        prepared = execute(
            other,
            "SELECT 0, owner, extract(epoch FROM clock_timestamp() - prepared)::float8, 'PREPARE TRANSACTION ' || gid"
            " FROM pg_prepared_xacts ORDER BY prepared",
        )
    return [*found, *(BlockingSession(*row) for row in prepared)]
