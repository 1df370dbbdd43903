"""The services that ggshell requests from a kind of database: the interface of every ``connectors/<kind>/connector.py``.

A kind overrides the methods that it supports. Most methods of this base class raise an error that names the kind, so a new
kind can be used after its first method. The others have a result that is right for many kinds: ``connection_string``
and ``address`` return the login, ``checkpoint_script`` and ``files`` are empty, and
``queries`` and ``heartbeat_jobs`` return None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

from ggshell.errors import StateError
from ggshell.types import TableName

if TYPE_CHECKING:
    from ggshell.connectors.folder_target import FolderTarget
    from ggshell.connectors.logged_in import Credentials, LoggedIn
    from ggshell.connectors.source import SourceDatabase, SourceProcess
    from ggshell.connectors.source_log import SourceLog
    from ggshell.connectors.table_source import TableSource
    from ggshell.connectors.target_setup import TargetSetup
    from ggshell.connectors.type_pairs import KindPairs
    from ggshell.home.home import Home
    from ggshell.monitoring.heartbeat_lag import Lag
    from ggshell.parameters.process_parameters import ExtractParameters
    from ggshell.pipeline.apply.applier import NamingTarget, Turns
    from ggshell.pipeline.apply.target import GroupTarget, Target
    from ggshell.pipeline.heartbeat.names import HeartbeatNames
    from ggshell.pipeline.transform.environment import QueryDatabase
    from ggshell.time_limit import TimeLimit


class DatabaseFacts(NamedTuple):
    """A database as @GETENV and trail headers name it."""

    name: str
    user: str
    version: str


class HeartbeatDatabase(Protocol):
    """A database that has, or may get, the table of the heartbeat jobs. The connection is made when it is needed."""

    name: str
    """The database, without user or secret."""

    def run(self) -> float | None:
        """Run the jobs that are due; return the seconds until the next one, or None if the database has no jobs.

        Raises GgsError.
        """
        ...

    def lags(self) -> tuple[list[Lag], float]:
        """Return the lags of the paths that end here, and the seconds between two heartbeats. Raises GgsError."""
        ...

    def close(self) -> None: ...


class Connector:
    """One kind of database. Its modules, and its client library, are imported inside the methods that need them."""

    kind: ClassVar[str]
    """The name of the folder, for example ``postgres``."""
    title: ClassVar[str]
    """The name in messages, for example ``PostgreSQL``."""

    def cannot(self, what: str, hint: str = "") -> StateError:
        """Return the error for something that this kind does not support."""
        return StateError(f"{self.title} does not support {what}", hint=hint)

    # What commands ask

    def log_in(self, given: Credentials, home: Path, limit: TimeLimit | None = None) -> LoggedIn:
        """Connect to a database. ``home``: the folder that relative logins start from. Raises DatabaseError.

        ``limit``: ends the statements of this login that a database would let wait for longer. Without it they may wait.
        """
        raise self.cannot("DBLOGIN")

    @property
    def log(self) -> SourceLog:
        """The log that an Extract captures, as commands see it."""
        raise self.cannot("capture")

    def address(self, conninfo: str) -> str:
        """The database that a connection string names, without user or secret."""
        return conninfo

    def files(self, home: Path, login: str) -> tuple[Path, ...]:
        """The files and folders that a login names. ``home``: the folder that relative logins start from."""
        return ()

    def folder_target(self, home: Home, text: str, group: str) -> FolderTarget:
        """The folder that TARGET names, for a group that delivers to files. Raises ParameterError, NotFoundError."""
        raise self.cannot("delivery to a folder")

    def checkpoint_script(self, table: str) -> str:
        """The statements that create a checkpoint table manually; empty for a kind without checkpoint tables."""
        return ""

    def type_tables(self) -> tuple[KindPairs, ...]:
        """How values of other kinds arrive in this kind as a target, for docs/types.md."""
        return ()

    # What processes ask

    vendor: ClassVar[str]
    """The name of the database in reports and trail headers, for example ``Oracle``."""
    program: ClassVar[str] = "ggshell.groups"
    """The package whose entry point runs a Replicat that delivers to this kind."""

    load_program: ClassVar[str] = ""
    """The module that runs a job of LOAD; empty for a kind that LOAD does not support."""

    def connection_string(self, home: Path, userid: str, password: str, source: str) -> str:
        """Return a login as one text, which the other methods take as ``login``.

        ``source``: the value of SOURCEDB or TARGETDB. Relative files are relative to ``home``. Raises ParameterError,
        DatabaseError.
        """
        return source or userid

    def source(
        self, process: SourceProcess, parameters: ExtractParameters, wanted: Callable[[TableName], bool], login: str
    ) -> SourceDatabase:
        """Return the source of an Extract; nothing is connected yet."""
        raise self.cannot("capture")

    def table_source(self, login: str) -> TableSource:
        """Return the tables for an initial load; nothing is connected yet."""
        raise self.cannot("an initial load")

    def target(self, setup: TargetSetup) -> GroupTarget:
        """Connect to a group's target; for a parallel or coordinated Replicat, also with the methods of ``Watermarks``.

        Raises DatabaseError, ConnectionLostError, ConflictError, NotFoundError, ParameterError.
        """
        raise self.cannot("delivery")

    def applier_target(self, setup: TargetSetup, number: int, rows: Iterator[int], turns: Turns | None) -> NamingTarget:
        """Connect an applier of a parallel Replicat.

        ``rows``: the numbers of rows with ids of transactions, which all appliers share. ``turns``: the order of commits.
        """
        raise self.cannot("a parallel Replicat")

    def thread_target(self, setup: TargetSetup) -> Target:
        """Connect a thread of a coordinated Replicat."""
        raise self.cannot("a coordinated Replicat")

    def queries(self, login: str, program: str, report: Callable[[str], None]) -> QueryDatabase | None:
        """Return the database that SQLEXEC asks, or None if it needs a database of another kind.

        ``program``: the name that the connection shows. ``report``: reports a query that failed.
        """
        return None

    def heartbeat_jobs(self, login: str, names: HeartbeatNames) -> HeartbeatDatabase | None:
        """Return the database in which Manager runs the heartbeat jobs, or None if there are none."""
        return None
