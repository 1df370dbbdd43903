"""``lake``: changes delivered to Delta and Iceberg tables, compared with the libraries' own appends and a
merge written in Spark SQL.

The store is a moto server on this machine. Times begin when the delivery begins, so the start of Spark is not among them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from benches.figures import LIMIT_NAME, Figure, less_is_better, more_is_better, percentile
from benches.ground import wait_until
from benches.lake_home import CHANGED, LOGGED, Changes, LakeHome, lake_home, object_store
from benches.process_tree import cpu_seconds
from ggshell.query.session import WarmSession
from ggshell.query.settings import EngineChoice, QuerySettings
from ggshell.record.definition import TableDefinition
from ggshell.trail.columnar import read_table

if TYPE_CHECKING:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyspark.sql import SparkSession

ROWS: Final = 10_000_000
QUICK_ROWS: Final = 20_000
APPENDED: Final = 250_000
"""Rows of one append of a library: about those of a batch of ours."""
LAG_SECONDS: Final = 60
RATE: Final = 1000
"""Changes a second while the lag is measured."""
PAUSE: Final = 0.1
LOOK_SECONDS: Final = 0.5
"""Each look at what is delivered takes requests of the store, which uses the same processors."""
LIMIT_MB: Final = 2048.0


def run(rounds: int, quick: bool) -> list[Figure]:
    rows = QUICK_ROWS if quick else ROWS
    figures = []
    with object_store():
        for form in ("delta", "iceberg"):
            figures += _log(form, rows, rounds)
        figures += _lag(5 if quick else LAG_SECONDS)
    return [*figures, *_merge(rows, rounds)]


class Cost(NamedTuple):
    """Changes a second, processor seconds for a million of them, and the largest memory in MB (0: not measured)."""

    rate: float
    cpu: float
    megabytes: float = 0


def _delivered(place: LakeHome, table: TableDefinition, rows: int) -> Cost:
    """Deliver changes to a lake."""
    changes = Changes(place.trail, table)
    end = changes.write(rows)
    changes.close()
    place.start()
    cpu, began = place.cpu(), time.perf_counter()
    memory = [0.0]

    def is_delivered() -> bool:
        memory.append(place.megabytes())
        return place.delivered() >= end

    wait_until("the changes are in the lake", is_delivered, seconds=3600, every=LOOK_SECONDS)
    seconds = time.perf_counter() - began
    return Cost(rows / seconds, (place.cpu() - cpu) / rows * 1e6, max(memory))


def _figures(case: str, ours: list[Cost], theirs: list[Cost], peer: str, goal: float) -> list[Figure]:
    return [
        more_is_better(
            "lake", case, "rows/s", [each.rate for each in ours], [each.rate for each in theirs], peer, goal
        ),
        less_is_better(
            "lake", case, "CPU s/million", [each.cpu for each in ours], [each.cpu for each in theirs], peer, None
        ),
        less_is_better("lake", case, "MB", [each.megabytes for each in ours], [LIMIT_MB], LIMIT_NAME, 1.0),
    ]


def _log(form: str, rows: int, rounds: int) -> list[Figure]:
    """The log alone, compared with appends of the same rows by the library of the form."""
    ours, theirs = list[Cost](), list[Cost]()
    for number in range(rounds):
        lake = f"s3://bench/log-{form}-{number}"
        with tempfile.TemporaryDirectory() as folder:
            catalog = f"sqlite:///{folder}/catalog.db"
            target = f"delta:{lake}" if form == "delta" else f"iceberg:sql+{catalog}?warehouse={lake}"
            with lake_home(target) as place:
                ours.append(_delivered(place, LOGGED, rows))
                table = _log_rows(form, lake, catalog)
        theirs.append(_appended(form, table, f"{lake}-peer"))
    return _figures(f"{form}, {rows:,} rows without a key", ours, theirs, f"appends by {_LIBRARIES[form]}", 0.5)


_LIBRARIES: Final = {"delta": "deltalake", "iceberg": "PyIceberg"}


def _log_rows(form: str, lake: str, catalog: str) -> pa.Table:
    """The log that was delivered, as Arrow."""
    if form == "delta":
        from deltalake import DeltaTable

        return pa.table(DeltaTable(f"{lake}/log").scan())
    return _iceberg_catalog(catalog, lake).load_table(("_ggshell", "log")).scan().to_arrow()


def _iceberg_catalog(uri: str, warehouse: str) -> SqlCatalog:
    from pyiceberg.catalog.sql import SqlCatalog

    store = {"s3.endpoint": os.environ["AWS_ENDPOINT_URL"], "s3.region": "us-east-1"}
    return SqlCatalog("lake", uri=uri, warehouse=warehouse, **store)


def _appended(form: str, table: pa.Table, location: str) -> Cost:
    """Append rows to a table in the store with the library of the form."""
    parts = [table.slice(first, APPENDED) for first in range(0, table.num_rows, APPENDED)]
    began, cpu = time.perf_counter(), time.process_time()
    _append(form, parts, location)
    seconds, spent = time.perf_counter() - began, time.process_time() - cpu
    return Cost(table.num_rows / seconds, spent / table.num_rows * 1e6)


def _append(form: str, parts: list[pa.Table], location: str) -> None:
    if form == "delta":
        from deltalake import write_deltalake

        for part in parts:
            write_deltalake(location, part, mode="append")
        return
    with tempfile.TemporaryDirectory() as folder:
        catalog = _iceberg_catalog(f"sqlite:///{folder}/catalog.db", location)
        catalog.create_namespace("bench")
        target = catalog.create_table("bench.rows", parts[0].schema)
        for part in parts:
            target.append(part)


def _lag(seconds: int) -> list[Figure]:
    """From the write to the trail to the commit in the lake, of changes that arrive at a steady rate."""
    with lake_home("delta:s3://bench/lag", "LATENCY 5 SEC") as place:
        changes = Changes(place.trail, CHANGED)
        changes.write(RATE)
        place.start()
        wait_until("the first changes are in the lake", lambda: place.delivered() >= changes.end)
        written, lags = [], []
        pause, over = threading.Event(), time.monotonic() + seconds
        while time.monotonic() < over or written:
            if time.monotonic() < over:
                written.append((changes.write(int(RATE * PAUSE)), time.monotonic()))
            reached, now = place.delivered(), time.monotonic()
            lags += [now - at for end, at in written if end <= reached]
            written = [each for each in written if each[0] > reached]
            pause.wait(PAUSE)
        changes.close()
    case = f"{RATE:,} changes/s, LATENCY 5 SEC, p99"
    return [less_is_better("lake", case, "s", [percentile(lags, 0.99)], [8.0], LIMIT_NAME, 1.0)]


def _merge(rows: int, rounds: int) -> list[Figure]:
    """Current rows in a folder of this machine, compared with the same merge in Spark SQL, which rewrites a Parquet table."""
    figures, theirs = list[Figure](), [_merged_by_hand(rows) for _ in range(rounds)]
    for form in ("delta", "iceberg"):
        ours = list[Cost]()
        for _ in range(rounds):
            with lake_home(f"{form}:./lake") as place:
                ours.append(_delivered(place, CHANGED, rows))
        figures += _figures(f"{form}, {rows:,} changes, 60% updates", ours, theirs, "a merge in Spark SQL", 1.0)
    return figures


_LATEST: Final = """
SELECT id, customer, amount, placed, note FROM (
    SELECT *, row_number() OVER (PARTITION BY id ORDER BY rba DESC) AS age FROM changes) WHERE age = 1"""
_KEPT: Final = "SELECT current.* FROM current LEFT ANTI JOIN changes ON current.id = changes.id"


def _merged_by_hand(rows: int) -> Cost:
    """A merge in Spark SQL: it has the changes as Parquet, and writes a log and the current rows."""
    folder = Path(tempfile.mkdtemp(prefix="ggshell-bench-"))
    session = WarmSession(QuerySettings(EngineChoice.SPARK, memory="2g"), folder / "spark.log")
    try:
        with lake_home("./lake") as place:
            changes = Changes(place.trail, CHANGED)
            changes.write(rows)
            changes.close()
            parts = [
                batch for _, batch in read_table(place.trail.file(0), str(CHANGED.name), columns=["csn", "op", "rba"])
            ]
        table = pa.Table.from_batches(parts)
        names = []
        for first in range(0, rows, APPENDED):
            names.append(folder / f"changes-{first}.parquet")
            pq.write_table(table.slice(first, APPENDED), names[-1])
        return session.run(lambda spark: _merges(spark, folder, names, rows))
    finally:
        session.close()
        shutil.rmtree(folder, ignore_errors=True)


def _merges(spark: SparkSession, folder: Path, names: list[Path], rows: int) -> Cost:
    began, cpu = time.perf_counter(), cpu_seconds(os.getpid())
    before: Path | None = None
    for number, name in enumerate(names):
        spark.read.parquet(str(name)).createOrReplaceTempView("changes")
        spark.table("changes").write.mode("append").parquet(str(folder / "log"))
        query = _LATEST
        if before is not None:
            spark.read.parquet(str(before)).createOrReplaceTempView("current")
            query = f"{_KEPT} UNION ALL {_LATEST}"
        before = folder / f"current-{number}"
        spark.sql(query).write.parquet(str(before))
    seconds, spent = time.perf_counter() - began, cpu_seconds(os.getpid()) - cpu
    return Cost(rows / seconds, spent / rows * 1e6)
