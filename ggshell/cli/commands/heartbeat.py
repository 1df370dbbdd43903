"""ADD, ALTER, DELETE, INFO and UPGRADE HEARTBEATTABLE, DELETE HEARTBEATENTRY, and LAG HEARTBEAT."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from ggshell.cli import supervision
from ggshell.cli.begin import begin_time
from ggshell.cli.registry import command
from ggshell.cli.results import Message, Note
from ggshell.cli.results.heartbeats import (
    HeartbeatInfo,
    HeartbeatLags,
    JobLine,
    LagObjective,
    LagTimes,
    WayLag,
    clock_warnings,
    offset_of,
)
from ggshell.cli.session import Session
from ggshell.clock import from_datetime, local_text
from ggshell.durations import DAY, HOUR, MICROSECONDS
from ggshell.groups.heartbeat_settings import required_names
from ggshell.home.events import Severity
from ggshell.monitoring.clock_offset import between_clocks
from ggshell.monitoring.lag_archive import lag_folder
from ggshell.monitoring.spreads import Objective, Spread, objectives, with_overdue

if TYPE_CHECKING:
    from ggshell.connectors.heartbeat_tables import ChangedObject, HeartbeatJob, HeartbeatTableChanges, HeartbeatTables

OFFSET_SECONDS = HOUR
"""Age limit of the heartbeats that are used to estimate the clock offset: clocks drift."""

RECENT_BEATS = 20
"""The heartbeats of a path that show how often they are sent."""

LATE_SECONDS = 5
"""How long a job may be overdue before a warning is given; Manager checks the jobs every second."""


def _reported(session: Session, made: list[ChangedObject], last: str) -> Message:
    """Report each object with its message code, write it to the error log, and add the outcome."""
    lines: list[str] = []
    for each in made:
        if each.code:
            session.event(Severity.INFO, each.code, each.text)
        lines.append(f"{local_text(session.clock.now())}  {Severity.INFO:<8}{each.code or 'GGS-00653'}  {each.text}")
    supervision.wake_heartbeat_jobs(session)
    return Message((*lines, last), apart=True)


@command("ADD HEARTBEATTABLE")
def add_heartbeat_table(
    session: Session,
    *,
    frequency: Decimal | None = None,
    retention_time: int | None = None,
    purge_frequency: int | None = None,
    partitioned: bool = False,
    targetonly: bool = False,
    notargetonly: bool = False,
) -> Message:
    """Create tables, views, procedures and jobs in the database of the login; all of them or none."""
    from ggshell.connectors.heartbeat_tables import HeartbeatTableSettings

    changes = _changes(frequency, retention_time, purge_frequency)
    given = {name: value for name, value in changes._asdict().items() if value is not None}
    target_only = targetonly and not notargetonly
    settings = HeartbeatTableSettings(partitioned=partitioned)._replace(**{**given, "target_only": target_only})
    names = required_names(session.home)
    made = session.logged_in().heartbeat_tables(names).add(settings)
    return _reported(
        session, made, f"Successfully added heartbeat table {names.heartbeat}; restart the running groups."
    )


@command("ALTER HEARTBEATTABLE")
def alter_heartbeat_table(
    session: Session,
    *,
    frequency: Decimal | None = None,
    retention_time: int | None = None,
    purge_frequency: int | None = None,
    targetonly: bool = False,
    notargetonly: bool = False,
    upgrade: bool = False,
) -> Message:
    """Change the job frequency, the retention time, or whether this database sends heartbeats."""
    if upgrade:
        return upgrade_heartbeat_table(session)
    names = required_names(session.home)
    target_only = True if targetonly else (False if notargetonly else None)
    changes = _changes(frequency, retention_time, purge_frequency)._replace(target_only=target_only)
    made = session.logged_in().heartbeat_tables(names).alter(changes)
    return _reported(session, made, f"Successfully altered heartbeat table {names.heartbeat}.")


@command("DELETE HEARTBEATTABLE")
def delete_heartbeat_table(session: Session, *, heartbeattable_name: str = "", force: bool = False) -> Message:
    """Drop all heartbeat objects. An interactive user is asked first, unless FORCE is given."""
    names = required_names(session.home, heartbeattable_name)
    tables = session.logged_in().heartbeat_tables(names)
    tables.require()
    if session.interactive and not force:
        session.confirm(f"Drop {names.heartbeat} with its history")
    made = tables.delete()
    return _reported(session, made, f"Successfully deleted heartbeat table {names.heartbeat}.")


@command("UPGRADE HEARTBEATTABLE")
def upgrade_heartbeat_table(session: Session) -> Message:
    """Add what the heartbeat objects of an older release lack."""
    names = required_names(session.home)
    made = session.logged_in().heartbeat_tables(names).upgrade()
    return _reported(session, made, f"Successfully upgraded heartbeat table {names.heartbeat}.")


@command("INFO HEARTBEATTABLE")
def info_heartbeat_table(session: Session) -> HeartbeatInfo:
    """Show the heartbeat tables, their settings and job times. Warns of overdue jobs and clock differences."""
    tables = session.logged_in().heartbeat_tables(required_names(session.home))
    state = tables.state()
    notes = [Note("GGS-00654", _late(job)) for job in state.jobs if job.late > LATE_SECONDS]
    notes += clock_warnings(tables.lags())
    for note in notes:
        session.event(Severity.WARNING, note.code, note.message)
    jobs = tuple(
        JobLine(job.name, job.every, job.retention_days, _moment(job.last_run), _moment(job.next_run), job.runs)
        for job in state.jobs
    )
    settings = state.settings
    return HeartbeatInfo(
        state.tables,
        None if settings.target_only else settings.frequency,
        settings.purge_days,
        settings.retention_days,
        state.partitioned,
        jobs,
        tuple(notes),
    )


def _changes(
    frequency: Decimal | None, retention_time: int | None, purge_frequency: int | None
) -> HeartbeatTableChanges:
    from ggshell.connectors.heartbeat_tables import HeartbeatTableChanges

    return HeartbeatTableChanges(frequency, retention_time, purge_frequency)


def _late(job: HeartbeatJob) -> str:
    return (
        f"{job.name} is {job.late:.0f} seconds overdue: check that Manager is running"
        " and that a group of this home logs in to this database"
    )


def _moment(moment: datetime | None) -> int:
    return from_datetime(moment.replace(tzinfo=UTC)) if moment is not None else 0


@command("DELETE HEARTBEATENTRY")
def delete_heartbeat_entry(session: Session, *, group_name: str, force: bool = False) -> Message:
    """Delete the heartbeat rows of a process that no longer exists."""
    names = required_names(session.home)
    tables = session.logged_in().heartbeat_tables(names)
    tables.require()
    if ("*" in group_name or "?" in group_name) and not force:
        session.confirm(f"Delete all heartbeat entries of {group_name}")
    count = tables.delete_entries(group_name)
    return Message((f"{count} heartbeat entries of {group_name} deleted from {names.heartbeat}.",), apart=True)


@command("LAG HEARTBEAT")
def lag_heartbeat(
    session: Session,
    *,
    remote_database: str = "",
    history: bool = False,
    since: str = "",
    by: str = "",
    slo: tuple[Decimal | str, ...] = (),
    archive: bool = False,
) -> HeartbeatLags | LagTimes | LagObjective:
    """Show the lag measured by heartbeats: the current lag, lag by period, or compliance with a service level."""
    begin = begin_time(since, session.clock.now()) if since else session.clock.now() - DAY * MICROSECONDS
    if slo:
        service = float(slo[0]) / 100, float(slo[-1])
        return LagObjective(tuple(_objectives(session, service, begin, remote_database, archive)))
    period = by.upper() or "HOUR"
    if archive or history or since or by:
        return LagTimes(tuple(_spreads(session, period, begin, remote_database, archive)), period)
    return _lags_now(session, remote_database)


def _spreads(session: Session, period: str, since: int, remote: str, archive: bool) -> list[Spread]:
    if archive:
        from ggshell.monitoring import lag_archive

        return lag_archive.spreads(lag_folder(session.home), period, since, remote)
    return _existing(session).spreads(period, since, remote)


def _objectives(
    session: Session, service: tuple[float, float], since: int, remote: str, archive: bool
) -> list[Objective]:
    if archive:
        from ggshell.monitoring import lag_archive

        return objectives(lag_archive.read_arrivals(lag_folder(session.home), since, remote), *service)
    tables = _existing(session)
    lags = tables.lags(remote)
    recent = tables.received(RECENT_BEATS * max(1, len(lags)), 0)
    return with_overdue(tables.objectives(service, since, remote), lags, recent, *service)


def _existing(session: Session) -> HeartbeatTables:
    """The heartbeat objects of the login. Raises NotFoundError if there are none."""
    tables = session.logged_in().heartbeat_tables(required_names(session.home))
    tables.require()
    return tables


def _lags_now(session: Session, remote: str) -> HeartbeatLags:
    tables = _existing(session)
    lags = tables.lags(remote)
    least = tables.least_lags(session.clock.now() - OFFSET_SECONDS * 1_000_000)
    ways = tuple(WayLag(lag, offset_of(lag, least)) for lag in lags)
    notes = clock_warnings(lags)
    for note in notes:
        session.event(Severity.WARNING, note.code, note.message)
    asked = session.clock.now()
    remote_time = tables.time()
    return HeartbeatLags(ways, between_clocks(asked, session.clock.now(), remote_time), tuple(notes))
