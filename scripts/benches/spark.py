"""``spark``: questions about a large trail and a large lag archive, on Spark and beside DuckDB, over the same facts.

A warm session on this machine's cores.  The trail's peer is the same question to Spark over the same rows in Parquet; the lag
archive's peer is DuckDB over the same files.  And what a person waits for: the first small question, which never starts
Spark, and a further one in a warm session.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from benches.figures import Figure, alternate, less_is_better, more_is_better
from benches.ground import ggshell
from benches.trail import write_trail
from ggshell.spark.engines import Engines
from ggshell.spark.questions import beats, counts, lag
from ggshell.spark.questions.trails import trails
from ggshell.spark.settings import EngineChoice, Settings
from ggshell.spark.views import ParquetView
from ggshell.trail import TrailName
from ggshell.trail.arrow import SCHEMA
from ggshell.trail.columnar import read_columnar

_COLUMNS = ["owner", "table", "op", "length", "commit_ts", "trans_ind"]
_COUNT = "SELECT owner, table, op, count(*) AS records, sum(length) AS bytes FROM rows GROUP BY owner, table, op"
_ARCHIVE = """
COPY (SELECT 'SOUTH' AS local_database, t + INTERVAL 900 milliseconds AS heartbeat_received_ts,
             concat('NORTH', n % 4) AS remote_database, t AS incoming_heartbeat_ts,
             t + INTERVAL 200 milliseconds AS incoming_extract_ts, t + INTERVAL 400 milliseconds AS incoming_routing_ts,
             t + INTERVAL 1 millisecond * (500 + n % 300) AS incoming_replicat_ts, concat('EXT', n % 4) AS incoming_extract,
             'PUMP' AS incoming_routing_path, concat('REP', n % 4) AS incoming_replicat
        FROM (SELECT n, TIMESTAMP '2026-01-01' + INTERVAL 1 second * n AS t FROM range({rows}) AS made(n)) AS beats)
  TO '{path}' (FORMAT parquet, COMPRESSION zstd)"""


def run(rounds: int, quick: bool) -> list[Figure]:
    records, heartbeats = (100_000, 100_000) if quick else (10_000_000, 20_000_000)
    folder = Path(tempfile.mkdtemp(prefix="ggshell-bench-"))
    engines = Engines(Settings(EngineChoice.SPARK, memory="4g"), folder / "spark.log")
    local = Engines(Settings(EngineChoice.LOCAL), folder / "spark.log")
    try:
        small = TrailName(folder, "sm")
        write_trail(small, 10_000)
        return [
            *_trail(folder, engines, records, rounds),
            _lag(folder, engines, local, heartbeats, rounds),
            _again(small, engines, rounds),
            _first(small, rounds),
        ]
    finally:
        engines.close()
        shutil.rmtree(folder, ignore_errors=True)


def _trail(folder: Path, engines: Engines, records: int, rounds: int) -> list[Figure]:
    name = TrailName(folder, "bg")
    write_trail(name, records)
    path, parquet = name.file(0), folder / "rows.parquet"
    with pq.ParquetWriter(parquet, SCHEMA.empty_table().select(_COLUMNS).schema) as writer:
        for batch in read_columnar(path, _COLUMNS):
            writer.write_batch(batch)
    asked = trails([str(path)], folder, engines)
    view = ParquetView("rows", (str(parquet),))

    def ours(_: int) -> float:
        began = time.perf_counter()
        _expect(sum(row[3] for row in counts.count(asked).rows), records)
        return records / (time.perf_counter() - began)

    def peer(_: int) -> float:
        began = time.perf_counter()
        _expect(sum(row[3] for row in engines.ask("peer", _COUNT, [view]).rows), records)
        return records / (time.perf_counter() - began)

    ours(0)
    mine, theirs = alternate(rounds, ours, peer)
    case = f"count of {records:,} records"
    return [
        more_is_better("spark", case, "rec/s", mine, theirs, "Spark, same rows in Parquet", 0.3),
        more_is_better("spark", case, "rec/s", mine, [1_500_000.0], "the goal", 1.0),
    ]


def _lag(folder: Path, engines: Engines, local: Engines, rows: int, rounds: int) -> Figure:
    day = folder / "dirlag" / "day=2026-01-01"
    day.mkdir(parents=True)
    with duckdb.connect() as connection:
        connection.execute(_ARCHIVE.format(rows=rows, path=day / "beats.parquet"))
    source = beats.archive(0, "here", day.parent)

    def taken(engine: Engines) -> float:
        began = time.perf_counter()
        found = lag.windows(beats.Beats((source,), engine), "DAY")
        _expect(sum(window.beats for window in found), rows)
        return time.perf_counter() - began

    mine, theirs = alternate(rounds, lambda _: taken(engines), lambda _: taken(local))
    return less_is_better("spark", f"lag of {rows:,} beats", "s", mine, theirs, "DuckDB", 0.67)


def _again(name: TrailName, engines: Engines, rounds: int) -> Figure:
    asked = trails([str(name.file(0))], name.folder, engines)
    seconds = [counts.count(asked).seconds for _ in range(rounds + 1)][1:]
    return less_is_better("spark", "a small question, warm", "s", seconds, [0.5], "allowed", 1.0)


def _first(name: TrailName, rounds: int) -> Figure:
    command = [ggshell(), "--home", str(name.folder), "-c", f"TRAIL COUNT FROM {name.file(0)}"]
    seconds = []
    for _ in range(rounds):
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        seconds.append(time.perf_counter() - began)
    return less_is_better("spark", "first question, local", "s", seconds, [1.0], "allowed", 1.0)


def _expect(found: int, wanted: int) -> None:
    if found != wanted:
        raise RuntimeError(f"{found} rows were counted, not {wanted}")
