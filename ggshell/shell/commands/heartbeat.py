"""ADD, ALTER, DELETE, INFO and UPGRADE HEARTBEATTABLE, DELETE HEARTBEATENTRY."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from ggshell.clock import from_datetime, local_text
from ggshell.errors import NotFoundError, UsageError
from ggshell.heartbeat.history import Arrival, objectives, spreads
from ggshell.heartbeat.names import HeartbeatNames
from ggshell.heartbeat.offset import between_clocks
from ggshell.process.lag_archive import lag_folder
from ggshell.shell import supervision
from ggshell.shell.begin import begin_time
from ggshell.shell.heartbeats import (
    HeartbeatInfo,
    HeartbeatLags,
    JobLine,
    LagObjective,
    LagTimes,
    WayLag,
    clock_warnings,
    offset_of,
)
from ggshell.shell.registry import command
from ggshell.shell.results import Message, Note
from ggshell.shell.session import Session
from ggshell.store.events import Severity

if TYPE_CHECKING:
    from ggshell.databases.postgres.heartbeat import Changes, Job, Made

OFFSET_SECONDS = 3600
"""How far back heartbeats tell of the clocks' difference: clocks drift."""

DAY = 86_400_000_000
LATE_SECONDS = 5
"""How long a job may be overdue before it is worth a warning: Manager looks every second."""


def names_of(session: Session, table: str = "") -> HeartbeatNames:
    """The objects' names, by the statement or by GLOBALS.  Raises NotFoundError when neither names a schema."""
    from ggshell.heartbeat.names import heartbeat_names
    from ggshell.process.heartbeat_settings import home_names

    found = home_names(session.home)
    if table:
        found = heartbeat_names(found.schema if found is not None else "", table)
    if found is None:
        raise NotFoundError(
            "GLOBALS names no schema for heartbeat objects", code="OGG-14036", hint="GGSCHEMA schema_name in GLOBALS"
        )
    return found


def _told(session: Session, made: list[Made], last: str) -> Message:
    """Each object on a line with its code, also in the error log, and the outcome."""
    lines: list[str] = []
    for each in made:
        if each.code:
            session.event(Severity.INFO, each.code, each.text)
        lines.append(f"{local_text(session.clock.now())}  {Severity.INFO:<8}{each.code or 'GGS-00653'}  {each.text}")
    supervision.look_at_heartbeats(session)
    return Message((*lines, last), apart=True)


@command("ADD HEARTBEATTABLE")
def add_heartbeat_table(
    session: Session,
    *,
    frequency: str = "",
    retention_time: str = "",
    purge_frequency: str = "",
    partitioned: bool = False,
    targetonly: bool = False,
    notargetonly: bool = False,
) -> Message:
    """Make tables, views, procedures and jobs in the database of the login, or nothing."""
    from ggshell.databases.postgres import heartbeat

    changes = _changes(frequency, retention_time, purge_frequency)
    given = {name: value for name, value in changes._asdict().items() if value is not None}
    target_only = targetonly and not notargetonly
    settings = heartbeat.Settings(partitioned=partitioned)._replace(**{**given, "target_only": target_only})
    names = names_of(session)
    made = heartbeat.add(session.connection(), names, settings)
    return _told(session, made, f"Successfully added heartbeat table {names.heartbeat}; restart the groups that run.")


@command("ALTER HEARTBEATTABLE")
def alter_heartbeat_table(
    session: Session,
    *,
    frequency: str = "",
    retention_time: str = "",
    purge_frequency: str = "",
    targetonly: bool = False,
    notargetonly: bool = False,
    upgrade: bool = False,
) -> Message:
    """Change how often the jobs run, how long history is kept, whether this database sends heartbeats."""
    from ggshell.databases.postgres import heartbeat

    if upgrade:
        return upgrade_heartbeat_table(session)
    names = names_of(session)
    target_only = True if targetonly else (False if notargetonly else None)
    changes = _changes(frequency, retention_time, purge_frequency)._replace(target_only=target_only)
    made = heartbeat.alter(session.connection(), names, changes)
    return _told(session, made, f"Successfully altered heartbeat table {names.heartbeat}.")


@command("DELETE HEARTBEATTABLE")
def delete_heartbeat_table(session: Session, *, heartbeattable_name: str = "", force: bool = False) -> Message:
    """Drop every object; somebody at the terminal is asked first, unless forced."""
    from ggshell.databases.postgres import heartbeat

    names = names_of(session, heartbeattable_name)
    heartbeat.require(session.connection(), names)
    if session.interactive and not force:
        session.confirm(f"Drop {names.heartbeat} with its history")
    made = heartbeat.delete(session.connection(), names)
    return _told(session, made, f"Successfully deleted heartbeat table {names.heartbeat}.")


@command("UPGRADE HEARTBEATTABLE")
def upgrade_heartbeat_table(session: Session) -> Message:
    """Give the objects of an older release what they lack."""
    from ggshell.databases.postgres import heartbeat

    names = names_of(session)
    made = heartbeat.upgrade(session.connection(), names)
    return _told(session, made, f"Successfully upgraded heartbeat table {names.heartbeat}.")


@command("INFO HEARTBEATTABLE")
def info_heartbeat_table(session: Session) -> HeartbeatInfo:
    """What there is, how it is set, when the jobs ran and will run; warns of a job that is overdue and of odd clocks."""
    from ggshell.databases.postgres import heartbeat, heartbeat_rows

    names = names_of(session)
    state = heartbeat.info(session.connection(), names)
    notes = [Note("GGS-00654", _late(job)) for job in state.jobs if job.late > LATE_SECONDS]
    notes += clock_warnings(heartbeat_rows.read_lags(session.connection(), names))
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


def _changes(frequency: str, retention_time: str, purge_frequency: str) -> Changes:
    from ggshell.databases.postgres.heartbeat import Changes

    return Changes(
        _frequency(frequency),
        _days(retention_time, "RETENTION_TIME", "2147483646"),
        _days(purge_frequency, "PURGE_FREQUENCY", "199"),
    )


def _late(job: Job) -> str:
    return (
        f"{job.name} was due {job.late:.0f} seconds ago: does Manager run, and does a group of this home log in here?"
    )


def _moment(moment: datetime | None) -> int:
    return from_datetime(moment.replace(tzinfo=UTC)) if moment is not None else 0


def _decimal(text: str, what: str, least: str, most: str) -> Decimal:
    """A number within its limits.  Raises UsageError."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal(-1)
    if not Decimal(least) <= value <= Decimal(most):
        raise UsageError(f"{what} {text} is not within {least} to {most}", hint=f"for example {what} {most}")
    return value


def _frequency(text: str) -> Decimal | None:
    """Seconds between two heartbeats; 0 pauses."""
    if not text:
        return None
    value = _decimal(text, "FREQUENCY", "0", "7999")
    if 0 < value < Decimal("0.1"):
        raise UsageError(f"FREQUENCY {text} is below 0.1", hint="0 pauses")
    return value


def _days(text: str, what: str, most: str) -> int | None:
    if not text:
        return None
    value = _decimal(text, what, "1", most)
    if value != int(value):
        raise UsageError(f"{what} {text} is no whole number of days")
    return int(value)


@command("DELETE HEARTBEATENTRY")
def delete_heartbeat_entry(session: Session, *, group_name: str, force: bool = False) -> Message:
    """Delete the rows that name a process which is no more."""
    from ggshell.databases.postgres import heartbeat

    names = names_of(session)
    connection = session.connection()
    heartbeat.require(connection, names)
    if ("*" in group_name or "?" in group_name) and not force:
        session.confirm(f"Delete all heartbeat entries that name {group_name}")
    count = heartbeat.delete_entries(connection, names, group_name)
    return Message((f"{count} heartbeat entries of {group_name} deleted from {names.heartbeat}.",), apart=True)


@command("LAG HEARTBEAT")
def lag_heartbeat(
    session: Session,
    *,
    remote_database: str = "",
    history: bool = False,
    since: str = "",
    by: str = "",
    slo: tuple[str, ...] = (),
    archive: bool = False,
) -> HeartbeatLags | LagTimes | LagObjective:
    """Lag as heartbeats measured it: now, by period, or against a service level."""
    begin = begin_time(since, session.clock.now()) if since else session.clock.now() - DAY
    if slo:
        goal, limit = float(_decimal(slo[0], "SLO", "0", "100")) / 100, float(_decimal(slo[-1], "WITHIN", "0", "86400"))
        return LagObjective(tuple(objectives(_arrivals(session, begin, remote_database, archive), goal, limit)))
    period = by.upper() or "HOUR"
    if archive:
        from ggshell.databases.duckdb import lag_archive

        return LagTimes(tuple(lag_archive.spreads(lag_folder(session.home), period, begin, remote_database)), period)
    if history or since or by:
        return LagTimes(tuple(spreads(_arrivals(session, begin, remote_database, archive), period)), period)
    return _lags_now(session, remote_database)


def _arrivals(session: Session, since: int, remote: str, archive: bool) -> list[Arrival]:
    if archive:
        from ggshell.databases.duckdb import lag_archive

        return lag_archive.read_arrivals(lag_folder(session.home), since, remote)
    from ggshell.databases.postgres import heartbeat, heartbeat_rows

    names = names_of(session)
    heartbeat.require(session.connection(), names)
    return heartbeat_rows.read_arrivals(session.connection(), names, since, remote)


def _lags_now(session: Session, remote: str) -> HeartbeatLags:
    from ggshell.databases.postgres import heartbeat, heartbeat_rows

    names, connection = names_of(session), session.connection()
    heartbeat.require(connection, names)
    lags = heartbeat_rows.read_lags(connection, names, remote)
    since = session.clock.now() - OFFSET_SECONDS * 1_000_000
    least = heartbeat_rows.read_least_lags(connection, names, since)
    ways = tuple(WayLag(lag, offset_of(lag, least)) for lag in lags)
    notes = clock_warnings(lags)
    for note in notes:
        session.event(Severity.WARNING, note.code, note.message)
    asked = session.clock.now()
    told = heartbeat_rows.database_time(connection)
    return HeartbeatLags(ways, between_clocks(asked, session.clock.now(), told), tuple(notes))
