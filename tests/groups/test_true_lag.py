"""Lag is what has not been delivered: nothing while nothing comes, growing while a stage stands still."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import until
from ways import Way


@pytest.fixture
def way(tmp_path: Path, north: str, south: str) -> Iterator[Way]:
    way = Way(tmp_path / "home", north, south)
    way.in_north("CREATE TABLE a.others (id int PRIMARY KEY)")
    way.write("ext1", "EXTRACT ext1\nUSERIDALIAS north\nEXTTRAIL ./dirdat/ea\nTABLE a.items;\n")
    way.add()
    way.run("DBLOGIN USERIDALIAS north", "ADD TRANDATA a.others")
    way.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    way.start()
    way.arrives(1)
    yield way
    way.close()


def lags(way: Way) -> dict[str, int]:
    """The lag in seconds of every group, as INFO ALL has it."""
    answer = json.loads(way.run_as("json", "INFO ALL"))
    return {row[2]: row[3] for row in answer["rows"] if row[2]}


def test_an_idle_source_has_no_lag(way: Way) -> None:
    until("both look idle", lambda: lags(way) == {"EXT1": 0, "REP1": 0})
    assert "At EOF, no more records to process." in way.run("LAG EXTRACT ext1")


def test_a_source_of_which_nothing_is_wanted_has_no_lag_and_its_log_is_let_go(way: Way) -> None:
    confirmed = "SELECT confirmed_flush_lsn - '0/0' FROM pg_replication_slots WHERE slot_name = 'ggs_ext1'"
    way.in_north("INSERT INTO a.others SELECT n FROM generate_series(1, 5000) n")
    end = way.in_north("SELECT pg_current_wal_lsn() - '0/0'")[0][0]
    until("the slot moves on", lambda: way.in_north(confirmed)[0][0] >= end)
    until("Extract is at the end", lambda: lags(way)["EXT1"] == 0)


def test_a_stopped_stage_falls_behind_by_what_waits_for_it_and_catches_up(way: Way) -> None:
    way.run("STOP REPLICAT rep1")
    way.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    until("the lag of REP1 shows", lambda: lags(way)["REP1"] >= 1)
    assert lags(way)["EXT1"] == 0
    way.start("rep1")
    way.arrives(2)
    until("REP1 has caught up", lambda: lags(way)["REP1"] == 0)


def test_the_lag_of_a_replicat_that_is_added_again_is_unknown_until_it_runs(way: Way) -> None:
    """Its row of the checkpoint table says where it goes on: INFO ALL showed the age of the whole trail."""
    way.run("STOP REPLICAT rep1", "DELETE REPLICAT rep1 !")
    added = "ADD REPLICAT rep1, EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks"
    said = way.run("DBLOGIN USERIDALIAS south", added, "INFO ALL")
    assert "the lag of REPLICAT REP1 is unknown: it was added again" in said
    assert lags(way)["REP1"] is None
    way.start("rep1")
    until("REP1 has caught up", lambda: lags(way)["REP1"] == 0)
    way.same()
