"""REPERROR responses for whole transactions in Replicats of every kind, with real processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pipelines import REP1, Pipeline
from processes import until, until_state

from ggshell.home.process_file import ProcessState

KINDS = {
    "classic": ("", "", ""),
    "parallel": ("PARALLEL,", "APPLY_PARALLELISM 2", ""),
    "parallel in order": ("PARALLEL,", "APPLY_PARALLELISM 2\nCOMMIT_SERIALIZATION FULL", ""),
    "coordinated": ("COORDINATED MAXTHREADS 3,", "", ", THREAD (2)"),
}
LARGE = "INSERT INTO a.items SELECT n, repeat('x', 1000000), n FROM generate_series({}, {}) n"
"""Rows of 1 MB: five of them exceed what Replicat buffers until the end of the transaction."""


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path / "home", north, south)
    yield pipeline
    pipeline.close()


def prepare(pipeline: Pipeline, kind: str, rule: str, *maps: str) -> None:
    added, parameters, thread = KINDS[kind]
    lines = maps or (f"MAP a.items, TARGET b.items{thread};",)
    pipeline.write(
        "rep1", "\n".join(["REPLICAT rep1", "USERIDALIAS south", parameters, f"REPERROR {rule}", *lines, ""])
    )
    pipeline.add()
    pipeline.run(
        "DBLOGIN USERIDALIAS south",
        "DELETE REPLICAT rep1 !",
        f"ADD REPLICAT rep1, {added} EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks",
    )


def count_in_report(pipeline: Pipeline, text: str) -> int:
    return pipeline.home.report("REP1").read_text().count(text)


def ids(pipeline: Pipeline) -> list[int]:
    return [row[0] for row in pipeline.in_south("SELECT id FROM b.items ORDER BY id")]


@pytest.mark.parametrize("kind", KINDS)
def test_transabort_tries_a_transaction_again(pipeline: Pipeline, kind: str) -> None:
    prepare(pipeline, kind, "(23505, TRANSABORT, DELAYCSECS 5)")
    pipeline.in_south("INSERT INTO b.items VALUES (2, 'in the way', 0)")
    pipeline.start()
    pipeline.in_north(
        "INSERT INTO a.items VALUES (1, 'one', 1)", "INSERT INTO a.items VALUES (2, 'two', 2), (3, 'three', 3)"
    )
    until("the transaction is tried a third time", lambda: count_in_report(pipeline, "GGS-00563") >= 3)
    assert ids(pipeline) == [1, 2]
    pipeline.in_south("DELETE FROM b.items WHERE id = 2")
    pipeline.wait_for_rows(3)
    pipeline.assert_same_rows()
    pipeline.in_north("INSERT INTO a.items VALUES (4, 'four', 4)")
    pipeline.wait_for_rows(4)


@pytest.mark.parametrize("kind", KINDS)
def test_transabort_abends_after_its_retries(pipeline: Pipeline, kind: str) -> None:
    prepare(pipeline, kind, "(23505, TRANSABORT, MAXRETRIES 2, DELAYCSECS 1)")
    pipeline.in_south("INSERT INTO b.items VALUES (2, 'in the way', 0)")
    pipeline.start()
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1), (2, 'two', 2)")
    report = pipeline.abended_report(REP1)
    assert report.count("GGS-00563") == 2
    assert "(attempt 2 of 2)" in report
    assert "b.items (id = 2) failed" in report
    assert ids(pipeline) == [2]


def test_a_stop_does_not_wait_for_the_delay(pipeline: Pipeline) -> None:
    prepare(pipeline, "classic", "(23505, TRANSABORT)")
    pipeline.in_south("INSERT INTO b.items VALUES (2, 'in the way', 0)")
    pipeline.start()
    pipeline.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    until("Replicat waits", lambda: count_in_report(pipeline, "will be retried in 60 seconds (attempt 1)") == 1)
    pipeline.run("STOP REPLICAT rep1")
    until_state(pipeline.home, *REP1, ProcessState.STOPPED)
    pipeline.in_south("DELETE FROM b.items")
    pipeline.start("rep1")
    pipeline.wait_for_rows(1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_large_transaction_is_tried_again(pipeline: Pipeline, kind: str) -> None:
    prepare(pipeline, kind, "(DEFAULT, TRANSABORT, DELAYCSECS 5)")
    pipeline.in_south("INSERT INTO b.items VALUES (7, 'in the way', 0)")
    pipeline.in_north(
        "INSERT INTO a.items VALUES (1, 'one', 1)", LARGE.format(2, 7), "INSERT INTO a.items VALUES (8, 'x', 8)"
    )
    pipeline.start()
    until("the transaction is retried", lambda: count_in_report(pipeline, "GGS-00563") >= 2)
    assert ids(pipeline) == [1, 7]
    pipeline.in_south("DELETE FROM b.items WHERE id = 7")
    pipeline.wait_for_rows(8)
    pipeline.assert_same_rows()


@pytest.mark.parametrize("kind", KINDS)
def test_a_large_transaction_is_discarded_whole(pipeline: Pipeline, kind: str) -> None:
    prepare(pipeline, kind, "(DEFAULT, TRANSDISCARD)")
    pipeline.in_south("INSERT INTO b.items VALUES (7, 'in the way', 0)")
    pipeline.in_north(
        "INSERT INTO a.items VALUES (1, 'one', 1)", LARGE.format(2, 7), "INSERT INTO a.items VALUES (8, 'x', 8)"
    )
    pipeline.start()
    pipeline.wait_for_rows(3)
    discards = "Total discards                                     6.00"
    until("the discards are counted", lambda: discards in pipeline.run("STATS REPLICAT rep1, TOTAL"))
    assert ids(pipeline) == [1, 7, 8]
    assert pipeline.home.discard("rep1").read_text().count("Operation failed") == 6


@pytest.mark.parametrize("size", ["small", "large"])
@pytest.mark.parametrize("kind", KINDS)
def test_transexception_reports_every_operation(pipeline: Pipeline, kind: str, size: str) -> None:
    pipeline.in_north("CREATE TABLE a.plain (id int PRIMARY KEY)")
    pipeline.in_south(
        "CREATE TABLE b.plain (id int PRIMARY KEY)",
        "CREATE TABLE b.refused (id int PRIMARY KEY, code text, operation text)",
        "INSERT INTO b.items VALUES (9, 'in the way', 0)",
    )
    thread = KINDS[kind][2]
    prepare(
        pipeline,
        kind,
        "(23505, TRANSEXCEPTION)",
        f"MAP a.items, TARGET b.items{thread}, MAPEXCEPTION (TARGET b.refused, INSERTALLRECORDS, COLMAP (id = id,",
        "  code = @GETENV ('LASTERR', 'DBERRNUM'), operation = @GETENV ('LASTERR', 'OPTYPE')));",
        f"MAP a.plain, TARGET b.plain{thread};",
    )
    pipeline.run("DBLOGIN USERIDALIAS north", "ADD TRANDATA a.plain")
    many = LARGE.format(2, 8) if size == "large" else "INSERT INTO a.items VALUES (2, 'two', 2), (8, 'x', 8)"
    pipeline.in_north(
        "INSERT INTO a.items VALUES (1, 'one', 1)",
        f"BEGIN; INSERT INTO a.plain VALUES (1); {many}; INSERT INTO a.items VALUES (9, 'nine', 9); COMMIT",
        "INSERT INTO a.items VALUES (10, 'ten', 10)",
    )
    pipeline.start()
    pipeline.wait_for_rows(3)
    expected = range(2, 10) if size == "large" else (2, 8, 9)
    refused = "SELECT id, code, operation FROM b.refused ORDER BY id"
    until("the failed rows are in the exceptions table", lambda: len(pipeline.in_south(refused)) == len(expected))
    assert pipeline.in_south(refused) == [(number, "23505", "INSERT") for number in expected]
    assert ids(pipeline) == [1, 9, 10]
    assert pipeline.in_south("SELECT count(*) FROM b.plain") == [(0,)]
    assert pipeline.home.discard("rep1").read_text().count("Operation failed") == 1, (
        "the table without an exceptions MAP"
    )
