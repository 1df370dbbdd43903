"""TRUNCATE with bidirectional replication: it is applied on the other side and does not loop back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pipelines import Pipeline
from processes import until

TABLES = (
    "CREATE SCHEMA s",
    "CREATE TABLE s.ends (id int PRIMARY KEY)",
    "CREATE TABLE s.parents (id int PRIMARY KEY, v text)",
    "CREATE TABLE s.children (id int PRIMARY KEY, parent int REFERENCES s.parents, v text)",
    "CREATE TABLE s.parts (id int PRIMARY KEY, v text) PARTITION BY RANGE (id)",
    "CREATE TABLE s.low PARTITION OF s.parts FOR VALUES FROM (0) TO (100)",
    "CREATE TABLE s.high PARTITION OF s.parts FOR VALUES FROM (100) TO (200)",
    "INSERT INTO s.parents SELECT n, 'x' FROM generate_series(1, 20) n",
    "INSERT INTO s.children SELECT n, n, 'x' FROM generate_series(1, 20) n",
    "INSERT INTO s.parts SELECT n, 'x' FROM generate_series(1, 199) n",
)
SUMS = " UNION ALL ".join(
    f"SELECT '{table}', count(*), md5(coalesce(string_agg(x::text, '|' ORDER BY x::text), '')) FROM s.{table} x"
    for table in ("children", "parents", "parts")
)
STEPS: tuple[tuple[str, tuple[str, ...], tuple[int, int, int]], ...] = (
    ("north", ("TRUNCATE s.children",), (0, 20, 199)),
    ("south", ("INSERT INTO s.children SELECT n, n, 'y' FROM generate_series(1, 20) n",), (20, 20, 199)),
    ("south", ("TRUNCATE s.parents CASCADE",), (0, 0, 199)),
    ("north", ("BEGIN; TRUNCATE s.low; INSERT INTO s.parts VALUES (5, 'new'); COMMIT",), (0, 0, 101)),
    ("south", ("BEGIN; DELETE FROM s.parts WHERE id > 150; TRUNCATE s.high; COMMIT",), (0, 0, 1)),
    ("north", ("BEGIN; TRUNCATE s.parts; ROLLBACK", "INSERT INTO s.parts VALUES (150, 'kept')"), (0, 0, 2)),
    ("south", ("TRUNCATE s.parts",), (0, 0, 0)),
)
"""Where a statement runs, the statement, and the resulting numbers of rows in children, parents and parts."""


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path / "home", north, south)
    yield pipeline
    pipeline.close()


def prepare(pipeline: Pipeline) -> None:
    for run in (pipeline.in_north, pipeline.in_south):
        run(*TABLES)
    pipeline.start_both_directions("GETTRUNCATES\n", "GETTRUNCATES\n")


def test_a_truncate_is_applied_on_the_other_side_and_does_not_loop_back(pipeline: Pipeline) -> None:
    prepare(pipeline)
    for number, (here, statements, counts) in enumerate(STEPS, 1):
        (pipeline.in_north if here == "north" else pipeline.in_south)(*statements)
        pipeline.in_north(f"INSERT INTO s.ends VALUES ({2 * number})")
        pipeline.in_south(f"INSERT INTO s.ends VALUES ({2 * number + 1})")
        for run in (pipeline.in_north, pipeline.in_south):
            until(
                "the marker rows arrive",
                lambda run=run, ends=2 * number: run("SELECT count(*) FROM s.ends") == [(ends,)],
            )
        found = pipeline.in_north(f"{SUMS} ORDER BY 1")
        assert found == pipeline.in_south(f"{SUMS} ORDER BY 1"), statements
        assert tuple(row[1] for row in found) == counts, statements
