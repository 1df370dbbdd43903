"""The heartbeat jobs, which Manager runs where the database has no scheduler: beat, purge, and judge the lag that shows.

A job is due when its row in the database says so, and whoever takes that row runs it; so several Managers on one database,
or a Manager and cron, do no harm to each other.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ggshell.clock import Clock
from ggshell.databases.duckdb.session import is_duckdb
from ggshell.databases.postgres import heartbeat, heartbeat_rows, session
from ggshell.errors import GgsError
from ggshell.heartbeat.lags import Lag
from ggshell.heartbeat.names import HeartbeatNames
from ggshell.params.files import load_extract, load_replicat
from ggshell.process.heartbeat_settings import home_names
from ggshell.process.lag_watch import LagRules, judge
from ggshell.process.login import conninfo
from ggshell.store.checkpoint import GroupType
from ggshell.store.events import Severity
from ggshell.store.home import Home

LONGEST_WAIT = 5.0
"""Seconds within which a changed FREQUENCY is noticed."""

LOOK_SECONDS = 30.0
"""How often the groups' logins are looked up, and a database without heartbeat tables is looked at again."""

RETRY_SECONDS = 10.0
USUAL_FREQUENCY = 60.0

Event = tuple[Severity, str, str]


class JobDatabase(Protocol):
    """A database with the jobs' table."""

    name: str

    def run(self) -> float | None:
        """Run what is due; the seconds until something is again (None: nothing is planned).  Raises GgsError."""
        ...

    def lags(self) -> tuple[list[Lag], float]:
        """The ways that end here, and the seconds between two heartbeats.  Raises GgsError."""
        ...

    def close(self) -> None: ...


class _Entry:
    """A database, the steady moment at which it is looked at next, and whether its trouble was told."""

    def __init__(self, database: JobDatabase) -> None:
        self.database = database
        self.due = 0.0
        self.told = ""


class HeartbeatJobs:
    """Runs the jobs of some databases; one ``turn`` does what is due and gives the seconds to the next."""

    def __init__(
        self,
        find: Callable[[Iterable[str]], list[JobDatabase]],
        clock: Clock,
        tell: Callable[[Event], None],
        rules: Callable[[], LagRules] = LagRules,
    ) -> None:
        """``find`` gives the databases that are not among the named ones yet."""
        self._find = find
        self._clock = clock
        self._tell = tell
        self._rules = rules
        self._entries: dict[str, _Entry] = {}
        self._look = self._next_lag = clock.steady()

    def turn(self) -> float:
        """Do what is due now."""
        now = self._clock.steady()
        if now >= self._look:
            self._look = now + LOOK_SECONDS
            for database in self._find(self._entries):
                self._entries[database.name] = _Entry(database)
        judging = self._rules().every is not None and now >= self._next_lag
        for entry in self._entries.values():
            if now >= entry.due or judging:
                self._serve(entry, judging)
        if judging:
            self._next_lag = now + (self._rules().every or LOOK_SECONDS)
        soonest = min([entry.due for entry in self._entries.values()] + [self._look])
        return max(0.0, soonest - self._clock.steady())

    def look_again(self) -> None:
        """Objects were made, changed or taken away: the next turn looks at every database, known or new."""
        self._look = self._clock.steady()
        for entry in self._entries.values():
            entry.due = self._look

    def close(self) -> None:
        for entry in self._entries.values():
            entry.database.close()
        self._entries.clear()

    def _serve(self, entry: _Entry, judging: bool) -> None:
        try:
            wait = entry.database.run()
            if judging:
                self._judge(*entry.database.lags())
        except GgsError as error:
            entry.due = self._clock.steady() + RETRY_SECONDS
            if error.message != entry.told:
                entry.told = error.message
                self._tell((Severity.WARNING, error.code, f"Heartbeat jobs of {entry.database.name}: {error}"))
            return
        entry.told = ""
        entry.due = self._clock.steady() + (LONGEST_WAIT if wait is None else min(LONGEST_WAIT, max(0.0, wait)))

    def _judge(self, lags: list[Lag], frequency: float) -> None:
        for lag in lags:
            seconds = late_seconds(lag, frequency)
            severity = None if seconds is None else judge(self._rules(), seconds)
            if severity is not None:
                way = f"from {lag.beat.remote_database} to {lag.beat.local_database} ({lag.incoming.path})"
                self._tell((severity, "OGG-00976", f"Heartbeat lag {way} is {seconds:.3f} seconds."))


def late_seconds(lag: Lag, frequency: float) -> float | None:
    """What a way's lag is: the last heartbeat's, or its age once the next ones should have come."""
    age, total = lag.incoming.age, lag.incoming.parts.total
    return age if age is not None and age > 2 * frequency else total


class _Postgres:
    """A PostgreSQL database that a group of the home logs in to."""

    def __init__(self, login: str, name: str, names: HeartbeatNames) -> None:
        self.name = name
        self._login = login
        self._names = names
        self._connection: Any = None

    def run(self) -> float | None:
        with self._connected() as connection:
            if not heartbeat.exists(connection, self._names):
                return LOOK_SECONDS
            return heartbeat.run_jobs(connection, self._names)[1]

    def lags(self) -> tuple[list[Lag], float]:
        with self._connected() as connection:
            if not heartbeat.exists(connection, self._names):
                return [], USUAL_FREQUENCY
            frequency = float(heartbeat.info(connection, self._names).settings.frequency)
            return heartbeat_rows.read_lags(connection, self._names), frequency or USUAL_FREQUENCY

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """The one connection; after an error the next use opens another."""
        try:
            if self._connection is None:
                self._connection = session.connect(self._login, program="ggshell heartbeat jobs")
            yield self._connection
        except GgsError:
            self.close()
            raise


class HomeDatabases:
    """The databases that the groups of a home log in to."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._read: dict[Path, tuple[int, str]] = {}

    def __call__(self, known: Iterable[str]) -> list[JobDatabase]:
        """Those that are not known yet.  What cannot be read is passed over: its own process tells what is wrong."""
        try:
            names = home_names(self._home)
            groups = self._home.group_names()
        except GgsError:
            return []
        if names is None:
            return []
        have, found = set(known), []
        for group, kind in groups:
            login = self._login(group, kind)
            name = _name(login) if login and not is_duckdb(login) else ""
            if name and name not in have:
                have.add(name)
                found.append(_Postgres(login, name, names))
        return list(found)

    def _login(self, group: str, kind: GroupType) -> str:
        path = self._home.parameters(group)
        try:
            changed = path.stat().st_mtime_ns
            if self._read.get(path, (0, ""))[0] != changed:
                load = load_replicat if kind is GroupType.REPLICAT else load_extract
                self._read[path] = (changed, conninfo(self._home, load(path).login))
        except (GgsError, OSError):
            return ""
        return self._read[path][1]


def _name(login: str) -> str:
    """A database by what tells it apart, without secrets."""
    return session.place(login)


class Thread(NamedTuple):
    """The jobs in a thread of their own, since a database may take its time; ``look`` has it look at once, ``stop`` ends it."""

    events: queue.SimpleQueue[Event]
    look: Callable[[], None]
    stop: Callable[[], None]


def start(home: Home, clock: Clock, rules: Callable[[], LagRules]) -> Thread:
    """Begin to run the jobs of a home's databases."""
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    ending, woken = threading.Event(), threading.Event()
    jobs = HeartbeatJobs(HomeDatabases(home), clock, events.put, rules)

    def work() -> None:
        try:
            wait = 0.0
            while not ending.is_set():
                if woken.wait(wait):
                    woken.clear()
                    jobs.look_again()
                try:
                    wait = jobs.turn()
                except Exception as error:  # noqa: BLE001 - a bug here must be told, and must not end the beating
                    events.put((Severity.ERROR, "GGS-00999", f"Heartbeat jobs: {type(error).__name__}: {error}"))
                    wait = RETRY_SECONDS
        finally:
            jobs.close()

    thread = threading.Thread(target=work, name="heartbeat jobs", daemon=True)
    thread.start()

    def stop() -> None:
        ending.set()
        woken.set()
        thread.join(RETRY_SECONDS)

    return Thread(events, woken.set, stop)
