"""One process of a load: copies parts of tables and runs definitions, each in one transaction of the target.

``python -m ggshell.connectors.postgres.load_job FD``: the descriptor is a channel on which the setup and then tasks arrive.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ggshell.connectors.postgres import session
from ggshell.connectors.postgres.copy_pump import Watch, pump
from ggshell.connectors.postgres.load_books import LoadBooks
from ggshell.connectors.postgres.lock_waits import NOT_AVAILABLE
from ggshell.connectors.postgres.session import execute
from ggshell.errors import ConnectionLostError, DatabaseError, GgsError, WaitingDdlError
from ggshell.pipeline.load.databases import LOCK_MILLISECONDS
from ggshell.pipeline.load.tasks import CopyTask, Done, Failed, Moved, Report, RunTask, Task
from ggshell.types import TableName, quote, quote_table

if TYPE_CHECKING:
    import psycopg

PROGRAM: Final = "ggshell load"
TOLD_SECONDS: Final = 0.25
_FULL: Final = ("could not extend", "no space left", "disk full", "out of memory")
SOURCE_SETTINGS: Final = (
    "SET search_path = ''",
    "SET statement_timeout = 0",
    "SET lock_timeout = 0",
    "SET idle_in_transaction_session_timeout = 0",
    "SET row_security = off",
    "SET synchronize_seqscans = off",
)
TARGET_SETTINGS: Final = (
    *SOURCE_SETTINGS[:-1],
    "SET synchronous_commit = off",
    "SET check_function_bodies = off",
    "SET xmloption = content",
    "SET vacuum_cost_delay = 0",
    "SELECT set_config('maintenance_work_mem', '256MB', false)"
    " WHERE pg_size_bytes(current_setting('maintenance_work_mem')) < 256 << 20",
)
_NO_TRIGGERS: Final = "SET session_replication_role = replica"
_LEAVE: Final = "SET client_connection_check_interval = '2s'"
_LEAVES_SINCE: Final = 140_000


class JobSetup(NamedTuple):
    """What every job needs: the logins, the snapshot of the source, and the identity of the source database."""

    source: str
    target: str
    snapshot: str
    source_id: str


def prepare_source(connection: psycopg.Connection[Any]) -> None:
    """Set a session of the source: no time limits, and names in values are qualified."""
    for setting in SOURCE_SETTINGS:
        execute(connection, setting)


def prepare_target(connection: psycopg.Connection[Any]) -> None:
    """Set a session of the target. Its triggers do not fire if the user may suppress them."""
    for setting in TARGET_SETTINGS:
        execute(connection, setting)
    with contextlib.suppress(DatabaseError):  # LOAD has checked that no table has a trigger then
        execute(connection, _NO_TRIGGERS)
    if connection.info.server_version >= _LEAVES_SINCE:
        with contextlib.suppress(DatabaseError):  # not on every platform
            execute(connection, _LEAVE)


class _Job:
    """Both connections of a job, opened when a task needs them, and again after one was lost."""

    def __init__(self, setup: JobSetup, channel: Connection) -> None:
        self._setup = setup
        self._channel = channel
        self._source: psycopg.Connection[Any] | None = None
        self._target: psycopg.Connection[Any] | None = None
        self._locked: set[TableName] = set()

    def run(self, task: Task) -> Report:
        """Do a task. A failed one is rolled back, with both connections."""
        try:
            return self._copied(task) if isinstance(task, CopyTask) else self._ran(task)
        except GgsError as error:
            self._drop()
            full = any(each in error.message.lower() for each in _FULL)
            lost = isinstance(error, ConnectionLostError) and not full
            return Failed(error.message, lost, error.hint, blocked=isinstance(error, WaitingDdlError))

    def connect(self) -> None:
        """Connect while LOAD prepares the first task; if that fails, the task will say why."""
        with contextlib.suppress(GgsError):
            self._reader()
            self._writer()

    def _drop(self) -> None:
        for connection in (self._source, self._target):
            if connection is not None:
                connection.pgconn.finish()
        self._source = self._target = None

    def _reader(self) -> psycopg.Connection[Any]:
        if self._source is None:
            found = session.connect(self._setup.source, program=PROGRAM)
            prepare_source(found)
            execute(found, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            execute(found, f"SET TRANSACTION SNAPSHOT '{self._setup.snapshot}'")
            execute(found, f"SET lock_timeout = {LOCK_MILLISECONDS}")
            self._source, self._locked = found, set()
        return self._source

    def _lock(self, source: psycopg.Connection[Any], table: TableName) -> None:
        """Lock a table that is read. Raises WaitingDdlError while DDL on it waits for the snapshot's lock."""
        if table in self._locked:
            return
        try:
            execute(source, f"LOCK TABLE ONLY {quote_table(table)} IN ACCESS SHARE MODE")
        except DatabaseError as error:
            if getattr(error.__cause__, "sqlstate", "") != NOT_AVAILABLE:
                raise
            raise WaitingDdlError(f"DDL of another session waits for the locks of LOAD on {table}") from error
        self._locked.add(table)

    def _writer(self) -> psycopg.Connection[Any]:
        if self._target is None:
            found = session.connect(self._setup.target, program=PROGRAM)
            prepare_target(found)
            self._target = found
        return self._target

    def _copied(self, task: CopyTask) -> Report:
        source, target, began = self._reader(), self._writer(), time.monotonic()
        self._lock(source, task.table)
        books = LoadBooks(target, self._setup.source_id)
        with _transaction(target):
            if not books.begin_part(task):
                return Done(kept=True)
            if task.freeze:
                execute(target, f"TRUNCATE ONLY {quote_table(task.table)}")
            ticks = _Ticks(self._channel)
            watch = Watch(self._channel.fileno())
            rows = pump(source, target, reading(task), writing(task), watch, ticks)
            seconds = time.monotonic() - began
            books.end_part(task, rows, ticks.total, seconds)
        ticks.report()
        return Done(rows, ticks.total, seconds)

    def _ran(self, task: RunTask) -> Report:
        target, began = self._writer(), time.monotonic()
        with _transaction(target):
            if not LoadBooks(target, self._setup.source_id).begin_entry(task):
                return Done(kept=True)
            execute(target, task.text)
        return Done(seconds=time.monotonic() - began)


class _Ticks:
    """Counts the bytes of a copy, and reports them a few times a second."""

    def __init__(self, channel: Connection) -> None:
        self._channel = channel
        self._unreported, self._reported_at = 0, time.monotonic()
        self.total = 0

    def __call__(self, size: int) -> None:
        self.total += size
        self._unreported += size
        if time.monotonic() - self._reported_at > TOLD_SECONDS:
            self.report()

    def report(self) -> None:
        self._channel.send(Moved(self._unreported))
        self._unreported, self._reported_at = 0, time.monotonic()


@contextlib.contextmanager
def _transaction(connection: psycopg.Connection[Any]) -> Iterator[None]:
    execute(connection, "BEGIN")
    yield
    execute(connection, "COMMIT")


def reading(task: CopyTask) -> str:
    """The statement that reads a part."""
    name, columns = quote_table(task.table), ", ".join(quote(each) for each in task.columns)
    if task.blocks is None:
        what = f"{name} ({columns})" if columns else name
    else:
        first, end = task.blocks
        bound = f" AND ctid < '({end},0)'" if end is not None else ""
        what = f"(SELECT {columns} FROM ONLY {name} WHERE ctid >= '({first},0)'{bound})"
    return f"COPY {what} TO STDOUT{_options(task)}"


def writing(task: CopyTask) -> str:
    """The statement that writes a part."""
    columns = ", ".join(quote(each) for each in task.columns)
    what = f"{quote_table(task.table)} ({columns})" if columns else quote_table(task.table)
    return f"COPY {what} FROM STDIN{_options(task, 'FREEZE' if task.freeze else '')}"


def _options(task: CopyTask, more: str = "") -> str:
    options = ["FORMAT binary"] if task.binary else []
    options += [f"ENCODING '{task.encoding}'"] if task.encoding else []
    options += [more] if more else []
    return f" WITH ({', '.join(options)})" if options else ""


def main(descriptor: int) -> None:
    """Do tasks until the channel closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that gives the orders decides
    channel = Connection(descriptor)
    with contextlib.suppress(EOFError, ConnectionError):  # that process has ended
        job = _Job(channel.recv(), channel)
        job.connect()
        while True:
            channel.send(job.run(channel.recv()))


if __name__ == "__main__":
    main(int(sys.argv[1]))
