"""DDL from PostgreSQL to PostgreSQL with real processes, by each kind of Replicat, and after kills."""

from __future__ import annotations

import os
import signal

import pytest
from groups.ddl_replication import KINDS, replicating, rows, wait_until_done
from pipelines import REP1, Pipeline
from processes import until

from ggshell.home.process_file import read_process_file

__all__ = ["replicating"]


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


@pytest.mark.parametrize("replicating", ["parallel", "coordinated"], indirect=True)
def test_a_large_transaction_is_started_again_at_its_first_statement(replicating: Pipeline) -> None:
    replicating.in_north(
        "BEGIN; INSERT INTO a.items SELECT n, repeat('x', 1000), n FROM generate_series(1, 9000) n;"
        "CREATE TABLE a.late (id int PRIMARY KEY); INSERT INTO a.late SELECT generate_series(1, 9000);"
        "ALTER TABLE a.late ADD v text; UPDATE a.late SET v = 'changed' WHERE id < 30; COMMIT",
    )
    replicating.insert(100_000)
    wait_until_done(replicating, 0)
    source, target = rows(replicating, "late")
    assert source == target
    replicating.assert_same_rows()
    assert replicating.home.report("rep1").read_text().count("because it contains DDL") == 1


def test_clauses_of_a_map_are_compiled_again_after_a_change(replicating: Pipeline) -> None:
    replicating.run("STOP REPLICAT rep1")
    replicating.write(
        "rep1",
        "REPLICAT rep1\nUSERIDALIAS south\n"
        "MAP a.items, TARGET b.items, COLMAP (USEDEFAULTS, name = @STRUP (name));\nMAP a.*, TARGET b.*;\n",
    )
    replicating.run("START REPLICAT rep1")
    replicating.in_north(
        "BEGIN; INSERT INTO a.items VALUES (1, 'one', 1); ALTER TABLE a.items ADD COLUMN more text;"
        "INSERT INTO a.items VALUES (2, 'two', 2, 'more'); ALTER TABLE a.items RENAME COLUMN more TO most;"
        "INSERT INTO a.items VALUES (3, 'three', 3, 'most'); COMMIT",
        "ALTER TABLE a.items DROP COLUMN price",
        "INSERT INTO a.items VALUES (4, 'four', 'last')",
    )
    wait_until_done(replicating, 0)
    assert replicating.in_south("SELECT id, name, most FROM b.items WHERE id < 9 ORDER BY id") == [
        (1, "ONE", None),
        (2, "TWO", "more"),
        (3, "THREE", "most"),
        (4, "FOUR", "last"),
    ]


def test_statistics_and_a_refused_statement(replicating: Pipeline) -> None:
    replicating.in_south("CREATE TABLE b.there (id int)")
    work(replicating, 1)
    wait_until_done(replicating, 0)
    counts = replicating.run("STATS REPLICAT rep1, TOTAL, TABLE a.t1")
    replicating.in_north("CREATE TABLE a.there (id int)")
    report = replicating.abended_report(REP1)
    assert "DDL" in counts, counts
    assert "OGG-00519" in report
    assert "the target refuses CREATE TABLE of a.there" in report
    replicating.in_south("DROP TABLE b.there")
    replicating.run("START REPLICAT rep1")
    replicating.in_north("INSERT INTO a.there VALUES (1)")
    wait_until_done(replicating, 1)
    assert replicating.in_south("SELECT * FROM b.there") == [(1,)]


def test_indexes_are_made_concurrently(replicating: Pipeline) -> None:
    replicating.in_north(
        "CREATE INDEX CONCURRENTLY items_name ON a.items (name)",
        "INSERT INTO a.items VALUES (1, 'one', 1)",
        "DROP INDEX CONCURRENTLY a.items_name",
        "CREATE UNIQUE INDEX CONCURRENTLY ON a.items (price)",
    )
    wait_until_done(replicating, 0)
    found = replicating.in_south(
        "SELECT indexrelid::regclass::text, indisvalid FROM pg_index WHERE indrelid = 'b.items'::regclass"
    )
    assert sorted(found) == [("b.items_pkey", True), ("b.items_price_idx", True)]
