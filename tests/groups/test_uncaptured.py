"""Adding an Extract to a slot with pending changes reports what it would skip and the statement that captures it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pipelines import EXT1, Pipeline
from processes import until

NORTH = "DBLOGIN USERIDALIAS north"
ADDED = ("ADD EXTRACT ext1, TRANLOG, BEGIN NOW", "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1, MEGABYTES 10")
HELD = re.compile(r"Slot ggs_ext1 holds changes .*: [1-9]\d* bytes of log from LSN (\S+)\. ")


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    """Two rows are replicated, two more are only in the source, and Extract's checkpoint file is lost."""
    pipeline = Pipeline(tmp_path / "home", north, south)
    pipeline.add()
    pipeline.start()
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1), (2, 'two', 2)")
    pipeline.wait_for_rows(2)
    pipeline.run("STOP EXTRACT ext1")
    pipeline.in_north("INSERT INTO a.items VALUES (3, 'three', 3)", "INSERT INTO a.items VALUES (4, 'four', 4)")
    path = pipeline.home.checkpoint(*EXT1)
    path.unlink()
    path.with_name(f"{path.name}.previous").unlink(missing_ok=True)
    yield pipeline
    pipeline.close()


def test_begin_now_with_pending_changes_in_the_slot_suggests_the_statement_that_captures_them(
    pipeline: Pipeline,
) -> None:
    """Regression: ADD EXTRACT, BEGIN NOW after the loss of the checkpoint file silently skipped the changes of the slot."""
    output = pipeline.run(NORTH, *ADDED)
    found = HELD.search(output)
    assert found, output
    statement = f"ALTER EXTRACT EXT1, LSN {found[1]}"
    assert statement in output
    assert "Slot ggs_ext1" not in pipeline.run(NORTH, statement)
    pipeline.start("ext1")
    pipeline.wait_for_rows(4)
    pipeline.assert_same_rows()
    assert "Slot ggs_ext1" not in pipeline.home.report("EXT1").read_text()


def test_a_start_that_skips_changes_of_the_slot_reports_it(pipeline: Pipeline) -> None:
    pipeline.run(NORTH, *ADDED)
    pipeline.start("ext1")
    report = pipeline.home.report("EXT1")
    until("the report has the message", lambda: HELD.search(report.read_text()) is not None)
    assert HELD.search(pipeline.home.event_log.read_text())


def test_a_slot_without_changes_causes_no_warning(tmp_path: Path, north: str, south: str) -> None:
    pipeline = Pipeline(tmp_path / "home", north, south)
    try:
        output = pipeline.run(NORTH, "ADD TRANDATA a.items", "REGISTER EXTRACT ext1")
        pipeline.in_north("CREATE TABLE a.other AS SELECT 1 AS n")
        assert "Slot ggs_ext1" not in output + pipeline.run(NORTH, *ADDED)
    finally:
        pipeline.close()


def test_a_position_past_the_end_of_the_log_is_refused(tmp_path: Path, north: str, south: str) -> None:
    """Regression: a mistyped LSN was accepted, and Extract abended with a message about a restored source."""
    pipeline = Pipeline(tmp_path / "home", north, south)
    past = "LSN 7F/50056B8 is past the end of the source's log, "
    try:
        pipeline.add()
        pipeline.start()
        pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
        pipeline.wait_for_rows(1)
        pipeline.run("STOP EXTRACT ext1")
        ((kept,),) = pipeline.in_north(
            "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = 'ggs_ext1'"
        )
        pipeline.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
        statement = "ALTER EXTRACT ext1, LSN 7F/50056B8"
        output = pipeline.run(NORTH, statement, fails=True)
        assert past in output
        assert past in pipeline.run(NORTH, "ALTER EXTRACT ext1, EXTSEQNO 127, EXTRBA 83908280", fails=True)
        pipeline.run(statement)
        pipeline.start("ext1")
        report = pipeline.abended_report(EXT1)
        assert "GGS-00546" in report
        assert "capture cannot begin at LSN 7F/50056B8: the source's log ends at " in report
        pipeline.run(NORTH, f"ALTER EXTRACT ext1, LSN {kept}")
        pipeline.start("ext1")
        pipeline.wait_for_rows(2)
        pipeline.assert_same_rows()
    finally:
        pipeline.close()
