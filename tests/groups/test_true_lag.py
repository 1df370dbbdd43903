"""Lag measures undelivered changes: zero while the source is idle, growing while a stage is stopped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pipelines import Pipeline
from processes import until


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path / "home", north, south)
    pipeline.in_north("CREATE TABLE a.others (id int PRIMARY KEY)")
    pipeline.write("ext1", "EXTRACT ext1\nUSERIDALIAS north\nEXTTRAIL ./dirdat/ea\nTABLE a.items;\n")
    pipeline.add()
    pipeline.run("DBLOGIN USERIDALIAS north", "ADD TRANDATA a.others")
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    pipeline.start()
    pipeline.wait_for_rows(1)
    yield pipeline
    pipeline.close()


def lags(pipeline: Pipeline) -> dict[str, int]:
    """The lag of every group in seconds, from INFO ALL."""
    answer = json.loads(pipeline.run_as("json", "INFO ALL"))
    return {row[2]: row[3] for row in answer["rows"] if row[2]}


def test_an_idle_source_has_no_lag(pipeline: Pipeline) -> None:
    until("both groups are idle", lambda: lags(pipeline) == {"EXT1": 0, "REP1": 0})
    assert "At EOF, no more records to process." in pipeline.run("LAG EXTRACT ext1")


def test_changes_of_other_tables_cause_no_lag_and_their_log_is_released(pipeline: Pipeline) -> None:
    confirmed = "SELECT confirmed_flush_lsn - '0/0' FROM pg_replication_slots WHERE slot_name = 'ggs_ext1'"
    pipeline.in_north("INSERT INTO a.others SELECT n FROM generate_series(1, 5000) n")
    end = pipeline.in_north("SELECT pg_current_wal_lsn() - '0/0'")[0][0]
    until("the slot advances", lambda: pipeline.in_north(confirmed)[0][0] >= end)
    until("Extract is at the end", lambda: lags(pipeline)["EXT1"] == 0)


def test_a_stopped_stage_has_the_lag_of_pending_changes_and_catches_up(pipeline: Pipeline) -> None:
    pipeline.run("STOP REPLICAT rep1")
    pipeline.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    until("REP1 has lag", lambda: lags(pipeline)["REP1"] >= 1)
    until("EXT1 has no lag", lambda: lags(pipeline)["EXT1"] == 0)
    pipeline.start("rep1")
    pipeline.wait_for_rows(2)
    until("REP1 has caught up", lambda: lags(pipeline)["REP1"] == 0)


def test_the_lag_of_a_replicat_that_is_added_again_is_unknown_until_it_runs(pipeline: Pipeline) -> None:
    """It resumes from its checkpoint row. Regression: INFO ALL showed the age of the whole trail."""
    pipeline.run("STOP REPLICAT rep1", "DELETE REPLICAT rep1 !")
    added = "ADD REPLICAT rep1, EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks"
    output = pipeline.run("DBLOGIN USERIDALIAS south", added, "INFO ALL")
    assert "the lag of REPLICAT REP1 is unknown: it was added again" in output
    assert lags(pipeline)["REP1"] is None
    pipeline.start("rep1")
    until("REP1 has caught up", lambda: lags(pipeline)["REP1"] == 0)
    pipeline.assert_same_rows()
