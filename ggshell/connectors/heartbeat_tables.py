"""The heartbeat objects of a database: tables, views and jobs, and the lags that they measure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ggshell.durations import DAY, counted_seconds
from ggshell.pipeline.heartbeat.names import PURGE_JOB, UPDATE_JOB

if TYPE_CHECKING:
    from ggshell.monitoring.heartbeat_lag import Lag, Way
    from ggshell.monitoring.spreads import Objective, Spread


class HeartbeatTableSettings(NamedTuple):
    """The settings of the heartbeat: FREQUENCY in seconds (0: paused), RETENTION_TIME and PURGE_FREQUENCY in days.

    ``target_only`` means that the database sends no heartbeats; ``partitioned`` that the history table is partitioned.
    """

    frequency: Decimal = Decimal(60)
    retention_days: int = 30
    purge_days: int = 1
    target_only: bool = False
    partitioned: bool = False


class HeartbeatTableChanges(NamedTuple):
    """The changes of ALTER HEARTBEATTABLE; None leaves a setting unchanged."""

    frequency: Decimal | None = None
    retention_days: int | None = None
    purge_days: int | None = None
    target_only: bool | None = None


class ChangedObject(NamedTuple):
    """An object that was created, changed or dropped, and the code of the message that reports it."""

    code: str
    text: str


def days_text(number: int | None) -> str:
    """A number of days as text."""
    return "1 day" if number == 1 else f"{number} days"


def frequency_change(seconds: Decimal, verb: str) -> ChangedObject:
    """The message that the update job was created or changed."""
    if not seconds:
        return ChangedObject("OGG-14115", f"Job {UPDATE_JOB} is paused: FREQUENCY is 0.")
    return ChangedObject("OGG-14005", f"{verb} update job {UPDATE_JOB}: every {counted_seconds(seconds)}.")


def purge_change(days: int | None, kept: int | None, verb: str) -> ChangedObject:
    """The message that the purge job was created or changed."""
    text = f"{verb} purge job {PURGE_JOB}: every {days_text(days)}, keeping {days_text(kept)}."
    return ChangedObject("OGG-14018", text)


class HeartbeatJob(NamedTuple):
    """One of the two jobs; times in UTC. ``late``: seconds since it was due, or 0 if it is not overdue."""

    name: str
    every: Decimal
    retention_days: int | None
    last_run: datetime | None
    next_run: datetime | None
    runs: int
    late: Decimal


class HeartbeatState(NamedTuple):
    """The existing heartbeat objects and their settings."""

    tables: tuple[str, ...]
    jobs: tuple[HeartbeatJob, ...]
    partitioned: bool

    @property
    def settings(self) -> HeartbeatTableSettings:
        jobs = {job.name: job for job in self.jobs}
        update, purge = jobs.get(UPDATE_JOB), jobs.get(PURGE_JOB)
        return HeartbeatTableSettings(
            (update.every if update.next_run is not None else Decimal(0)) if update is not None else Decimal(0),
            (purge.retention_days or 0) if purge is not None else 0,
            int(purge.every / DAY) if purge is not None else 0,
            update is None,
            self.partitioned,
        )


class HeartbeatTables(Protocol):
    """What commands ask of the heartbeat objects of one database. Each change is all or nothing.

    Methods other than ``add`` raise NotFoundError without a heartbeat table. Times are in microseconds since 1970.
    """

    def require(self) -> None:
        """Raise NotFoundError unless the heartbeat table exists."""
        ...

    def add(self, settings: HeartbeatTableSettings) -> list[ChangedObject]:
        """Create all objects. Raises ConflictError if a heartbeat table exists, NotFoundError without a schema."""
        ...

    def alter(self, changes: HeartbeatTableChanges) -> list[ChangedObject]: ...

    def delete(self) -> list[ChangedObject]: ...

    def upgrade(self) -> list[ChangedObject]:
        """Add what objects of an older release lack."""
        ...

    def state(self) -> HeartbeatState: ...

    def delete_entries(self, group: str) -> int:
        """Delete the rows that name a process (``*`` and ``?`` are wildcards), and return how many there were."""
        ...

    def lags(self, remote: str = "") -> list[Lag]:
        """The lag of every path (of one remote database, if given)."""
        ...

    def least_lags(self, since: int) -> Mapping[Way, tuple[float | None, float | None]]:
        """The shortest incoming and outgoing lag of each path since a time, in seconds; None if there is none."""
        ...

    def received(self, number: int, first: int, group: str = "") -> list[Lag]:
        """The lags of the received heartbeats, the newest first: ``number`` of them, after leaving out ``first``.

        ``group``: only those that a process of this name has sent or applied.
        """
        ...

    def time(self) -> int:
        """The time by the database's clock."""
        ...

    def spreads(self, period: str, since: int, remote: str = "") -> list[Spread]:
        """The percentiles of each hop by period, path and remote database."""
        ...

    def objectives(self, service: tuple[float, float], since: int, remote: str = "") -> list[Objective]:
        """Each path compared with a service level: the share of heartbeats (0 to 1) within a number of seconds."""
        ...

    def history(self, columns: Sequence[str], since: int) -> Iterator[bytes]:
        """Columns of the history as CSV, in blocks as they arrive. NULL is empty, an empty text is quoted."""
        ...
