"""Creates, changes, shows and drops the heartbeat objects of a PostgreSQL database, and reads lags from them.

Each action is all or nothing.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ggshell.clock import from_datetime
from ggshell.connectors.heartbeat_tables import (
    ChangedObject,
    HeartbeatJob,
    HeartbeatState,
    HeartbeatTableChanges,
    HeartbeatTableSettings,
    frequency_change,
    purge_change,
)
from ggshell.connectors.postgres import heartbeat_sql as sql
from ggshell.connectors.postgres.describe import table_id
from ggshell.connectors.postgres.heartbeat_sql import UTC_NOW
from ggshell.connectors.postgres.session import execute, transaction
from ggshell.durations import DAY
from ggshell.errors import ConflictError, NotFoundError
from ggshell.monitoring.heartbeat_lag import Lag, Way, lag_of
from ggshell.pipeline.heartbeat.lag_views import LAG_HISTORY_VIEW, LAG_VIEW
from ggshell.pipeline.heartbeat.names import (
    HEARTBEAT_COLUMNS,
    HISTORY_COLUMNS,
    PATHS,
    PURGE_JOB,
    UPDATE_JOB,
    HeartbeatNames,
)
from ggshell.pipeline.heartbeat.row import Beat, time_text
from ggshell.types import quote_table

if TYPE_CHECKING:
    import psycopg


def exists(connection: psycopg.Connection[Any], names: HeartbeatNames) -> bool:
    """Whether the heartbeat table exists."""
    return table_id(connection, names.heartbeat) is not None


def require(connection: psycopg.Connection[Any], names: HeartbeatNames) -> None:
    """Raise NotFoundError unless the heartbeat table exists."""
    if not exists(connection, names):
        raise NotFoundError(
            f"heartbeat table {names.heartbeat} does not exist in this database",
            code="OGG-10523",
            hint="ADD HEARTBEATTABLE",
        )


def add(
    connection: psycopg.Connection[Any], names: HeartbeatNames, settings: HeartbeatTableSettings
) -> list[ChangedObject]:
    """Create all objects, or none. Raises ConflictError if a heartbeat table exists, NotFoundError without a schema."""
    if not execute(connection, "SELECT 1 FROM pg_namespace WHERE nspname = %s", [names.schema]):
        raise NotFoundError(
            f"schema {names.schema} does not exist", code="OGG-26006", hint=f"CREATE SCHEMA {names.schema}"
        )
    if exists(connection, names):
        raise ConflictError(
            f"heartbeat table {names.heartbeat} already exists", hint="DELETE or UPGRADE HEARTBEATTABLE"
        )
    made: list[ChangedObject] = []
    with transaction(connection):
        _tables(connection, names, settings, made)
        _procedures(connection, names, settings, made)
        execute(connection, f"CALL {quote_table(names.of(sql.PURGE_PROCEDURE))}()")
        if not settings.target_only:
            _source(connection, names, settings, made)
        _views(connection, names, made)
    return made


def _tables(
    connection: psycopg.Connection[Any],
    names: HeartbeatNames,
    settings: HeartbeatTableSettings,
    made: list[ChangedObject],
) -> None:
    for statement in (sql.seed_table(names), *sql.heartbeat_table(names)):
        execute(connection, statement)
    made.append(ChangedObject("OGG-14001", f"Created heartbeat seed table {names.seed}."))
    made.append(ChangedObject("OGG-14000", f"Created heartbeat table {names.heartbeat}."))
    for statement in (*sql.history_table(names, partitioned=settings.partitioned), *sql.receive_function(names)):
        execute(connection, statement)
    how = ", partitioned by the day of arrival" if settings.partitioned else ""
    made.append(ChangedObject("OGG-14016", f"Created heartbeat history table {names.history}{how}."))
    execute(connection, sql.jobs_table(names))
    made.append(ChangedObject("GGS-00655", f"Created job table {names.jobs}."))


def _procedures(
    connection: psycopg.Connection[Any],
    names: HeartbeatNames,
    settings: HeartbeatTableSettings,
    made: list[ChangedObject],
) -> None:
    for statement in (sql.purge_procedure(names), sql.update_procedure(names), sql.run_function(names)):
        execute(connection, statement)
    made.append(ChangedObject("OGG-14017", f"Created purge procedure {names.of(sql.PURGE_PROCEDURE)}."))
    _set_job(connection, names, PURGE_JOB, Decimal(settings.purge_days) * DAY, settings.retention_days)
    made.append(purge_change(settings.purge_days, settings.retention_days, "Created"))


def _source(
    connection: psycopg.Connection[Any],
    names: HeartbeatNames,
    settings: HeartbeatTableSettings,
    made: list[ChangedObject],
) -> None:
    """Set up what a database that sends heartbeats needs: the first heartbeat, TRANDATA, the update job."""
    from ggshell.connectors.postgres import trandata  # to read heartbeats, it is not needed

    for code, table in (("OGG-14032", names.seed), ("OGG-14033", names.heartbeat)):
        trandata.add(connection, table)
        made.append(ChangedObject(code, f"Enabled supplemental logging for {table}."))
    execute(connection, f"CALL {quote_table(names.of(sql.UPDATE_PROCEDURE))}()")
    made.append(ChangedObject("OGG-14003", f"Populated heartbeat seed table {names.seed}."))
    made.append(ChangedObject("OGG-14004", f"Created update procedure {names.of(sql.UPDATE_PROCEDURE)}."))
    _set_job(connection, names, UPDATE_JOB, settings.frequency, None)
    made.append(frequency_change(settings.frequency, "Created"))


def _views(connection: psycopg.Connection[Any], names: HeartbeatNames, made: list[ChangedObject]) -> None:
    execute(connection, sql.lag_view(names))
    made.append(ChangedObject("OGG-14023", f"Created heartbeat lag view {names.of(LAG_VIEW)}."))
    execute(connection, sql.lag_history_view(names))
    made.append(ChangedObject("OGG-14024", f"Created heartbeat lag history view {names.of(LAG_HISTORY_VIEW)}."))


def _set_job(
    connection: psycopg.Connection[Any], names: HeartbeatNames, job: str, every: Decimal, retention: int | None
) -> None:
    """Set how often a job runs (0: never). The next run is one interval from now."""
    execute(
        connection,
        f"INSERT INTO {quote_table(names.jobs)} AS j (job_name, every_seconds, retention_days, next_run)"
        f" VALUES (%(job)s, %(every)s, %(kept)s,"
        f" CASE WHEN %(every)s > 0 THEN {sql.UTC_NOW} + %(every)s * interval '1 second' END)"
        " ON CONFLICT (job_name) DO UPDATE SET every_seconds = excluded.every_seconds, next_run = excluded.next_run,"
        " retention_days = coalesce(excluded.retention_days, j.retention_days)",
        {"job": job, "every": every, "kept": retention},
    )


def alter(
    connection: psycopg.Connection[Any], names: HeartbeatNames, changes: HeartbeatTableChanges
) -> list[ChangedObject]:
    """Change settings, all or none. Raises NotFoundError without a heartbeat table."""
    require(connection, names)
    now = info(connection, names).settings
    made: list[ChangedObject] = []
    with transaction(connection):
        if changes.target_only is True and not now.target_only:
            _stop_sending(connection, names, made)
        if changes.target_only is False and now.target_only:
            frequency = changes.frequency if changes.frequency is not None else HeartbeatTableSettings().frequency
            _source(connection, names, now._replace(frequency=frequency), made)
        elif changes.frequency is not None and changes.target_only is not True:
            _set_job(connection, names, UPDATE_JOB, changes.frequency, None)
            made.append(frequency_change(changes.frequency, "Changed"))
        if changes.retention_days is not None or changes.purge_days is not None:
            days = changes.purge_days if changes.purge_days is not None else now.purge_days
            _set_job(connection, names, PURGE_JOB, Decimal(days) * DAY, changes.retention_days)
            kept = changes.retention_days if changes.retention_days is not None else now.retention_days
            made.append(purge_change(days, kept, "Changed"))
    return made


def _stop_sending(connection: psycopg.Connection[Any], names: HeartbeatNames, made: list[ChangedObject]) -> None:
    execute(connection, f"DELETE FROM {quote_table(names.jobs)} WHERE job_name = %s", [UPDATE_JOB])
    made.append(ChangedObject("OGG-14005", f"Removed update job {UPDATE_JOB}."))
    from ggshell.connectors.postgres import trandata

    for code, table in (("OGG-14032", names.seed), ("OGG-14033", names.heartbeat)):
        trandata.delete(connection, table)
        made.append(ChangedObject(code, f"Disabled supplemental logging for {table}."))


def delete(connection: psycopg.Connection[Any], names: HeartbeatNames) -> list[ChangedObject]:
    """Drop all objects, or none. Raises NotFoundError without a heartbeat table."""
    require(connection, names)
    routines = (
        ("PROCEDURE", sql.UPDATE_PROCEDURE),
        ("PROCEDURE", sql.PURGE_PROCEDURE),
        ("FUNCTION", sql.RUN_FUNCTION),
        ("FUNCTION", sql.RECEIVE_FUNCTION),
    )
    made: list[ChangedObject] = []
    with transaction(connection):
        for view in (LAG_HISTORY_VIEW, LAG_VIEW):
            execute(connection, f"DROP VIEW IF EXISTS {quote_table(names.of(view))}")
            made.append(ChangedObject("", f"Dropped view {names.of(view)}."))
        for table in (names.history, names.heartbeat, names.seed, names.jobs):
            execute(connection, f"DROP TABLE IF EXISTS {quote_table(table)}")
            made.append(ChangedObject("", f"Dropped table {table}."))
        for kind, name in routines:
            execute(connection, f"DROP {kind} IF EXISTS {quote_table(names.of(name))}")
            made.append(ChangedObject("", f"Dropped {kind.lower()} {names.of(name)}."))
    return made


def upgrade(connection: psycopg.Connection[Any], names: HeartbeatNames) -> list[ChangedObject]:
    """Add what objects of an older release lack, and create procedures and views again. Raises NotFoundError."""
    require(connection, names)
    before = info(connection, names)
    made: list[ChangedObject] = []
    with transaction(connection):
        for view in (LAG_HISTORY_VIEW, LAG_VIEW):
            execute(connection, f"DROP VIEW IF EXISTS {quote_table(names.of(view))}")
        for table, wanted in (
            (names.seed, HEARTBEAT_COLUMNS),
            (names.heartbeat, HEARTBEAT_COLUMNS),
            (names.history, HISTORY_COLUMNS),
        ):
            for name in _add_columns(connection, table, wanted):
                made.append(ChangedObject("OGG-14089", f"Added column {name} to {table}."))
        if table_id(connection, names.jobs) is None:
            execute(connection, sql.jobs_table(names))
            _set_job(connection, names, PURGE_JOB, Decimal(DAY), HeartbeatTableSettings().retention_days)
            made.append(ChangedObject("GGS-00655", f"Created job table {names.jobs}."))
        for statement in (
            *sql.receive_function(names),
            sql.purge_procedure(names),
            sql.update_procedure(names),
            sql.run_function(names),
        ):
            execute(connection, _replacing(statement))
        _views(connection, names, made)
        if not before.jobs:
            _source(connection, names, HeartbeatTableSettings(), made)
    return made


def _replacing(statement: str) -> str:
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


def info(connection: psycopg.Connection[Any], names: HeartbeatNames) -> HeartbeatState:
    """The state of the heartbeat objects. Raises NotFoundError without a heartbeat table."""
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
    return HeartbeatState(
        tuple(str(table) for table in tables), tuple(HeartbeatJob(*job) for job in jobs), bool(kind and kind[0][0])
    )


def delete_entries(connection: psycopg.Connection[Any], names: HeartbeatNames, group: str) -> int:
    """Delete the heartbeat rows that name a process (``*`` and ``?`` are wildcards). Return how many there were."""
    from ggshell.connectors.postgres.describe import like_pattern

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
    """Run the jobs that are due. Return how many ran, and the seconds until the next one (None: none is scheduled)."""
    ran, seconds = execute(connection, f"SELECT * FROM {quote_table(names.of(sql.RUN_FUNCTION))}()")[0]
    return int(ran), None if seconds is None else float(seconds)


_RECEIVED = """(SELECT max(r.heartbeat_received_ts) FROM {history} r
  WHERE r.incoming_heartbeat_ts = h.incoming_heartbeat_ts AND r.remote_database = h.remote_database
    AND r.incoming_replicat = h.incoming_replicat AND r.incoming_extract IS NOT DISTINCT FROM h.incoming_extract
    AND r.incoming_routing_path IS NOT DISTINCT FROM h.incoming_routing_path)"""


_PROCESSES = tuple(f"upper({side}_{name})" for side in ("incoming", "outgoing") for name in PATHS)


def _microseconds(value: Any) -> Any:
    return from_datetime(value.replace(tzinfo=UTC)) if isinstance(value, datetime) else value


def read_lags(connection: psycopg.Connection[Any], names: HeartbeatNames, remote: str = "") -> list[Lag]:
    """The lag of every path (of one remote database, if given), ordered by remote database and path."""
    columns = ", ".join(f"h.{name}" for name in HEARTBEAT_COLUMNS)
    received = _RECEIVED.format(history=quote_table(names.history))
    rows = execute(
        connection,
        f"SELECT {columns}, {received}, {UTC_NOW} FROM {quote_table(names.heartbeat)} h"
        " WHERE %(remote)s = '' OR lower(h.remote_database) = lower(%(remote)s)"
        " ORDER BY h.remote_database, h.incoming_extract, h.incoming_routing_path, h.incoming_replicat",
        {"remote": remote},
    )
    values = [[_microseconds(value) for value in row] for row in rows]
    width = len(HEARTBEAT_COLUMNS)
    return [lag_of(Beat(*row[:width]), row[width], row[width + 1]) for row in values]


def read_received(
    connection: psycopg.Connection[Any], names: HeartbeatNames, part: tuple[int, int], group: str = ""
) -> list[Lag]:
    """The lags of received heartbeats, the newest first; ``part``: how many, and how many to leave out before them.

    Raises NotFoundError without a heartbeat table.
    """
    require(connection, names)
    number, first = part
    rows = execute(
        connection,
        f"SELECT {', '.join(HISTORY_COLUMNS)}, {UTC_NOW} FROM {quote_table(names.history)}"
        f" WHERE %(group)s = '' OR upper(%(group)s) IN ({', '.join(_PROCESSES)})"
        " ORDER BY heartbeat_received_ts DESC, remote_database, incoming_extract, incoming_replicat"
        " LIMIT %(number)s OFFSET %(first)s",
        {"group": group, "number": number, "first": first},
    )
    values = [[_microseconds(value) for value in row] for row in rows]
    return [lag_of(Beat(*row[:-1]), row[1], row[-1]) for row in values]


def read_least_lags(
    connection: psycopg.Connection[Any], names: HeartbeatNames, since: int
) -> dict[Way, tuple[float | None, float | None]]:
    """The shortest incoming and outgoing lag of each path since a time, in seconds; None if there is none."""
    rows = execute(
        connection,
        "SELECT remote_database, incoming_extract, incoming_routing_path, incoming_replicat,"
        " min(extract(epoch FROM heartbeat_received_ts - incoming_heartbeat_ts))::float8,"
        " min(extract(epoch FROM outgoing_replicat_ts - outgoing_heartbeat_ts))::float8"
        f" FROM {quote_table(names.history)} WHERE heartbeat_received_ts >= %s::timestamp GROUP BY 1, 2, 3, 4",
        [time_text(since)],
    )
    return {(row[0], row[1], row[2], row[3]): (row[4], row[5]) for row in rows}


def database_time(connection: psycopg.Connection[Any]) -> int:
    """The database's time, in microseconds since 1970."""
    return int(execute(connection, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")[0][0])
