"""The heartbeat objects of a PostgreSQL database, as commands and Manager ask for them.

Lag over time is computed in the database, from the history table: one row per period, path and hop, however many
heartbeats there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.connectors.postgres import heartbeat
from ggshell.connectors.postgres.session import address, connect, execute, translate
from ggshell.durations import PERIODS
from ggshell.errors import GgsError
from ggshell.monitoring.heartbeat_lag import path_text
from ggshell.monitoring.spreads import HOPS, Objective, Spread
from ggshell.pipeline.heartbeat.names import HeartbeatNames
from ggshell.pipeline.heartbeat.row import time_text
from ggshell.types import quote_table

if TYPE_CHECKING:
    import psycopg

    from ggshell.connectors.heartbeat_tables import (
        ChangedObject,
        HeartbeatState,
        HeartbeatTableChanges,
        HeartbeatTableSettings,
    )
    from ggshell.monitoring.heartbeat_lag import Lag, Way

ABSENT_SECONDS = 30.0
"""Seconds between two checks of a database without heartbeat tables."""
USUAL_FREQUENCY = 60.0
_TIMES = (
    "incoming_heartbeat_ts",
    "incoming_extract_ts",
    "incoming_routing_ts",
    "incoming_replicat_ts",
    "heartbeat_received_ts",
)
_WAY = "remote_database, incoming_extract, incoming_routing_path, incoming_replicat"
_SINCE = """
 WHERE heartbeat_received_ts >= %(since)s::timestamp AND incoming_heartbeat_ts IS NOT NULL
   AND (%(remote)s = '' OR lower(remote_database) = lower(%(remote)s))"""


class PostgresHeartbeatTables(NamedTuple):
    """The heartbeat objects with these names in a database."""

    connection: psycopg.Connection[Any]
    names: HeartbeatNames

    def require(self) -> None:
        heartbeat.require(self.connection, self.names)

    def add(self, settings: HeartbeatTableSettings) -> list[ChangedObject]:
        return heartbeat.add(self.connection, self.names, settings)

    def alter(self, changes: HeartbeatTableChanges) -> list[ChangedObject]:
        return heartbeat.alter(self.connection, self.names, changes)

    def delete(self) -> list[ChangedObject]:
        return heartbeat.delete(self.connection, self.names)

    def upgrade(self) -> list[ChangedObject]:
        return heartbeat.upgrade(self.connection, self.names)

    def state(self) -> HeartbeatState:
        return heartbeat.info(self.connection, self.names)

    def delete_entries(self, group: str) -> int:
        return heartbeat.delete_entries(self.connection, self.names, group)

    def lags(self, remote: str = "") -> list[Lag]:
        return heartbeat.read_lags(self.connection, self.names, remote)

    def least_lags(self, since: int) -> Mapping[Way, tuple[float | None, float | None]]:
        return heartbeat.read_least_lags(self.connection, self.names, since)

    def received(self, number: int, first: int, group: str = "") -> list[Lag]:
        return heartbeat.read_received(self.connection, self.names, (number, first), group)

    def time(self) -> int:
        return heartbeat.database_time(self.connection)

    def spreads(self, period: str, since: int, remote: str = "") -> list[Spread]:
        """Percentiles of each hop by period (UTC), path and remote database, from a time on (microseconds since 1970)."""
        length = PERIODS[period]
        lags = ", ".join(f"({place}, {sql})" for place, sql in enumerate(_lags()))
        rows = execute(
            self.connection,
            f"""
            SELECT floor(extract(epoch FROM heartbeat_received_ts) / {length})::bigint * {length}, {_WAY}, hop, count(*),
                   percentile_disc(ARRAY[0.5, 0.95, 0.99, 1]) WITHIN GROUP (ORDER BY seconds)
              FROM {quote_table(self.names.history)} CROSS JOIN LATERAL (VALUES {lags}) AS hops (hop, seconds)
             {_SINCE} AND seconds IS NOT NULL
             GROUP BY 1, {_WAY}, hop""",
            {"since": time_text(since), "remote": remote},
        )
        found = [
            Spread(begin * 1_000_000, str(who), path_text(*way), HOPS[hop], count, *ranks)
            for begin, who, *way, hop, count, ranks in rows
        ]
        return sorted(found, key=lambda each: (each.begin, each.remote, each.path, HOPS.index(each.hop)))

    def objectives(self, service: tuple[float, float], since: int, remote: str = "") -> list[Objective]:
        """Each path compared with a service level: the share of heartbeats (0 to 1) within a number of seconds."""
        goal, limit = service
        rows = execute(
            self.connection,
            f"SELECT {_WAY}, count(*), count(*) FILTER (WHERE {_lags()[-1]} <= %(limit)s)"
            f" FROM {quote_table(self.names.history)} {_SINCE} GROUP BY {_WAY}",
            {"since": time_text(since), "remote": remote, "limit": limit},
        )
        found = [Objective(str(who), path_text(*way), goal, limit, beats, within) for who, *way, beats, within in rows]
        return sorted(found, key=lambda each: (each.remote, each.path))

    def history(self, columns: Sequence[str], since: int) -> Iterator[bytes]:
        """Columns of the history since a time as CSV, in blocks as they arrive. NULL is empty, an empty text is quoted."""
        import psycopg

        query = (
            f"COPY (SELECT {', '.join(columns)} FROM {quote_table(self.names.history)}"
            f" WHERE heartbeat_received_ts >= '{time_text(since)}'::timestamp) TO STDOUT (FORMAT csv)"
        )
        try:
            with self.connection.cursor() as cursor, cursor.copy(query) as copy:
                for piece in copy:
                    yield bytes(piece)
        except psycopg.Error as error:
            raise translate(error) from error


def _lags() -> list[str]:
    """SQL for each hop's lag in seconds, with the total last.

    A hop without a time has no lag, and the next hop counts from the last known time.
    """
    found = [
        _seconds(later, f"coalesce({', '.join(reversed(_TIMES[:number]))})")
        for number, later in enumerate(_TIMES[1:], 1)
    ]
    return [*found, _seconds(_TIMES[-1], _TIMES[0])]


def _seconds(later: str, earlier: str) -> str:
    return f"extract(epoch FROM {later} - {earlier})::float8"


class PostgresHeartbeats:
    """The heartbeat jobs of a database that a group of the home logs in to; Manager runs them if it has no scheduler."""

    def __init__(self, login: str, names: HeartbeatNames) -> None:
        self.name = address(login)
        self._login = login
        self._names = names
        self._connection: Any = None

    def run(self) -> float | None:
        with self._connected() as connection:
            if not heartbeat.exists(connection, self._names):
                return ABSENT_SECONDS
            return heartbeat.run_jobs(connection, self._names)[1]

    def lags(self) -> tuple[list[Lag], float]:
        with self._connected() as connection:
            if not heartbeat.exists(connection, self._names):
                return [], USUAL_FREQUENCY
            frequency = float(heartbeat.info(connection, self._names).settings.frequency)
            return heartbeat.read_lags(connection, self._names), frequency or USUAL_FREQUENCY

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """Yield the connection; after an error, the next use opens a new one."""
        try:
            if self._connection is None:
                self._connection = connect(self._login, program="ggshell heartbeat jobs")
            yield self._connection
        except GgsError:
            self.close()
            raise
