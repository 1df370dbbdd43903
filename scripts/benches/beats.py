"""Files of a lag archive for the benches: a heartbeat a second, of four paths."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import duckdb

_ROWS: Final = """
COPY (SELECT 'SOUTH' AS local_database, t + INTERVAL 900 milliseconds AS heartbeat_received_ts,
             concat('NORTH', n % 4) AS remote_database, t AS incoming_heartbeat_ts,
             t + INTERVAL 200 milliseconds AS incoming_extract_ts, t + INTERVAL 400 milliseconds AS incoming_routing_ts,
             t + INTERVAL 1 millisecond * (500 + n % 300) AS incoming_replicat_ts, concat('EXT', n % 4) AS incoming_extract,
             'PUMP' AS incoming_routing_path, concat('REP', n % 4) AS incoming_replicat
        FROM (SELECT n, TIMESTAMP '2026-01-01' + INTERVAL 1 second * n AS t
                FROM range({first}, {first} + {rows}) AS made(n)) AS beats)
  TO '{path}' (FORMAT parquet, COMPRESSION zstd)"""


def write_beats(folder: Path, rows: int, first: int = 0) -> Path:
    """Write a file of heartbeats, from a second on; return it."""
    day = folder / "day=2026-01-01"
    day.mkdir(parents=True, exist_ok=True)
    path = day / f"beats-{first}.parquet"
    with duckdb.connect() as connection:
        connection.execute(_ROWS.format(first=first, rows=rows, path=path))
    return path
