"""The heartbeat objects of a PostgreSQL database: made, changed, shown and removed, all or nothing."""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.databases.postgres import heartbeat_sql as sql
from ggshell.databases.postgres import heartbeat_views as views
from ggshell.databases.postgres import trandata
from ggshell.databases.postgres.describe import quote_table, table_id
from ggshell.databases.postgres.session import execute, transaction
from ggshell.errors import ConflictError, NotFoundError
from ggshell.heartbeat.names import HEARTBEAT_COLUMNS, HISTORY_COLUMNS, PURGE_JOB, UPDATE_JOB, HeartbeatNames

if TYPE_CHECKING:
    import psycopg

DAY = 86_400


class Settings(NamedTuple):
    """FREQUENCY in seconds (0: paused), RETENTION_TIME and PURGE_FREQUENCY in days, and who beats."""

    frequency: Decimal = Decimal(60)
    retention_days: int = 30
    purge_days: int = 1
    target_only: bool = False
    partitioned: bool = False


class Made(NamedTuple):
    """An object that was made (or changed, or removed), and the code that tells it."""

    code: str
    text: str


class Job(NamedTuple):
    """One of the two jobs; times in UTC.  ``late``: seconds since it was due, 0 when it is not."""

    name: str
    every: Decimal
    retention_days: int | None
    last_run: datetime | None
    next_run: datetime | None
    runs: int
    late: Decimal


class State(NamedTuple):
    """What there is of the heartbeat objects, and how they are set."""

    tables: tuple[str, ...]
    jobs: tuple[Job, ...]
    partitioned: bool

    @property
    def settings(self) -> Settings:
        jobs = {job.name: job for job in self.jobs}
        update, purge = jobs.get(UPDATE_JOB), jobs.get(PURGE_JOB)
        return Settings(
            (update.every if update.next_run is not None else Decimal(0)) if update is not None else Decimal(0),
            (purge.retention_days or 0) if purge is not None else 0,
            int(purge.every / DAY) if purge is not None else 0,
            update is None,
            self.partitioned,
        )


def exists(connection: psycopg.Connection[Any], names: HeartbeatNames) -> bool:
    """Whether the heartbeat table is there."""
    return table_id(connection, names.heartbeat) is not None


def require(connection: psycopg.Connection[Any], names: HeartbeatNames) -> None:
    """Raises NotFoundError unless the heartbeat table exists."""
    if not exists(connection, names):
        raise NotFoundError(
            f"there is no heartbeat table {names.heartbeat} in this database",
            code="OGG-10523",
            hint="ADD HEARTBEATTABLE",
        )


def add(connection: psycopg.Connection[Any], names: HeartbeatNames, settings: Settings) -> list[Made]:
    """Make everything, or nothing.  Raises ConflictError when a heartbeat table is there, NotFoundError without the schema."""
    if not execute(connection, "SELECT 1 FROM pg_namespace WHERE nspname = %s", [names.schema]):
        raise NotFoundError(
            f"schema {names.schema} does not exist", code="OGG-26006", hint=f"CREATE SCHEMA {names.schema}"
        )
    if exists(connection, names):
        raise ConflictError(
            f"heartbeat table {names.heartbeat} exists already", hint="DELETE or UPGRADE HEARTBEATTABLE"
        )
    made: list[Made] = []
    with transaction(connection):
        _tables(connection, names, settings, made)
        _procedures(connection, names, settings, made)
        execute(connection, f"CALL {quote_table(names.of(sql.PURGE_PROCEDURE))}()")
        if not settings.target_only:
            _source(connection, names, settings, made)
        _views(connection, names, made)
    return made


def _tables(connection: psycopg.Connection[Any], names: HeartbeatNames, settings: Settings, made: list[Made]) -> None:
    for statement in (sql.seed_table(names), *sql.heartbeat_table(names)):
        execute(connection, statement)
    made.append(Made("OGG-14001", f"Created heartbeat seed table {names.seed}."))
    made.append(Made("OGG-14000", f"Created heartbeat table {names.heartbeat}."))
    for statement in (*sql.history_table(names, partitioned=settings.partitioned), *sql.receive_function(names)):
        execute(connection, statement)
    how = ", partitioned by the day of arrival" if settings.partitioned else ""
    made.append(Made("OGG-14016", f"Created heartbeat history table {names.history}{how}."))
    execute(connection, sql.jobs_table(names))
    made.append(Made("OGG-14086", f"Created job table {names.jobs}."))


def _procedures(
    connection: psycopg.Connection[Any], names: HeartbeatNames, settings: Settings, made: list[Made]
) -> None:
    for statement in (sql.purge_procedure(names), sql.update_procedure(names), sql.run_function(names)):
        execute(connection, statement)
    made.append(Made("OGG-14017", f"Created purge procedure {names.of(sql.PURGE_PROCEDURE)}."))
    _set_job(connection, names, PURGE_JOB, Decimal(settings.purge_days) * DAY, settings.retention_days)
    made.append(
        Made(
            "OGG-14018",
            f"Created purge job {PURGE_JOB}: every {settings.purge_days} days, keeping {settings.retention_days} days.",
        )
    )


def _source(connection: psycopg.Connection[Any], names: HeartbeatNames, settings: Settings, made: list[Made]) -> None:
    """What a database needs that sends heartbeats: the first one, the log's contents, the job."""
    for table in (names.seed, names.heartbeat):
        trandata.add(connection, table)
        made.append(Made("OGG-14024", f"Enabled supplemental logging for {table}."))
    execute(connection, f"CALL {quote_table(names.of(sql.UPDATE_PROCEDURE))}()")
    made.append(Made("OGG-14003", f"Populated heartbeat seed table {names.seed}."))
    made.append(Made("OGG-14004", f"Created update procedure {names.of(sql.UPDATE_PROCEDURE)}."))
    _set_job(connection, names, UPDATE_JOB, settings.frequency, None)
    made.append(_frequency(settings.frequency, "Created"))


def _frequency(seconds: Decimal, verb: str) -> Made:
    if not seconds:
        return Made("OGG-14115", f"Job {UPDATE_JOB} is paused: FREQUENCY is 0.")
    return Made("OGG-14005", f"{verb} update job {UPDATE_JOB}: every {seconds.normalize():f} seconds.")


def _views(connection: psycopg.Connection[Any], names: HeartbeatNames, made: list[Made]) -> None:
    execute(connection, views.lag_view(names))
    made.append(Made("OGG-14032", f"Created heartbeat lag view {names.of(views.LAG_VIEW)}."))
    execute(connection, views.lag_history_view(names))
    made.append(Made("OGG-14033", f"Created heartbeat lag history view {names.of(views.LAG_HISTORY_VIEW)}."))


def _set_job(
    connection: psycopg.Connection[Any], names: HeartbeatNames, job: str, every: Decimal, retention: int | None
) -> None:
    """Set how often a job runs, 0: not at all; the next run is the usual time from now."""
    execute(
        connection,
        f"INSERT INTO {quote_table(names.jobs)} AS j (job_name, every_seconds, retention_days, next_run)"
        f" VALUES (%(job)s, %(every)s, %(kept)s,"
        f" CASE WHEN %(every)s > 0 THEN {sql.UTC_NOW} + %(every)s * interval '1 second' END)"
        " ON CONFLICT (job_name) DO UPDATE SET every_seconds = excluded.every_seconds, next_run = excluded.next_run,"
        " retention_days = coalesce(excluded.retention_days, j.retention_days)",
        {"job": job, "every": every, "kept": retention},
    )


class Changes(NamedTuple):
    """What ALTER HEARTBEATTABLE changes; None: left as it is."""

    frequency: Decimal | None = None
    retention_days: int | None = None
    purge_days: int | None = None
    target_only: bool | None = None


def alter(connection: psycopg.Connection[Any], names: HeartbeatNames, changes: Changes) -> list[Made]:
    """Change settings, or none.  Raises NotFoundError without a heartbeat table."""
    require(connection, names)
    now = info(connection, names).settings
    made: list[Made] = []
    with transaction(connection):
        if changes.target_only is True and not now.target_only:
            _stop_sending(connection, names, made)
        if changes.target_only is False and now.target_only:
            frequency = changes.frequency if changes.frequency is not None else Settings().frequency
            _source(connection, names, now._replace(frequency=frequency), made)
        elif changes.frequency is not None and changes.target_only is not True:
            _set_job(connection, names, UPDATE_JOB, changes.frequency, None)
            made.append(_frequency(changes.frequency, "Changed"))
        if changes.retention_days is not None or changes.purge_days is not None:
            days = changes.purge_days if changes.purge_days is not None else now.purge_days
            _set_job(connection, names, PURGE_JOB, Decimal(days) * DAY, changes.retention_days)
            kept = changes.retention_days if changes.retention_days is not None else now.retention_days
            made.append(Made("OGG-14018", f"Changed purge job {PURGE_JOB}: every {days} days, keeping {kept} days."))
    return made


def _stop_sending(connection: psycopg.Connection[Any], names: HeartbeatNames, made: list[Made]) -> None:
    execute(connection, f"DELETE FROM {quote_table(names.jobs)} WHERE job_name = %s", [UPDATE_JOB])
    made.append(Made("OGG-14005", f"Removed update job {UPDATE_JOB}."))
    for table in (names.seed, names.heartbeat):
        trandata.delete(connection, table)
        made.append(Made("OGG-14024", f"Disabled supplemental logging for {table}."))


def delete(connection: psycopg.Connection[Any], names: HeartbeatNames) -> list[Made]:
    """Drop everything, or nothing.  Raises NotFoundError without a heartbeat table."""
    require(connection, names)
    routines = (
        ("PROCEDURE", sql.UPDATE_PROCEDURE),
        ("PROCEDURE", sql.PURGE_PROCEDURE),
        ("FUNCTION", sql.RUN_FUNCTION),
        ("FUNCTION", sql.RECEIVE_FUNCTION),
    )
    made: list[Made] = []
    with transaction(connection):
        for view in (views.LAG_HISTORY_VIEW, views.LAG_VIEW):
            execute(connection, f"DROP VIEW IF EXISTS {quote_table(names.of(view))}")
            made.append(Made("", f"Dropped view {names.of(view)}."))
        for table in (names.history, names.heartbeat, names.seed, names.jobs):
            execute(connection, f"DROP TABLE IF EXISTS {quote_table(table)}")
            made.append(Made("", f"Dropped table {table}."))
        for kind, name in routines:
            execute(connection, f"DROP {kind} IF EXISTS {quote_table(names.of(name))}")
            made.append(Made("", f"Dropped {kind.lower()} {names.of(name)}."))
    return made


def upgrade(connection: psycopg.Connection[Any], names: HeartbeatNames) -> list[Made]:
    """Give objects of an older release what they lack, and make procedures and views anew.  Raises NotFoundError."""
    require(connection, names)
    before = info(connection, names)
    made: list[Made] = []
    with transaction(connection):
        for view in (views.LAG_HISTORY_VIEW, views.LAG_VIEW):
            execute(connection, f"DROP VIEW IF EXISTS {quote_table(names.of(view))}")
        for table, wanted in (
            (names.seed, HEARTBEAT_COLUMNS),
            (names.heartbeat, HEARTBEAT_COLUMNS),
            (names.history, HISTORY_COLUMNS),
        ):
            for name in _add_columns(connection, table, wanted):
                made.append(Made("OGG-14089", f"Added column {name} to {table}."))
        if table_id(connection, names.jobs) is None:
            execute(connection, sql.jobs_table(names))
            _set_job(connection, names, PURGE_JOB, Decimal(DAY), Settings().retention_days)
            made.append(Made("OGG-14086", f"Created job table {names.jobs}."))
        for statement in (
            *sql.receive_function(names),
            sql.purge_procedure(names),
            sql.update_procedure(names),
            sql.run_function(names),
        ):
            execute(connection, _anew(statement))
        _views(connection, names, made)
        if not before.jobs:
            _source(connection, names, Settings(), made)
    return made


def _anew(statement: str) -> str:
    return re.sub(r"\ACREATE (FUNCTION|PROCEDURE|TRIGGER)", r"CREATE OR REPLACE \1", statement)


def _add_columns(connection: psycopg.Connection[Any], table: Any, wanted: tuple[str, ...]) -> list[str]:
    have = {
        row[0]
        for row in execute(
            connection,
            "SELECT attname FROM pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped",
            [table_id(connection, table)],
        )
    }
    added = [name for name in wanted if name not in have]
    for name in added:
        execute(connection, f"ALTER TABLE {quote_table(table)} ADD COLUMN {name} {sql.column_type(name)}")
    return added


def info(connection: psycopg.Connection[Any], names: HeartbeatNames) -> State:
    """What there is.  Raises NotFoundError without a heartbeat table."""
    require(connection, names)
    tables = [
        table for table in (names.heartbeat, names.seed, names.history) if table_id(connection, table) is not None
    ]
    jobs: list[tuple[Any, ...]] = []
    if table_id(connection, names.jobs) is not None:
        jobs = execute(
            connection,
            "SELECT job_name, every_seconds, retention_days, last_run, next_run, runs,"
            f" greatest(0, coalesce(extract(epoch FROM {sql.UTC_NOW} - next_run), 0)::numeric)"
            f" FROM {quote_table(names.jobs)} ORDER BY job_name DESC",
        )
    kind = execute(
        connection, "SELECT relkind = 'p' FROM pg_class WHERE oid = %s", [table_id(connection, names.history)]
    )
    return State(tuple(str(table) for table in tables), tuple(Job(*job) for job in jobs), bool(kind and kind[0][0]))


def delete_entries(connection: psycopg.Connection[Any], names: HeartbeatNames, group: str) -> int:
    """Delete the rows that name a process (``*`` and ``?`` are wildcards); how many there were."""
    from ggshell.databases.postgres.describe import like_pattern

    require(connection, names)
    pattern = like_pattern(group.upper())
    named = " OR ".join(
        f"upper({side}_{name}) LIKE %(group)s" for side in ("incoming", "outgoing") for name in ("extract", "replicat")
    )
    routed = " OR ".join(
        f"EXISTS (SELECT FROM unnest(string_to_array({side}_routing_path, ',')) AS part WHERE upper(part) LIKE %(group)s)"
        for side in ("incoming", "outgoing")
    )
    gone = execute(
        connection,
        f"DELETE FROM {quote_table(names.heartbeat)} WHERE {named} OR {routed} RETURNING 1",
        {"group": pattern},
    )
    return len(gone)


def run_jobs(connection: psycopg.Connection[Any], names: HeartbeatNames) -> tuple[int, float | None]:
    """Run the jobs that are due; how many did, and the seconds to the next (None: none is planned)."""
    ran, seconds = execute(connection, f"SELECT * FROM {quote_table(names.of(sql.RUN_FUNCTION))}()")[0]
    return int(ran), None if seconds is None else float(seconds)
