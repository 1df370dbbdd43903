"""Effects of Replicat parameters on the target, with real processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from pipelines import REP1, Pipeline
from processes import until, until_state

from ggshell.home import checkpoint as checkpoints
from ggshell.home.process_file import ProcessState, read_process_file
from ggshell.types import TrailPosition


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path / "home", north, south)
    yield pipeline
    pipeline.close()


def replicat(pipeline: Pipeline, *lines: str) -> None:
    pipeline.write("rep1", "\n".join(["REPLICAT rep1", "USERIDALIAS south", *lines, "MAP a.*, TARGET b.*;", ""]))


def test_with_reperror_replicat_continues_and_the_discard_file_has_the_row(pipeline: Pipeline) -> None:
    replicat(pipeline, "REPERROR (DEFAULT, DISCARD)", "DISCARDFILE ./dirrpt/rep1.dsc, APPEND")
    pipeline.in_south("INSERT INTO b.items VALUES (2, 'in the way', 0)")
    pipeline.add()
    pipeline.start()
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1), (2, 'two', 2), (3, 'three', 3)")
    pipeline.wait_for_rows(3)
    assert pipeline.in_south("SELECT name FROM b.items ORDER BY id") == [("one",), ("in the way",), ("three",)]
    assert "name = two" in (pipeline.home.root / "dirrpt" / "rep1.dsc").read_text()
    assert "Total discards                                     1.00" in pipeline.run("STATS REPLICAT rep1, TOTAL")


def test_batchsql_limits_and_transdiscard_work_in_a_parameter_file(pipeline: Pipeline) -> None:
    replicat(pipeline, "BATCHSQL OPSPERBATCH 25, OPSPERQUEUE 40", "REPERROR (DEFAULT, TRANSDISCARD)")
    pipeline.in_south("INSERT INTO b.items VALUES (150, 'in the way', 0)")
    pipeline.add()
    pipeline.in_north(
        "INSERT INTO a.items SELECT n, 'one', n FROM generate_series(1, 100) n",
        "INSERT INTO a.items SELECT n, 'two', n FROM generate_series(101, 200) n",
        "INSERT INTO a.items SELECT n, 'three', n FROM generate_series(201, 300) n",
    )
    pipeline.start()
    pipeline.wait_for_rows(201)
    assert pipeline.in_south("SELECT name, count(*) FROM b.items GROUP BY 1 ORDER BY 1") == [
        ("in the way", 1),
        ("one", 100),
        ("three", 100),
    ]
    assert "Total discards                                   100.00" in pipeline.run("STATS REPLICAT rep1, TOTAL")


def test_collisions_are_handled_until_nohandlecollisions(pipeline: Pipeline) -> None:
    replicat(pipeline, "HANDLECOLLISIONS")
    pipeline.in_south("INSERT INTO b.items VALUES (1, 'copied', 0), (2, 'copied', 0)")
    pipeline.add()
    pipeline.start()
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1)", "INSERT INTO a.items VALUES (3, 'three', 3)")
    pipeline.wait_for_rows(3)
    assert pipeline.in_south("SELECT name FROM b.items WHERE id = 1") == [("one",)]
    pipeline.run("SEND REPLICAT rep1, NOHANDLECOLLISIONS", "SEND REPLICAT rep1, HANDLECOLLISIONS b.other")
    pipeline.run("SEND REPLICAT rep1, REPORT HANDLECOLLISIONS")
    assert "HANDLECOLLISIONS is off, on for b.other." in pipeline.home.report("REP1").read_text()
    output = pipeline.run("SEND REPLICAT rep1, GETPARAMINFO")
    assert "useridalias             : south" in output
    assert "map                     : a.*, TARGET b.*" in output
    assert "handlecollisions        : <enabled>" in pipeline.run("SEND rep1, GETPARAMINFO HANDLECOLLISIONS")
    assert pipeline.run("SEND REPLICAT rep1, LOGEND").splitlines()[-1] in ("YES", "NO")
    pipeline.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    assert "duplicate key" in pipeline.abended_report(REP1)


def test_info_shows_the_position_of_the_database_after_an_abend(pipeline: Pipeline) -> None:
    pipeline.in_south("INSERT INTO b.items VALUES (4, 'in the way', 0)")
    pipeline.add()
    pipeline.start("ext1")
    pipeline.insert(1, 2, 3, 4)
    pipeline.csns(4)
    pipeline.start("rep1")
    pipeline.abended_report(REP1)
    ((seqno, rba, csn),) = pipeline.in_south("SELECT seqno, rba, log_csn FROM b.checks")
    assert pipeline.ids() == [1, 2, 3, 4]
    kept = checkpoints.load(pipeline.home.checkpoint(*REP1))
    assert (kept.read.current, kept.latest_csn) == (TrailPosition(seqno, rba), csn)
    assert f"RBA {rba}" in pipeline.run("INFO REPLICAT rep1")


def test_without_a_checkpoint_table_replicat_resumes_from_its_file(pipeline: Pipeline) -> None:
    pipeline.add()
    pipeline.run("DELETE REPLICAT rep1 !", "ADD REPLICAT rep1, EXTTRAIL ./dirdat/ea, NODBCHECKPOINT")
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    pipeline.start()
    pipeline.wait_for_rows(1)
    assert "HANDLECOLLISIONS" in pipeline.home.report("REP1").read_text()
    pipeline.run("STOP REPLICAT rep1", "START REPLICAT rep1")
    pipeline.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    pipeline.wait_for_rows(2)
    pipeline.assert_same_rows()


def test_a_replicat_killed_between_commit_and_file_applies_nothing_twice(pipeline: Pipeline) -> None:
    """The checkpoint table has priority over the checkpoint file."""
    pipeline.add()
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    pipeline.start()
    pipeline.wait_for_rows(1)
    file = pipeline.home.checkpoint(*REP1)
    before = file.read_bytes()
    pipeline.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    pipeline.wait_for_rows(2)
    entry = read_process_file(pipeline.home.process(*REP1))
    assert entry is not None
    os.kill(entry.pid, signal.SIGKILL)
    until_state(pipeline.home, *REP1, ProcessState.ABENDED)
    file.write_bytes(before)
    pipeline.start("rep1")
    pipeline.in_north("INSERT INTO a.items VALUES (3, 'three', 3)")
    pipeline.wait_for_rows(3)
    pipeline.assert_same_rows()


def test_a_target_restored_from_a_backup_catches_up_from_its_checkpoint_row(pipeline: Pipeline) -> None:
    pipeline.add()
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    pipeline.start()
    pipeline.wait_for_rows(1)
    pipeline.run("STOP REPLICAT rep1")
    pipeline.in_south(
        "CREATE TABLE b.backup AS SELECT * FROM b.items", "CREATE TABLE b.checks_backup AS SELECT * FROM b.checks"
    )
    pipeline.start("rep1")
    pipeline.in_north("INSERT INTO a.items VALUES (2, 'two', 2)", "UPDATE a.items SET price = 9")
    pipeline.wait_for_rows(2)
    pipeline.run("STOP REPLICAT rep1")
    until_state(pipeline.home, *REP1, ProcessState.STOPPED)
    pipeline.in_south(
        "TRUNCATE b.items, b.checks",
        "INSERT INTO b.items SELECT * FROM b.backup",
        "INSERT INTO b.checks SELECT * FROM b.checks_backup",
    )
    pipeline.start("rep1")
    pipeline.wait_for_rows(2)
    until("the update is applied again", lambda: pipeline.in_south("SELECT DISTINCT price FROM b.items") == [(9,)])
    pipeline.assert_same_rows()
    assert "OGG-30200" in pipeline.home.report("REP1").read_text()


def test_reperror_within_a_map_applies_to_its_rows_only(pipeline: Pipeline) -> None:
    pipeline.in_north("CREATE TABLE a.others (id int PRIMARY KEY)")
    pipeline.in_south(
        "CREATE TABLE b.others (id int PRIMARY KEY)",
        "INSERT INTO b.others VALUES (1)",
        "INSERT INTO b.items VALUES (2, 'in the way', 0)",
    )
    lines = (
        "REPERROR (DEFAULT, ABEND)",
        "MAP a.items, TARGET b.items, REPERROR (23505, IGNORE);",
        "MAP a.*, TARGET b.*;",
    )
    pipeline.write("rep1", "\n".join(["REPLICAT rep1", "USERIDALIAS south", *lines, ""]))
    pipeline.add()
    pipeline.run("DBLOGIN USERIDALIAS north", "ADD TRANDATA a.others")
    pipeline.start()
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1), (2, 'two', 2)")
    pipeline.wait_for_rows(2)
    assert "Total ignores                                      1.00" in pipeline.run("STATS REPLICAT rep1, TOTAL")
    pipeline.in_north("INSERT INTO a.others VALUES (1)")
    assert "b.others (id = 1) failed" in pipeline.abended_report(REP1)
