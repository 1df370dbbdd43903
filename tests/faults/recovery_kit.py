"""A pipeline with a Replicat of any kind, a workload for it, and a comparison of its target, for tests of recoveries.

The ledger has no key, so a row that is applied twice is in it twice.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psycopg
from pipelines import Pipeline
from processes import until, until_state

from ggshell.home.process_file import ProcessState, read_process_file

KINDS = {
    "classic": ("", "", ""),
    "parallel": ("PARALLEL, ", "APPLY_PARALLELISM 3\n", ""),
    "coordinated": ("COORDINATED MAXTHREADS 3, ", "", "MAP a.ledger, TARGET b.ledger, THREAD (2);\n"),
}


def open_pipeline(kind: str, root: Path, north: str, south: str) -> Pipeline:
    """Start a pipeline with a Replicat of a kind."""
    added, parameters, maps = KINDS[kind]
    pipeline = Pipeline(root, north, south)
    pipeline.add_replicat = f"ADD REPLICAT rep1, {added}EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks"  # type: ignore[attr-defined]
    pipeline.write("rep1", f"REPLICAT rep1\nUSERIDALIAS south\n{parameters}{maps}MAP a.*, TARGET b.*;\n")
    pipeline.write(
        "ext1",
        "EXTRACT ext1\nUSERIDALIAS north\nTRANLOGOPTIONS CHECKPOINTRETENTIONTIME 1\nEXTTRAIL ./dirdat/ea\nTABLE a.*;\n",
    )
    for schema, run in (("a", pipeline.in_north), ("b", pipeline.in_south)):
        run(f"CREATE TABLE {schema}.ledger (line int, note text)")
    pipeline.add("a.*", added)
    pipeline.start()
    return pipeline


def add_replicat_statement(pipeline: Pipeline) -> str:
    return str(getattr(pipeline, "add_replicat"))  # noqa: B009 - set by open_pipeline


def write_lines(pipeline: Pipeline, first: int, last: int) -> None:
    """Commit one transaction per line; each inserts a line and changes an item."""
    with psycopg.connect(pipeline.north) as connection:
        for line in range(first, last + 1):
            connection.execute("INSERT INTO a.ledger VALUES (%s, 'x')", [line])
            connection.execute(
                "INSERT INTO a.items VALUES (%s, 'n', 1) ON CONFLICT (id) DO UPDATE SET price = a.items.price + 1",
                [line % 7],
            )
            connection.commit()


def ledger(run: object, schema: str) -> list[tuple[object, ...]]:
    return run(f"SELECT line, count(*) FROM {schema}.ledger GROUP BY 1 ORDER BY 1")  # type: ignore[operator,no-any-return]


def wait_and_compare(pipeline: Pipeline) -> None:
    """Wait until everything has arrived; assert that every line is there once and every item equals the source."""
    until(
        "everything arrives",
        lambda: (
            pipeline.in_south("SELECT count(DISTINCT line) FROM b.ledger")
            == pipeline.in_north("SELECT count(DISTINCT line) FROM a.ledger")
            and pipeline.in_south("SELECT sum(price) FROM b.items")
            == pipeline.in_north("SELECT sum(price) FROM a.items")
        ),
        60,
    )
    assert ledger(pipeline.in_south, "b") == ledger(pipeline.in_north, "a")
    pipeline.assert_same_rows()


def kill(pipeline: Pipeline, group: tuple[str, object]) -> None:
    """Kill a process with kill -9 and wait until it is reported as abended."""
    entry = read_process_file(pipeline.home.process(*group))  # type: ignore[arg-type]
    assert entry is not None
    os.kill(entry.pid, signal.SIGKILL)
    until_state(pipeline.home, *group, ProcessState.ABENDED)  # type: ignore[arg-type]
