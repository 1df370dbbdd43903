"""Lag over time from the history table, computed in the database.

It returns one row per period, path and hop, however many heartbeats there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ggshell.connectors.postgres.session import execute, translate
from ggshell.monitoring.heartbeat_lag import path_text
from ggshell.monitoring.spreads import HOPS, PERIODS, Objective, Spread
from ggshell.pipeline.heartbeat.names import HeartbeatNames
from ggshell.pipeline.heartbeat.row import time_text
from ggshell.types import quote_table

if TYPE_CHECKING:
    import psycopg

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


def read_spreads(
    connection: psycopg.Connection[Any], names: HeartbeatNames, period: str, since: int, remote: str = ""
) -> list[Spread]:
    """Percentiles of each hop by period (UTC), path and remote database, from a time on (microseconds since 1970)."""
    length = PERIODS[period]
    lags = ", ".join(f"({place}, {sql})" for place, sql in enumerate(_lags()))
    rows = execute(
        connection,
        f"""
        SELECT floor(extract(epoch FROM heartbeat_received_ts) / {length})::bigint * {length}, {_WAY}, hop, count(*),
               percentile_disc(ARRAY[0.5, 0.95, 0.99, 1]) WITHIN GROUP (ORDER BY seconds)
          FROM {quote_table(names.history)} CROSS JOIN LATERAL (VALUES {lags}) AS hops (hop, seconds)
         {_SINCE} AND seconds IS NOT NULL
         GROUP BY 1, {_WAY}, hop""",
        {"since": time_text(since), "remote": remote},
    )
    found = [
        Spread(begin * 1_000_000, str(who), path_text(*way), HOPS[hop], count, *ranks)
        for begin, who, *way, hop, count, ranks in rows
    ]
    return sorted(found, key=lambda each: (each.begin, each.remote, each.path, HOPS.index(each.hop)))


def read_objectives(
    connection: psycopg.Connection[Any],
    names: HeartbeatNames,
    service: tuple[float, float],
    since: int,
    remote: str = "",
) -> list[Objective]:
    """Each path compared with a service level: the share of heartbeats (0 to 1) within a number of seconds."""
    goal, limit = service
    rows = execute(
        connection,
        f"SELECT {_WAY}, count(*), count(*) FILTER (WHERE {_lags()[-1]} <= %(limit)s)"
        f" FROM {quote_table(names.history)} {_SINCE} GROUP BY {_WAY}",
        {"since": time_text(since), "remote": remote, "limit": limit},
    )
    found = [Objective(str(who), path_text(*way), goal, limit, beats, within) for who, *way, beats, within in rows]
    return sorted(found, key=lambda each: (each.remote, each.path))


def copy_history(
    connection: psycopg.Connection[Any], names: HeartbeatNames, columns: Sequence[str], since: int
) -> Iterator[bytes]:
    """Columns of the history since a time as CSV, in blocks as they arrive. NULL is empty, an empty text is quoted."""
    import psycopg

    query = (
        f"COPY (SELECT {', '.join(columns)} FROM {quote_table(names.history)}"
        f" WHERE heartbeat_received_ts >= '{time_text(since)}'::timestamp) TO STDOUT (FORMAT csv)"
    )
    try:
        with connection.cursor() as cursor, cursor.copy(query) as copy:
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
