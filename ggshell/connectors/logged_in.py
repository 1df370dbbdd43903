"""The database of DBLOGIN: who is logged in, and everything that commands may ask of that database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.errors import StateError

if TYPE_CHECKING:
    from ggshell.connectors.checkpoint_tables import CheckpointTables
    from ggshell.connectors.connector import Connector
    from ggshell.connectors.heartbeat_tables import HeartbeatTables
    from ggshell.connectors.move_facts import MoveFacts
    from ggshell.connectors.move_side import MoveSide
    from ggshell.connectors.source import Unread
    from ggshell.connectors.table_logging import TableLogging
    from ggshell.pipeline.compare.table_side import QueryEngine
    from ggshell.pipeline.compare.tables import ComparedDatabase
    from ggshell.pipeline.heartbeat.names import HeartbeatNames
    from ggshell.pipeline.load.databases import LoadSnapshot, LoadTarget
    from ggshell.record.sequences import SequenceValue
    from ggshell.types import TableName


class Credentials(NamedTuple):
    """What a login statement gives. ``password`` is None if it gives none, ``source`` the data source given with a user."""

    userid: str
    password: str | None = None
    source: str = ""

    @property
    def names_kind(self) -> str:
        """The text that names the kind of database: the data source, or else the user name."""
        return self.source or self.userid


class Column(NamedTuple):
    """A column of a table. ``type``: as the database shows it; ``key``: it belongs to the primary key."""

    name: str
    type: str
    nullable: bool
    key: bool


class LoggedIn:
    """A login to a database. A kind overrides what its databases can do; this class refuses the rest.

    ``conninfo`` contains the password and is never shown.
    """

    def __init__(self, connector: Connector, conninfo: str, user: str, database: str, version: str = "") -> None:
        self.connector = connector
        self.conninfo = conninfo
        self.user = user
        self.database = database
        self.version = version

    def __str__(self) -> str:
        return f"{self.user}@{self.database}"

    def __repr__(self) -> str:
        return f"LoggedIn({self})"

    def refused(self) -> StateError:
        """Return the error for a command that databases of this kind do not support."""
        return self.connector.cannot("this command")

    def greeting(self, now: int) -> tuple[str, ...]:
        """The lines of DBLOGIN; ``now`` is in microseconds since 1970."""
        return ("Successfully logged into database.",)

    def table_logging(self) -> TableLogging:
        """What the database logs of its tables: TRANDATA and SCHEMATRANDATA."""
        raise self.refused()

    def heartbeat_tables(self, names: HeartbeatNames) -> HeartbeatTables:
        """The heartbeat objects with these names, whether they exist or not."""
        raise self.refused()

    def checkpoint_tables(self) -> AbstractContextManager[CheckpointTables]:
        """The checkpoint tables of the database, for the time of a ``with`` block.

        Raises ConflictError if another process has the database for itself.
        """
        raise self.refused()

    def comparison(self, engine: Callable[[], QueryEngine]) -> ComparedDatabase:
        """The database as COMPARE reads it.

        ``engine``: returns what computes over the tables of a kind that has no server.
        """
        raise self.refused()

    def load_snapshot(self, tables: Sequence[str], target: LoggedIn, pause: Callable[[float], bool]) -> LoadSnapshot:
        """A snapshot of some tables for LOAD; ``pause`` waits for some seconds, and is true if the load is to end."""
        raise self.refused()

    def load_target(self, source: Any) -> LoadTarget:
        """The database as the target of LOAD; ``source``: the setup of the snapshot."""
        raise self.refused()

    def move_side(self) -> MoveSide:
        """The database as one side of a move, with a connection of its own."""
        raise self.refused()

    def move_facts(self, schemas: Sequence[str]) -> MoveFacts:
        """The facts that the check before a move reads. ``schemas``: those to move, empty for all of users."""
        raise self.refused()

    def tables(self) -> list[TableName]:
        """The tables of the database."""
        raise self.refused()

    def columns(self, table: TableName) -> list[Column]:
        """The columns of a table. Raises NotFoundError."""
        raise self.refused()

    def open_transactions(self) -> list[Unread]:
        """The open transactions that have written something, the oldest first."""
        raise self.refused()

    def flush_sequences(self, pattern: str) -> list[SequenceValue]:
        """Write the exact values of the sequences that a pattern names to the log, and return them."""
        raise self.refused()

    def log_end(self) -> tuple[str, int]:
        """The current end of the log as text, and the time by the database's clock in microseconds since 1970."""
        raise self.refused()

    def close(self) -> None:
        """Close the connection; the login is not used afterwards."""


def required(login: LoggedIn | None) -> LoggedIn:
    """Return the login. Raises StateError if there is none."""
    if login is None:
        raise StateError("Not logged into database, use DBLOGIN.", code="GGS-00204")
    return login
