"""DDL from PostgreSQL to PostgreSQL with real processes, by each kind of Replicat, and after kills."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from pipelines import REP1, Pipeline
from processes import until

from ggshell.home.process_file import read_process_file

EXTRACT = "EXTRACT ext1\nUSERIDALIAS north\nEXTTRAIL ./dirdat/ea\nDDL INCLUDE ALL\nTABLE a.*;\n"
KINDS = {"classic": "", "parallel": "PARALLEL, ", "coordinated": "COORDINATED, MAXTHREADS 3, "}


@pytest.fixture
def replicating(tmp_path: Path, north: str, south: str, request: pytest.FixtureRequest) -> Iterator[Pipeline]:
    kind = getattr(request, "param", "classic")
    pipeline = Pipeline(tmp_path / "home", north, south)
    pipeline.write("ext1", EXTRACT)
    threads = ", THREADRANGE (1-3)" if kind == "coordinated" else ""
    pipeline.write("rep1", f"REPLICAT rep1\nUSERIDALIAS south\nMAP a.*, TARGET b.*{threads};\n")
    pipeline.run("DBLOGIN USERIDALIAS north", "ADD SCHEMATRANDATA a")
    pipeline.add(kind=KINDS[kind])
    pipeline.start()
    yield pipeline
    pipeline.close()


def rows(pipeline: Pipeline, table: str) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    return pipeline.in_north(f"SELECT * FROM a.{table} ORDER BY 1"), pipeline.in_south(
        f"SELECT * FROM b.{table} ORDER BY 1"
    )


def wait_until_done(pipeline: Pipeline, number: int) -> None:
    pipeline.in_north(f"INSERT INTO a.items (id) VALUES ({1_000_000 + number})")
    wanted = f"SELECT count(*) FROM b.items WHERE id = {1_000_000 + number}"
    until("the last row arrives", lambda: pipeline.in_south(wanted)[0][0] == 1)


def work(pipeline: Pipeline, number: int) -> None:
    """Create, fill, change and drop tables, in one transaction and in several."""
    pipeline.in_north(
        f"BEGIN; CREATE TABLE a.t{number} (id int PRIMARY KEY, v text); INSERT INTO a.t{number} VALUES (1, 'one');"
        f"ALTER TABLE a.t{number} ADD COLUMN n numeric DEFAULT 7; INSERT INTO a.t{number} VALUES (2, 'two', 2); COMMIT",
        f"INSERT INTO a.t{number} SELECT n, 'row', n FROM generate_series(10, 60) n",
        f"CREATE INDEX ON a.t{number} (v)",
        f"ALTER TABLE a.t{number} RENAME COLUMN v TO w",
        f"UPDATE a.t{number} SET w = 'changed' WHERE id < 20",
        f"ALTER TABLE a.t{number} DROP COLUMN n",
        f"INSERT INTO a.t{number} SELECT n, 'more' FROM generate_series(100, 110) n",
        f"CREATE TABLE a.gone{number} (id int PRIMARY KEY)",
        f"INSERT INTO a.gone{number} VALUES (1)",
        f"DROP TABLE a.gone{number}",
        f"INSERT INTO a.items VALUES ({number}, 'after', 1)",
    )


@pytest.mark.parametrize("replicating", list(KINDS), indirect=True)
def test_tables_are_created_changed_and_dropped(replicating: Pipeline) -> None:
    work(replicating, 1)
    work(replicating, 2)
    wait_until_done(replicating, 0)
    for number in (1, 2):
        source, target = rows(replicating, f"t{number}")
        assert source == target
        assert len(source) == 64
        assert replicating.in_south(f"SELECT to_regclass('b.gone{number}')") == [(None,)]


@pytest.mark.parametrize("replicating", list(KINDS), indirect=True)
def test_killed_replicats_execute_each_statement_once(replicating: Pipeline) -> None:
    for number in range(1, 7):
        work(replicating, number)
        entry = read_process_file(replicating.home.process(*REP1))
        if entry is not None and number % 2:
            os.kill(entry.pid, signal.SIGKILL)
            until("it is dead", lambda: not replicating.is_running(REP1))
            replicating.run("START REPLICAT rep1")
    wait_until_done(replicating, 0)
    for number in range(1, 7):
        source, target = rows(replicating, f"t{number}")
        assert source == target
