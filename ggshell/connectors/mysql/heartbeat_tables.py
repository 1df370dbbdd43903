"""The heartbeat objects of a MariaDB or MySQL database, as commands and Manager ask for them.

The server commits each DDL statement: if one fails, the objects that were created before it are dropped again.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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
from ggshell.connectors.mysql import heartbeat_sql as sql
from ggshell.connectors.mysql.catalog import table_exists
from ggshell.connectors.mysql.login import parse_login
from ggshell.connectors.mysql.session import connect, execute, transaction
from ggshell.connectors.mysql.statements import quote_table
from ggshell.durations import DAY
from ggshell.errors import ConflictError, GgsError, NotFoundError, ParameterError
from ggshell.monitoring.heartbeat_lag import Lag, Way, lag_of, parts_of, path_text
from ggshell.monitoring.spreads import Arrival, Objective, Spread, objectives, spreads
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
from ggshell.types import TableName

if TYPE_CHECKING:
    from pymysql.connections import Connection

ABSENT_SECONDS: Final = 30.0
"""Seconds between two checks of a database without heartbeat tables."""
USUAL_FREQUENCY: Final = 60.0
_CSV_ROWS: Final = 1000
_PROCESSES: Final = tuple(f"UPPER({side}_{name})" for side in ("incoming", "outgoing") for name in PATHS)


def database_of(login: str) -> str:
    """The name by which heartbeats identify the database of a login."""
    address = parse_login(login)
    return address.database or address.shown


class MysqlHeartbeatTables(NamedTuple):
    """The heartbeat objects with these names in a database; ``database``: its name in heartbeats."""

    connection: Connection[Any]
    names: HeartbeatNames
    database: str

    def require(self) -> None:
        if not self._has(self.names.heartbeat):
            raise NotFoundError(
                f"heartbeat table {self.names.heartbeat} does not exist in this database",
                code="OGG-10523",
                hint="ADD HEARTBEATTABLE",
            )

    def add(self, settings: HeartbeatTableSettings) -> list[ChangedObject]:
        names = self.names
        if settings.partitioned:
            raise ParameterError(
                "PARTITIONED requires PostgreSQL", hint="ADD HEARTBEATTABLE without PARTITIONED: old rows are deleted"
            )
        if not execute(
            self.connection, "SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = %s", [names.schema]
        ):
            text = f"schema {names.schema} does not exist"
            raise NotFoundError(text, code="OGG-26006", hint=f"CREATE DATABASE {names.schema}")
        if self._has(names.heartbeat):
            text = f"heartbeat table {names.heartbeat} already exists"
            raise ConflictError(text, hint="DELETE or UPGRADE HEARTBEATTABLE")
        made: list[ChangedObject] = []
        try:
            for statement in sql.tables(names):
                execute(self.connection, statement)
            made.append(ChangedObject("OGG-14001", f"Created heartbeat seed table {names.seed}."))
            made.append(ChangedObject("OGG-14000", f"Created heartbeat table {names.heartbeat}."))
            execute(self.connection, sql.trigger(names, self.database))
            made.append(ChangedObject("OGG-14016", f"Created heartbeat history table {names.history}."))
            made.append(ChangedObject("GGS-00655", f"Created job table {names.jobs}."))
            self._set_job(PURGE_JOB, Decimal(settings.purge_days) * DAY, settings.retention_days)
            made.append(purge_change(settings.purge_days, settings.retention_days, "Created"))
            if not settings.target_only:
                self._begin_sending(settings.frequency, made)
            self._views(made)
        except BaseException:
            self._drop()
            raise
        return made

    def alter(self, changes: HeartbeatTableChanges) -> list[ChangedObject]:
        now = self.state().settings
        made: list[ChangedObject] = []
        with transaction(self.connection):
            if changes.target_only is True and not now.target_only:
                execute(self.connection, f"DELETE FROM {self._jobs} WHERE job_name = '{UPDATE_JOB}'")
                made.append(ChangedObject("OGG-14005", f"Removed update job {UPDATE_JOB}."))
            if changes.target_only is False and now.target_only:
                frequency = changes.frequency
                self._begin_sending(HeartbeatTableSettings().frequency if frequency is None else frequency, made)
            elif changes.frequency is not None and changes.target_only is not True:
                self._set_job(UPDATE_JOB, changes.frequency, None)
                made.append(frequency_change(changes.frequency, "Changed"))
            if changes.retention_days is not None or changes.purge_days is not None:
                days = changes.purge_days if changes.purge_days is not None else now.purge_days
                self._set_job(PURGE_JOB, Decimal(days) * DAY, changes.retention_days)
                kept = changes.retention_days if changes.retention_days is not None else now.retention_days
                made.append(purge_change(days, kept, "Changed"))
        return made

    def delete(self) -> list[ChangedObject]:
        self.require()
        return [ChangedObject("", f"Dropped {kind.lower()} {name}.") for kind, name in self._drop()]

    def upgrade(self) -> list[ChangedObject]:
        self.require()
        made: list[ChangedObject] = []
        for table, wanted in (
            (self.names.seed, HEARTBEAT_COLUMNS),
            (self.names.heartbeat, HEARTBEAT_COLUMNS),
            (self.names.history, HISTORY_COLUMNS),
        ):
            text = (
                "SELECT LOWER(COLUMN_NAME) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
            )
            have = {row[0] for row in execute(self.connection, text, [*table])}
            for name in (name for name in wanted if name not in have):
                execute(self.connection, f"ALTER TABLE {quote_table(table)} ADD COLUMN {name} {sql.column_type(name)}")
                made.append(ChangedObject("OGG-14089", f"Added column {name} to {table}."))
        execute(self.connection, f"DROP TRIGGER IF EXISTS {quote_table(self.names.of(sql.RECEIVE_TRIGGER))}")
        execute(self.connection, sql.trigger(self.names, self.database))
        self._views(made)
        return made

    def state(self) -> HeartbeatState:
        self.require()
        names = self.names
        tables = [table for table in (names.heartbeat, names.seed, names.history) if self._has(table)]
        late = f"GREATEST(0, COALESCE({sql.seconds(sql.NOW, 'next_run')}, 0))"
        rows = execute(
            self.connection,
            f"SELECT job_name, every_seconds, retention_days, last_run, next_run, runs, {late} FROM {self._jobs}"
            " ORDER BY job_name DESC",
        )
        jobs = tuple(HeartbeatJob._make([*row[:6], Decimal(str(row[6]))]) for row in rows)
        return HeartbeatState(tuple(map(str, tables)), jobs, False)

    def delete_entries(self, group: str) -> int:
        self.require()
        pattern = group.upper().replace("_", r"\_").replace("*", "%").replace("?", "_")
        named = " OR ".join(
            f"UPPER({side}_{name}) LIKE %s" for side in ("incoming", "outgoing") for name in ("extract", "replicat")
        )
        routed = " OR ".join(
            f"CONCAT(',', UPPER({side}_routing_path), ',') LIKE %s" for side in ("incoming", "outgoing")
        )
        text = f"DELETE FROM {quote_table(self.names.heartbeat)} WHERE {named} OR {routed}"
        execute(self.connection, text, [*[pattern] * 4, *[f"%,{pattern},%"] * 2])
        return int(execute(self.connection, "SELECT ROW_COUNT()")[0][0])

    def lags(self, remote: str = "") -> list[Lag]:
        columns = ", ".join(f"h.{name}" for name in HEARTBEAT_COLUMNS)
        rows = execute(
            self.connection,
            f"SELECT {columns}, {sql.received_of(self.names.history)}, {sql.NOW} FROM {quote_table(self.names.heartbeat)} h"
            " WHERE %s = '' OR LOWER(h.remote_database) = LOWER(%s)"
            " ORDER BY h.remote_database, h.incoming_extract, h.incoming_routing_path, h.incoming_replicat",
            [remote, remote],
        )
        width = len(HEARTBEAT_COLUMNS)
        values = [list(map(_microseconds, row)) for row in rows]
        return [lag_of(Beat(*row[:width]), row[width], row[width + 1]) for row in values]

    def least_lags(self, since: int) -> Mapping[Way, tuple[float | None, float | None]]:
        incoming = sql.seconds("heartbeat_received_ts", "incoming_heartbeat_ts")
        outgoing = sql.seconds("outgoing_replicat_ts", "outgoing_heartbeat_ts")
        rows = execute(
            self.connection,
            "SELECT remote_database, incoming_extract, incoming_routing_path, incoming_replicat,"
            f" MIN({incoming}), MIN({outgoing}) FROM {self._history} WHERE heartbeat_received_ts >= %s GROUP BY 1, 2, 3, 4",
            [_since(since)],
        )
        return {(row[0], row[1], row[2], row[3]): (_number(row[4]), _number(row[5])) for row in rows}

    def received(self, number: int, first: int, group: str = "") -> list[Lag]:
        self.require()
        rows = execute(
            self.connection,
            f"SELECT {', '.join(HISTORY_COLUMNS)}, {sql.NOW} FROM {self._history} WHERE heartbeat_received_ts > %s"
            f" AND (%s = '' OR UPPER(%s) IN ({', '.join(_PROCESSES)}))"
            " ORDER BY heartbeat_received_ts DESC, remote_database, incoming_extract, incoming_replicat LIMIT %s OFFSET %s",
            [sql.NEVER, group, group, number, first],
        )
        values = [list(map(_microseconds, row)) for row in rows]
        return [lag_of(Beat(*row[:-1]), row[1], row[-1]) for row in values]

    def time(self) -> int:
        ((found,),) = execute(self.connection, f"SELECT {sql.NOW}")
        return int(_microseconds(found))

    def spreads(self, period: str, since: int, remote: str = "") -> list[Spread]:
        return sorted(spreads(self._arrivals(since, remote), period))

    def objectives(self, service: tuple[float, float], since: int, remote: str = "") -> list[Objective]:
        return objectives(self._arrivals(since, remote), *service)

    def history(self, columns: Sequence[str], since: int) -> Iterator[bytes]:
        text = f"SELECT {', '.join(columns)} FROM {self._history} WHERE heartbeat_received_ts >= %s"
        rows = execute(self.connection, text, [_since(since)])
        for first in range(0, len(rows), _CSV_ROWS):
            block = io.StringIO()
            writer = csv.writer(block, quoting=csv.QUOTE_MINIMAL, lineterminator="\n")
            writer.writerows(rows[first : first + _CSV_ROWS])
            yield block.getvalue().encode()

    def run_jobs(self) -> float | None:
        """Run the jobs that are due. Return the seconds until the next one, or None if none is scheduled."""
        with transaction(self.connection):
            due = execute(
                self.connection,
                f"SELECT job_name, retention_days FROM {self._jobs} WHERE next_run <= {sql.NOW} FOR UPDATE",
            )
            for job, kept in due:
                for statement in self._work(str(job), kept):
                    execute(self.connection, statement)
                execute(
                    self.connection,
                    f"UPDATE {self._jobs} SET runs = runs + 1, last_run = {sql.NOW},"
                    f" next_run = GREATEST(next_run + INTERVAL every_seconds * 1000000 MICROSECOND, {sql.NOW})"
                    " WHERE job_name = %s",
                    [job],
                )
        ((left,),) = execute(self.connection, f"SELECT MIN({sql.seconds('next_run', sql.NOW)}) FROM {self._jobs}")
        return None if left is None else max(0.0, float(left))

    def _work(self, job: str, kept: int | None) -> list[str]:
        if job == UPDATE_JOB:
            return sql.send(self.names, self.database)
        days = HeartbeatTableSettings().retention_days if kept is None else int(kept)
        return [f"DELETE FROM {self._history} WHERE heartbeat_received_ts < {sql.NOW} - INTERVAL {days} DAY"]

    def _arrivals(self, since: int, remote: str) -> Iterator[Arrival]:
        rows = execute(
            self.connection,
            f"SELECT {', '.join(HISTORY_COLUMNS)} FROM {self._history} WHERE heartbeat_received_ts >= %s"
            " AND incoming_heartbeat_ts IS NOT NULL AND (%s = '' OR LOWER(remote_database) = LOWER(%s))",
            [_since(since), remote, remote],
        )
        for row in rows:
            values = list(map(_microseconds, row))
            beat = Beat(*values)
            path = path_text(beat.incoming_extract, beat.incoming_routing_path, beat.incoming_replicat)
            yield Arrival(str(beat.remote_database), path, values[1], parts_of(beat, values[1]))

    @property
    def _jobs(self) -> str:
        return quote_table(self.names.jobs).replace("%", "%%")

    @property
    def _history(self) -> str:
        return quote_table(self.names.history).replace("%", "%%")

    def _has(self, table: TableName) -> bool:
        return table_exists(self.connection, table)

    def _begin_sending(self, frequency: Decimal, made: list[ChangedObject]) -> None:
        """Set up what a database that sends heartbeats needs: the first heartbeat, and the update job."""
        for statement in sql.send(self.names, self.database):
            execute(self.connection, statement)
        made.append(ChangedObject("OGG-14003", f"Populated heartbeat seed table {self.names.seed}."))
        self._set_job(UPDATE_JOB, frequency, None)
        made.append(frequency_change(frequency, "Created"))

    def _views(self, made: list[ChangedObject]) -> None:
        execute(self.connection, sql.lag_view(self.names))
        made.append(ChangedObject("OGG-14023", f"Created heartbeat lag view {self.names.of(LAG_VIEW)}."))
        execute(self.connection, sql.lag_history_view(self.names))
        name = self.names.of(LAG_HISTORY_VIEW)
        made.append(ChangedObject("OGG-14024", f"Created heartbeat lag history view {name}."))

    def _set_job(self, job: str, every: Decimal, retention: int | None) -> None:
        """Set how often a job runs (0: never). The next run is one interval from now."""
        following = f"{sql.NOW} + INTERVAL %s MICROSECOND" if every else "NULL"
        execute(
            self.connection,
            f"INSERT INTO {self._jobs} (job_name, every_seconds, retention_days, next_run) VALUES (%s, %s, %s, {following})"
            " ON DUPLICATE KEY UPDATE every_seconds = VALUES(every_seconds), next_run = VALUES(next_run),"
            " retention_days = COALESCE(VALUES(retention_days), retention_days)",
            [job, every, retention, *([int(every * 1_000_000)] if every else [])],
        )

    def _drop(self) -> list[tuple[str, TableName]]:
        names = self.names
        objects = [("View", names.of(view)) for view in (LAG_HISTORY_VIEW, LAG_VIEW)]
        objects += [("Table", table) for table in (names.history, names.heartbeat, names.seed, names.jobs)]
        for kind, name in objects:
            execute(self.connection, f"DROP {kind.upper()} IF EXISTS {quote_table(name)}")
        return objects


class MysqlHeartbeats:
    """The heartbeat jobs of a database that a group of the home logs in to, which Manager runs."""

    def __init__(self, login: str, names: HeartbeatNames) -> None:
        self.name = parse_login(login).shown
        self._login = login
        self._names = names
        self._connection: Connection[Any] | None = None

    def run(self) -> float | None:
        with self._connected() as tables:
            return tables.run_jobs() if table_exists(tables.connection, self._names.heartbeat) else ABSENT_SECONDS

    def lags(self) -> tuple[list[Lag], float]:
        with self._connected() as tables:
            if not table_exists(tables.connection, self._names.heartbeat):
                return [], USUAL_FREQUENCY
            return tables.lags(), float(tables.state().settings.frequency) or USUAL_FREQUENCY

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and connection.open:
            connection.close()

    @contextmanager
    def _connected(self) -> Iterator[MysqlHeartbeatTables]:
        """Yield the tables; after an error, the next use opens a new connection."""
        try:
            if self._connection is None:
                self._connection = connect(self._login, program="ggshell heartbeat jobs")
            yield MysqlHeartbeatTables(self._connection, self._names, database_of(self._login))
        except GgsError:
            self.close()
            raise


def _microseconds(value: Any) -> Any:
    return from_datetime(value.replace(tzinfo=UTC)) if isinstance(value, datetime) else value


def _since(since: int) -> str:
    """A time from which on rows count; those with the time NEVER do not."""
    return time_text(max(since, 1))


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
