"""COMPARE's repair script for two databases that replicate to each other: neither Extract captures its changes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from pipelines import Pipeline
from processes import until

from ggshell.demo.postgres_server import find_binaries

MARKED = "SELECT pg_replication_origin_create('other'), pg_replication_origin_session_setup('other')"
"""Settings of a session whose changes are not captured by any Extract."""
SPOIL = (
    "DELETE FROM s.items WHERE id = 1; UPDATE s.items SET price = 0.5, name = 'wrong' WHERE id = 2;"
    "INSERT INTO s.items VALUES (9, 'extra', 9)"
)


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    """Two databases that replicate s.items to each other; the rows of south are changed without being captured."""
    pipeline = Pipeline(tmp_path / "home", north, south)
    for run in (pipeline.in_north, pipeline.in_south):
        run("CREATE SCHEMA s", "CREATE TABLE s.items (id int PRIMARY KEY, name text, price numeric(10,2))")
        run("INSERT INTO s.items SELECT n, 'name', n FROM generate_series(1, 5) n")
    pipeline.start_both_directions()
    with psycopg.connect(south, autocommit=True) as connection:
        connection.execute(MARKED)
        connection.execute(SPOIL)
        connection.execute("SELECT pg_replication_origin_session_reset(), pg_replication_origin_drop('other')")
    yield pipeline
    pipeline.close()


TOUCH = (
    "CREATE FUNCTION s.touch() RETURNS trigger LANGUAGE plpgsql AS"
    " $$ BEGIN NEW.price := greatest(NEW.price, 1000) + 1; RETURN NEW; END $$",
    "CREATE TRIGGER touch BEFORE INSERT OR UPDATE ON s.items FOR EACH ROW EXECUTE FUNCTION s.touch()",
)
"""A trigger that changes a value of each written row, like the one in docs/two-way.md."""


def rows(pipeline: Pipeline) -> list[list[tuple[object, ...]]]:
    return [run("SELECT * FROM s.items ORDER BY id") for run in (pipeline.in_north, pipeline.in_south)]


def repair(pipeline: Pipeline, *options: str) -> str:
    """Compare, and run the script in south as its header says; returns what psql printed."""
    output = pipeline.run(
        f"COMPARE north TO south, TABLE s.items, LAG 0 SEC, REPAIR ./repair.sql{''.join(options)}", fails=True
    )
    assert "3 rows differ" in output
    command = [
        find_binaries() / "psql",
        "-v",
        "ON_ERROR_STOP=1",
        "-f",
        pipeline.home.root / "repair.sql",
        pipeline.south,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def wait_for_both(pipeline: Pipeline) -> None:
    """Wait until each side has the last change of the other."""
    pipeline.in_north("INSERT INTO s.items VALUES (101, 'end', 1)")
    pipeline.in_south("INSERT INTO s.items VALUES (102, 'end', 1)")
    wanted = [(101,), (102,)]
    for run in (pipeline.in_north, pipeline.in_south):
        until(
            "the last changes arrive", lambda run=run: run("SELECT id FROM s.items WHERE id > 100 ORDER BY 1") == wanted
        )


def test_a_repair_script_is_not_captured_and_sent_back(pipeline: Pipeline) -> None:
    before = rows(pipeline)[0]
    assert repair(pipeline).split().count("DELETE") == 1
    assert rows(pipeline)[1] == before
    wait_for_both(pipeline)
    assert rows(pipeline)[0] == rows(pipeline)[1]
    for group in ("EXTRACT ext1", "EXTRACT ext2", "REPLICAT rep1", "REPLICAT rep2"):
        counted = pipeline.run(f"STATS {group}, TOTAL, TABLE s.items")
        assert counted.count("Total operations                                   1.00") == 1, counted
    assert pipeline.in_south("SELECT roname FROM pg_replication_origin WHERE roname LIKE 'ggshell%'") == []


def test_a_trigger_that_changes_rows_does_not_fire_for_a_repair_script(pipeline: Pipeline) -> None:
    pipeline.in_south(*TOUCH)
    repair(pipeline)
    assert rows(pipeline)[1] == rows(pipeline)[0]
    pipeline.run("COMPARE north TO south, TABLE s.items, LAG 0 SEC")
    pipeline.in_south("INSERT INTO s.items VALUES (103, 'fires again', 1)")
    assert pipeline.in_south("SELECT price FROM s.items WHERE id = 103") == [(1001,)]


def test_a_repair_script_is_captured_if_the_user_wants_it_replicated(pipeline: Pipeline) -> None:
    pipeline.run("STOP REPLICAT rep2")
    repair(pipeline, ", REPLICATE")
    pipeline.in_south("INSERT INTO s.items VALUES (102, 'end', 1)")
    until(
        "the last change is captured",
        lambda: "102" in pipeline.run("TRAIL FIND TABLE s.items KEY (102) FROM ./dirdat/e2"),
    )
    counted = pipeline.run("TRAIL COUNT FROM ./dirdat/e2, BY OP")
    assert [word for word in counted.split() if word in ("Insert", "Delete", "FieldComp")], counted
