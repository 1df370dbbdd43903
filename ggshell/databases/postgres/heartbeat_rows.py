"""What the heartbeat tables of a PostgreSQL database say of lag, as values."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ggshell.clock import from_datetime
from ggshell.databases.postgres.describe import quote_table
from ggshell.databases.postgres.heartbeat_sql import UTC_NOW
from ggshell.databases.postgres.session import execute
from ggshell.heartbeat.history import Arrival
from ggshell.heartbeat.lag import parts_between, path_text
from ggshell.heartbeat.lags import Lag, Way, lag_of
from ggshell.heartbeat.names import HEARTBEAT_COLUMNS, HISTORY_COLUMNS, HeartbeatNames
from ggshell.heartbeat.row import Beat, time_text

if TYPE_CHECKING:
    import psycopg

_RECEIVED = """(SELECT max(r.heartbeat_received_ts) FROM {history} r
  WHERE r.incoming_heartbeat_ts = h.incoming_heartbeat_ts AND r.remote_database = h.remote_database
    AND r.incoming_replicat = h.incoming_replicat AND r.incoming_extract IS NOT DISTINCT FROM h.incoming_extract
    AND r.incoming_routing_path IS NOT DISTINCT FROM h.incoming_routing_path)"""


def _microseconds(value: Any) -> Any:
    return from_datetime(value.replace(tzinfo=UTC)) if isinstance(value, datetime) else value


def read_lags(connection: psycopg.Connection[Any], names: HeartbeatNames, remote: str = "") -> list[Lag]:
    """Every way (of one remote database, when it is named), by remote database and path."""
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


def read_arrivals(
    connection: psycopg.Connection[Any], names: HeartbeatNames, since: int, remote: str = ""
) -> list[Arrival]:
    """The heartbeats of the history that came at a moment (microseconds since 1970) or later, in the order they came."""
    rows = execute(
        connection,
        "SELECT remote_database, incoming_extract, incoming_routing_path, incoming_replicat, heartbeat_received_ts,"
        " incoming_heartbeat_ts, incoming_extract_ts, incoming_routing_ts, incoming_replicat_ts"
        f" FROM {quote_table(names.history)} WHERE heartbeat_received_ts >= %(since)s::timestamp"
        " AND (%(remote)s = '' OR lower(remote_database) = lower(%(remote)s)) ORDER BY heartbeat_received_ts",
        {"since": time_text(since), "remote": remote},
    )
    found: list[Arrival] = []
    for row in rows:
        received, *times = (_microseconds(value) for value in row[4:])
        found.append(Arrival(str(row[0]), path_text(*row[1:4]), received, parts_between((*times, received))))
    return found


def read_least_lags(
    connection: psycopg.Connection[Any], names: HeartbeatNames, since: int
) -> dict[Way, tuple[float | None, float | None]]:
    """The quickest heartbeat in and out of each way since a moment, in seconds; None where there is none."""
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
    """The database's own time, in microseconds since 1970."""
    return int(execute(connection, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")[0][0])


def read_history(connection: psycopg.Connection[Any], names: HeartbeatNames, since: int) -> list[tuple[Any, ...]]:
    """The history's rows since a moment (microseconds since 1970), in the order of HISTORY_COLUMNS; times without zone."""
    return execute(
        connection,
        f"SELECT {', '.join(HISTORY_COLUMNS)} FROM {quote_table(names.history)}"
        " WHERE heartbeat_received_ts >= %s::timestamp ORDER BY heartbeat_received_ts",
        [time_text(since)],
    )
