"""The heartbeat jobs, which Manager runs if the database has no scheduler: update, purge, and check the lag.

A row in the database records when a job is due, and the process that locks the row runs the job. Several Managers on one
database, or a Manager and cron, therefore do not interfere with each other.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from ggshell.clock import Clock
from ggshell.connectors.connector import HeartbeatDatabase
from ggshell.connectors.login import connection_string
from ggshell.connectors.registry import connector_for
from ggshell.errors import GgsError
from ggshell.groups.heartbeat_settings import home_names
from ggshell.home.checkpoint import GroupKind
from ggshell.home.events import Severity
from ggshell.home.home import Home
from ggshell.monitoring.heartbeat_lag import Lag
from ggshell.monitoring.lag_rules import LagRules, judge
from ggshell.parameters.loading import load_extract, load_replicat

LONGEST_WAIT = 5.0
"""Seconds within which a change of FREQUENCY takes effect."""

CHECK_SECONDS = 30.0
"""Seconds between two lookups of the groups' logins."""

RETRY_SECONDS = 10.0

Event = tuple[Severity, str, str]


class _Entry:
    """A database, the monotonic time of its next check, and the last error reported for it."""

    def __init__(self, database: HeartbeatDatabase) -> None:
        self.database = database
        self.due = 0.0
        self.reported = ""


class HeartbeatJobs:
    """Runs the jobs of several databases; ``turn`` runs the jobs that are due and returns the seconds to the next one."""

    def __init__(
        self,
        find: Callable[[Iterable[str]], list[HeartbeatDatabase]],
        clock: Clock,
        report: Callable[[Event], None],
        rules: Callable[[], LagRules] = LagRules,
    ) -> None:
        """``find`` returns the databases that are not among the given names."""
        self._find = find
        self._clock = clock
        self._report = report
        self._rules = rules
        self._entries: dict[str, _Entry] = {}
        self._next_check = self._next_lag = clock.steady()

    def turn(self) -> float:
        """Run the jobs that are due; return the seconds until the next turn."""
        now = self._clock.steady()
        if now >= self._next_check:
            self._next_check = now + CHECK_SECONDS
            for database in self._find(self._entries):
                self._entries[database.name] = _Entry(database)
        judging = self._rules().every is not None and now >= self._next_lag
        for entry in self._entries.values():
            if now >= entry.due or judging:
                self._serve(entry, judging)
        if judging:
            self._next_lag = now + (self._rules().every or CHECK_SECONDS)
        soonest = min([entry.due for entry in self._entries.values()] + [self._next_check])
        return max(0.0, soonest - self._clock.steady())

    def check_again(self) -> None:
        """Check every database in the next turn, because objects were created, changed or removed."""
        self._next_check = self._clock.steady()
        for entry in self._entries.values():
            entry.due = self._next_check

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
            if error.message != entry.reported:
                entry.reported = error.message
                self._report((Severity.WARNING, error.code, f"Heartbeat jobs of {entry.database.name}: {error}"))
            return
        entry.reported = ""
        entry.due = self._clock.steady() + (LONGEST_WAIT if wait is None else min(LONGEST_WAIT, max(0.0, wait)))

    def _judge(self, lags: list[Lag], frequency: float) -> None:
        for lag in lags:
            seconds = late_seconds(lag, frequency)
            severity = None if seconds is None else judge(self._rules(), seconds)
            if severity is not None:
                way = f"from {lag.beat.remote_database} to {lag.beat.local_database} ({lag.incoming.path})"
                self._report((severity, "OGG-00976", f"Heartbeat lag {way} is {seconds:.3f} seconds."))


def late_seconds(lag: Lag, frequency: float) -> float | None:
    """Return a path's lag in seconds: that of the last heartbeat, or its age if the following heartbeats are overdue."""
    age, total = lag.incoming.age, lag.incoming.parts.total
    return age if age is not None and age > 2 * frequency else total


class HomeDatabases:
    """The databases that the groups of a home log in to."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._read: dict[Path, tuple[int, str]] = {}

    def __call__(self, known: Iterable[str]) -> list[HeartbeatDatabase]:
        """Return the databases that are not in ``known``.

        Files that cannot be read are skipped, because the process that they belong to reports the error.
        """
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
            connector = connector_for(login)
            place = connector.address(login) if login else ""
            database = connector.heartbeat_jobs(login, names) if place and place not in have else None
            if database is not None:
                have.add(place)
                found.append(database)
        return found

    def _login(self, group: str, kind: GroupKind) -> str:
        path = self._home.parameters(group)
        try:
            changed = path.stat().st_mtime_ns
            if self._read.get(path, (0, ""))[0] != changed:
                load = load_replicat if kind is GroupKind.REPLICAT else load_extract
                self._read[path] = (changed, connection_string(self._home, load(path).login))
        except (GgsError, OSError):
            return ""
        return self._read[path][1]


class Thread(NamedTuple):
    """The separate thread that runs the jobs, because a database may be slow.

    ``wake`` makes the thread check all databases at once; ``stop`` ends it.
    """

    events: queue.SimpleQueue[Event]
    wake: Callable[[], None]
    stop: Callable[[], None]


def start(home: Home, clock: Clock, rules: Callable[[], LagRules]) -> Thread:
    """Start the thread that runs the jobs of a home's databases."""
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    ending, woken = threading.Event(), threading.Event()
    jobs = HeartbeatJobs(HomeDatabases(home), clock, events.put, rules)

    def work() -> None:
        try:
            wait = 0.0
            while not ending.is_set():
                if woken.wait(wait):
                    woken.clear()
                    jobs.check_again()
                try:
                    wait = jobs.turn()
                except Exception as error:  # noqa: BLE001 - a bug must be reported but must not stop the heartbeats
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
