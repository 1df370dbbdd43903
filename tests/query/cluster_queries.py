"""What the tests of the cluster run in the driver's process, or here with the local engine, for comparison."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from trail_samples import EMPLOYEES

from ggshell.errors import GgsError
from ggshell.query.engines import Engines
from ggshell.query.queries import counts, finding, gaps, lag
from ggshell.query.queries.asof import Moment, as_of
from ggshell.query.queries.heartbeats import Heartbeats, archive
from ggshell.query.queries.trails import trails
from ggshell.types import Csn

TABLE = EMPLOYEES.name
SQL = "select op, count(*) as n, min(columns['id']) as least from trail group by op order by op"


def answers(engines: Engines, trail: str) -> dict[str, Any]:
    """The answers of every kind of query about a trail."""
    queried = trails([trail], Path(trail).parent, engines)
    return {
        "count": counts.count(queried).rows,
        "count by minute": counts.count(queried, "MINUTE").rows,
        "transactions": counts.largest_transactions(queried, 5).rows,
        "tables": counts.busiest_tables(queried, 5).rows,
        "minutes": counts.busiest_minutes(queried, 5).rows,
        "transaction": finding.find_transaction(queried, csn=str(Csn(19))).rows,
        "row": finding.find_row(queried, TABLE, ("id",), ("9",)).rows,
        "gaps": [gaps.gap_values(each) for each in gaps.gaps(queried, 0.001)],
        "as of": as_of(queried, EMPLOYEES, Moment(csn=str(Csn(80)))).rows,
        "SQL": queried.ask("SQL", SQL).rows,
    }


def count(engines: Engines, trail: str) -> list[Any]:
    return counts.count(trails([trail], Path(trail).parent, engines)).rows


def answer_of_lag(engines: Engines, folder: Path) -> list[Any]:
    return lag.windows(Heartbeats((archive(1, "home", folder),), engines), "HOUR")


def rows_by_source(engines: Engines, trail: str) -> list[tuple[int, int, str]]:
    """(sequence number, RBA, columns) of every row, in order."""
    sql = "select seqno, rba, columns from trail order by seqno, rba"
    rows = trails([trail], Path(trail).parent, engines).ask("SQL", sql).rows
    return [(seqno, rba, str(sorted(columns.items()))) for seqno, rba, columns in rows]


def followed(engines: Engines, trail: str, lake: str) -> list[tuple[int, int]]:
    """The rows of a stream in several batches."""
    spark = engines.session.get()
    stream = spark.readStream.format("ggtrail").option("maxBytesPerTrigger", "12000").load(trail)
    writer = (
        stream.writeStream.format("parquet").option("path", lake).option("checkpointLocation", f"{lake}-checkpoint")
    )
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination(240)
    assert len(query.recentProgress) > 1
    return sorted((row.seqno, row.rba) for row in spark.read.parquet(lake).select("seqno", "rba").collect())


def copied_to_trail(engines: Engines, trail: str, other: str) -> None:
    spark = engines.session.get()
    frame = spark.read.format("ggtrail").load(trail)
    frame.write.format("ggtrail").option("definitions", trail).mode("append").save(other)


def hosts_seen(engines: Engines) -> list[tuple[int, str]]:
    """(process of the executor, where its tasks find ggshell) of several tasks."""

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import threading

        import ggshell

        for _ in batches:
            threading.Event().wait(0.5)  # so that both executors get tasks
            executor = int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1])
            yield pa.record_batch([[executor], [str(ggshell.__file__)]], names=["process", "place"])

    spark = engines.session.get()
    frame = spark.range(0, 8, 1, 8).mapInArrow(look, "process bigint, place string")
    return [(row.process, row.place) for row in frame.collect()]


def secrets_seen(engines: Engines) -> dict[str, str]:
    """The settings that protect the cluster."""
    names = ("authenticate", "network.crypto.enabled", "io.encryption.enabled", "driver.bindAddress")
    conf = engines.session.get().sparkContext.getConf()
    return {f"spark.{name}": str(conf.get(f"spark.{name}")) for name in names}


def read_with_pauses(engines: Engines, trail: str, marks: str) -> list[tuple[int, int]]:
    """The rows of a trail; each task waits after its first batch until the file ``go on`` exists."""

    def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import threading
        from uuid import uuid4

        for batch in batches:
            yield batch
            (Path(marks) / uuid4().hex).touch()
            while not (Path(marks) / "go on").exists():
                threading.Event().wait(0.05)

    frame = engines.session.get().read.format("ggtrail").option("columns", "seqno,rba").load(trail)
    rows = frame.mapInArrow(wait, "seqno int, rba bigint").collect()
    return sorted((row.seqno, row.rba) for row in rows)


def refused_with(engines: Engines, python: str, trail: str) -> str:
    """The error of TRAIL COUNT while tasks run with another Python; empty without one."""
    context = engines.session.get().sparkContext
    before, context.pythonExec = context.pythonExec, python
    try:
        counts.count(trails([trail], Path(trail).parent, engines))
    except GgsError as error:
        return f"{error.code} {error}"
    finally:
        context.pythonExec = before
    return ""
