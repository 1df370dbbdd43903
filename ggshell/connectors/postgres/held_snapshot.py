"""A snapshot of a source with a known CSN, which a transaction holds until it is closed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from ggshell.connectors.postgres import session
from ggshell.connectors.postgres.session import execute
from ggshell.errors import ConnectionLostError, GgsError
from ggshell.types import Csn, parse_lsn

if TYPE_CHECKING:
    from ggshell.connectors.table_source import Wait

_TUPLES: Final = 2
_COPY_OUT: Final = 3


class HeldSnapshot:
    """``connection``: its transaction has the snapshot. ``csn``: the last commit that the snapshot contains."""

    def __init__(self, connection: Any, csn: Csn) -> None:
        self.connection = connection
        self.csn = csn

    @classmethod
    def take(cls, conninfo: str, group: str, wait: Wait) -> HeldSnapshot | None:
        """Take a snapshot, which waits for the transactions that are writing now. None when ``wait`` says to end.

        Raises DatabaseError when wal_level, a privilege or a free slot is missing, and ConnectionLostError.
        """
        program = f"ggshell extract {group}"
        exporter = session.connect(conninfo, replication=True, program=program)
        try:
            name = f"ggs_load_{group.lower()}_{os.getpid()}"
            command = f"CREATE_REPLICATION_SLOT {name} TEMPORARY LOGICAL pgoutput EXPORT_SNAPSHOT"
            found = ask(exporter.pgconn, command, wait)
            if found is None:
                return None
            lsn, snapshot = found.get_value(0, 1).decode(), found.get_value(0, 2).decode()
            connection = session.connect(conninfo, program=program)
            try:
                execute(connection, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                execute(connection, f"SET TRANSACTION SNAPSHOT '{snapshot}'")
                return cls(connection, Csn(parse_lsn(lsn)))
            except BaseException:
                connection.close()
                raise
        finally:
            exporter.close()  # also drops its slot: from here on only the transaction holds the snapshot

    def close(self) -> None:
        """Release the snapshot."""
        self.connection.close()


def ask(pgconn: Any, command: str, wait: Wait) -> Any:
    """Send a statement and wait for its first result. None when the wait ends early."""
    import psycopg

    try:
        pgconn.send_query(command.encode())
        pgconn.flush()
    except psycopg.Error as error:
        raise _lost(error) from error
    while pgconn.is_busy():
        if not wait(pgconn.socket):
            return None
        consume(pgconn)
    result = pgconn.get_result()
    check(result)
    return result


def consume(pgconn: Any) -> None:
    import psycopg

    try:
        pgconn.consume_input()
    except psycopg.Error as error:
        raise _lost(error) from error


def check(result: Any) -> None:
    """Raise the server's refusal as an error."""
    if result is None:
        raise ConnectionLostError("the source is not responding")
    if result.status in (1, _TUPLES, _COPY_OUT):
        return
    raise session.refused(result)


def _lost(error: Exception) -> GgsError:
    return ConnectionLostError(f"the connection to the source was lost: {' '.join(str(error).split())}")
