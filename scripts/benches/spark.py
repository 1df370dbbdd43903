"""``spark``: queries about a large trail and a large lag archive, on Spark and on DuckDB, over the same facts.

A warm session on this machine's cores. The trail's peer is the same query to Spark over the same rows in Parquet; the lag
archive's peer is DuckDB over the same files, with exact percentiles. And what a person waits for: the first small query,
which never starts Spark, and a further one in a warm session.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from benches.beats import write_beats
from benches.figures import Figure, alternate, less_is_better, more_is_better
from benches.ground import ggshell
from benches.process_tree import family, peaks
from benches.trail import write_trail
from ggshell.query.engines import Engines
from ggshell.query.queries import counts, lag
from ggshell.query.queries import heartbeats as beats
from ggshell.query.queries.trails import trails
from ggshell.query.settings import EngineChoice, QuerySettings
from ggshell.query.views import ParquetView
from ggshell.trail.arrow import SCHEMA
from ggshell.trail.columnar import read_columnar
from ggshell.trail.name import TrailName

_COLUMNS = ["owner", "table", "op", "length", "commit_ts", "trans_ind"]
_COUNT = "SELECT owner, table, op, count(*) AS records, sum(length) AS bytes FROM rows GROUP BY owner, table, op"
_WAY = "remote_database, local_database, incoming_extract, incoming_routing_path, incoming_replicat"
_FIGURES = ", ".join(
    f"avg({hop}), quantile_disc({hop}, [0.5, 0.95, 0.99]), max({hop}), min({hop})"
    for hop in ("one", "two", "three", "four", "five")
)


_LAG = f"""
WITH once AS (SELECT {_WAY}, incoming_heartbeat_ts AS sent, min(incoming_extract_ts) AS extract,
                     min(incoming_routing_ts) AS routing,
                     min(incoming_replicat_ts) AS replicat, min(heartbeat_received_ts) AS received
                FROM '{{path}}' GROUP BY ALL),
     lags AS (SELECT *, epoch_us(extract) - epoch_us(sent) AS one, epoch_us(routing) - epoch_us(extract) AS two,
                     epoch_us(replicat) - epoch_us(routing) AS three, epoch_us(received) - epoch_us(replicat) AS four,
                     epoch_us(received) - epoch_us(sent) AS five FROM once)
SELECT count(*), {_WAY}, date_trunc('day', received) AS day, {_FIGURES} FROM lags GROUP BY ALL"""
"""The hand-written query."""


def run(rounds: int, quick: bool) -> list[Figure]:
    records = 100_000 if quick else 10_000_000
    heartbeats = (20_000, 100_000) if quick else (1_000_000, 100_000_000)
    folder = Path(tempfile.mkdtemp(prefix="ggshell-bench-"))
    engines = Engines(QuerySettings(EngineChoice.SPARK, memory="4g"), folder / "spark.log")
    try:
        small = TrailName(folder, "sm")
        write_trail(small, 10_000)
        return [
            *_trail(folder, engines, records, rounds),
            *_lag(folder, engines, heartbeats, rounds),
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

    def by_sql(_: int) -> float:
        began = time.perf_counter()
        _expect(sum(row[3] for row in asked.ask("TRAIL SQL", _COUNT.replace("rows", "trail")).rows), records)
        return records / (time.perf_counter() - began)

    ours(0)
    mine, theirs = alternate(rounds, ours, peer)
    in_sql = [by_sql(number) for number in range(rounds)]
    case = f"count of {records:,} records"
    return [
        more_is_better("spark", case, "rec/s", mine, theirs, "Spark, same rows in Parquet", 0.3),
        more_is_better("spark", case, "rec/s", mine, [1_500_000.0], "the goal", 1.0),
        more_is_better("spark", "the same, TRAIL SQL", "rec/s", in_sql, theirs, "Spark, same rows in Parquet", None),
    ]


def _lag(folder: Path, engines: Engines, sizes: tuple[int, int], rounds: int) -> list[Figure]:
    few, many = sizes
    seconds, theirs = [], list[float]()
    for rows in sizes:
        path = write_beats(folder / str(rows), rows)
        beats_ = beats.Heartbeats((beats.archive(0, "here", folder / str(rows)),), engines)

        def ours(_: int, beats_: beats.Heartbeats = beats_, rows: int = rows) -> float:
            began = time.perf_counter()
            _expect(sum(window.beats for window in lag.windows(beats_, "DAY")), rows)
            return time.perf_counter() - began

        def peer(_: int, path: Path = path, rows: int = rows) -> float:
            began = time.perf_counter()
            with duckdb.connect() as connection:
                _expect(sum(row[0] for row in connection.execute(_LAG.format(path=path)).fetchall()), rows)
            return time.perf_counter() - began

        ours(0)
        mine, theirs = alternate(rounds, ours, peer)
        seconds.append(mine)
    case = f"lag of {many:,} beats"
    a_row = [[1e9 * each / rows for each in taken] for rows, taken in zip(sizes, seconds, strict=True)]
    return [
        less_is_better("spark", case, "s", seconds[1], theirs, "DuckDB, exact", 0.67),
        less_is_better("spark", case, "ns/row", a_row[1], a_row[0], f"of {few:,}", 0.9),
        less_is_better("spark", case, "MB", [_peak_of_children()], [4096.0], "the limit", 1.0),
    ]


def _peak_of_children() -> float:
    """The high-water marks of Java and of Python's workers together, in MB."""
    return peaks(family(os.getpid()) - {os.getpid()})


def _again(name: TrailName, engines: Engines, rounds: int) -> Figure:
    asked = trails([str(name.file(0))], name.folder, engines)
    seconds = [counts.count(asked).seconds for _ in range(rounds + 1)][1:]
    return less_is_better("spark", "a small query, warm", "s", seconds, [0.5], "allowed", 1.0)


def _first(name: TrailName, rounds: int) -> Figure:
    command = [ggshell(), "--home", str(name.folder), "-c", f"TRAIL COUNT FROM {name.file(0)}"]
    seconds = []
    for _ in range(rounds):
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        seconds.append(time.perf_counter() - began)
    return less_is_better("spark", "first query, local", "s", seconds, [0.4], "allowed", 1.0)


def _expect(found: int, wanted: int) -> None:
    if found != wanted:
        raise RuntimeError(f"{found} rows were counted, not {wanted}")
