"""Heartbeats over real processes: one way, both ways, through paths; never in a loop, never as user rows."""

from __future__ import annotations

import pytest
from pipeline.heartbeat.chains import Chain
from processes import until

WAY = "remote_database, incoming_extract, incoming_routing_path, incoming_replicat, outgoing_extract, outgoing_replicat"


@pytest.fixture
def one_direction(chain: Chain) -> Chain:
    chain.extract("ext1", "north", "ea")
    chain.path("dp1", "ea", "pa")
    chain.replicat("rep1", "south", "pa")
    chain.start("ext1", "dp1", "rep1")
    return chain


def test_one_way_fills_the_target_and_leaves_the_source_empty(one_direction: Chain) -> None:
    one_direction.beat("north")
    north, south = one_direction.name("north"), one_direction.name("south")
    one_direction.has("south", [(north, "EXT1", "DP1", "REP1", None, None)], WAY)
    assert one_direction.rows("south", "local_database, 1, 1") == [(south, 1, 1)]
    one_direction.beat("north")
    until("two arrive", lambda: len(one_direction.rows("south", "*", "gg_heartbeat_history")) == 2)
    assert one_direction.rows("north", "*") == []
    found = one_direction.rows("south", "*", "gg_lag_history")
    parts = one_direction.rows(
        "south",
        "incoming_lag - incoming_extract_lag - incoming_routine_lag - incoming_replicat_read_lag - incoming_replicat_lag, 1, 1",
        "gg_lag_history",
    )
    assert [row[0] for row in parts] == [0, 0]
    assert len(found) == 2
    assert one_direction.rows("south", "incoming_path, 1, 1", "gg_lag") == [("==> EXT1 ==> DP1 ==> REP1 ==>", 1, 1)]
    assert all(
        row == (True, True, True)
        for row in one_direction.rows(
            "south",
            "incoming_extract_heartbeat_csn IS NOT NULL, incoming_extract_restart_csn IS NOT NULL,"
            " incoming_extract_restart_ts <= incoming_extract_ts",
        )
    )


def test_heartbeats_are_no_user_rows_in_stats(one_direction: Chain) -> None:
    one_direction.sql("north", "INSERT INTO shop.items VALUES (1)")
    one_direction.beat("north")
    until("it arrives", lambda: len(one_direction.rows("south", "*", "gg_heartbeat_history")) == 1)
    for group in ("EXTRACT ext1", "DISTPATH dp1", "REPLICAT rep1"):
        told = one_direction.run(f"STATS {group}, TOTAL")
        assert "gg_heartbeat" not in told
        assert "Total inserts" in told


def test_both_ways_know_each_other_and_nothing_loops(one_direction: Chain) -> None:
    chain = one_direction
    chain.extract("ext2", "south", "eb")
    chain.path("dp2", "eb", "pb")
    chain.replicat("rep2", "north", "pb")
    chain.start("ext2", "dp2", "rep2")
    north, south = chain.name("north"), chain.name("south")
    chain.beat("north")
    chain.has("south", [(north, "EXT1", "DP1", "REP1", None, None)], WAY)
    chain.beat("south")
    chain.has("north", [(south, "EXT2", "DP2", "REP2", "EXT1", "REP1")], WAY)
    chain.beat("north")
    chain.has("south", [(north, "EXT1", "DP1", "REP1", "EXT2", "REP2")], WAY)
    before = len(chain.rows("south", "*", "gg_heartbeat_history"))
    chain.beat("north")
    until("it arrives", lambda: len(chain.rows("south", "*", "gg_heartbeat_history")) > before)
    counts = [len(chain.rows(alias, "*", "gg_heartbeat_history")) for alias in ("north", "south")]
    chain.sql("south", "INSERT INTO shop.items VALUES (7)")
    until("a row that came later arrives", lambda: len(chain.sql("north", "SELECT * FROM shop.items")) == 1)
    assert [len(chain.rows(alias, "*", "gg_heartbeat_history")) for alias in ("north", "south")] == counts
    assert counts[1] == before + 1
    lag = chain.rows("south", "outgoing_path, outgoing_lag > 0, outgoing_heartbeat_age > 0", "gg_lag")
    assert lag == [("==> EXT2 ==> DP2 ==> REP2 ==>", True, True)]
    outgoing = "outgoing_heartbeat_ts, outgoing_extract_ts, outgoing_routing_ts, outgoing_replicat_ts"
    known = chain.rows("north", outgoing.replace("outgoing", "incoming"))[0]
    told = chain.rows("south", outgoing)[0]
    assert told == known


def test_a_trail_that_passes_two_paths_names_both(chain: Chain) -> None:
    chain.extract("ext1", "north", "ea")
    chain.path("dp1", "ea", "pa")
    chain.path("dp2", "pa", "pb")
    chain.replicat("rep1", "south", "pb")
    chain.start("ext1", "dp1", "dp2", "rep1")
    chain.beat("north")
    chain.has("south", [(chain.name("north"), "EXT1", "DP1,DP2", "REP1", None, None)], WAY)


def test_each_process_that_is_killed_lets_the_age_grow_and_brings_the_row_back(one_direction: Chain) -> None:
    one_direction.beat("north")
    until("it arrives", lambda: len(one_direction.rows("south", "*", "gg_heartbeat_history")) == 1)
    for number, group in enumerate(("ext1", "dp1", "rep1"), 2):
        kind = "DISTPATH" if group == "dp1" else ("REPLICAT" if group == "rep1" else "EXTRACT")
        one_direction.run(f"KILL {kind} {group}")
        one_direction.beat("north")
        age = "incoming_heartbeat_age, 1, 1"
        first = one_direction.rows("south", age, "gg_lag")[0][0]
        assert one_direction.rows("south", age, "gg_lag")[0][0] > first
        one_direction.start(group)
        until(
            "it arrives", lambda number=number: len(one_direction.rows("south", "*", "gg_heartbeat_history")) == number
        )  # type: ignore[misc]
    assert len(one_direction.rows("south", "*")) == 1


def test_a_target_without_the_tables_drops_heartbeats_and_says_so_once(one_direction: Chain) -> None:
    one_direction.run("STOP REPLICAT rep1", "DBLOGIN USERIDALIAS south", "DELETE HEARTBEATTABLE")
    one_direction.beat("north", "north")
    one_direction.sql("north", "INSERT INTO shop.items VALUES (1)")
    one_direction.start("rep1")
    until("the row arrives", lambda: len(one_direction.sql("south", "SELECT * FROM shop.items")) == 1)
    assert one_direction.home.report("REP1").read_text().count("OGG-02735") == 1


def test_info_says_what_there_is_and_warns_of_jobs_that_nobody_runs(chain: Chain) -> None:
    chain.run("DBLOGIN USERIDALIAS north", "ALTER HEARTBEATTABLE, FREQUENCY 0.5, RETENTION_TIME 7")
    chain.sql("north", "UPDATE ggadmin.gg_heartbeat_jobs SET next_run = next_run - interval '1 hour'")
    told = chain.run("DBLOGIN USERIDALIAS north", "INFO HEARTBEATTABLE")
    assert "HEARTBEAT table ggadmin.gg_heartbeat exists." in told
    assert "Frequency interval: 0.5 seconds." in told
    assert "Retention time: 7 days." in told
    assert "GGS-00654" in told
    assert "GG_UPDATE_HEARTBEATS is " in told
    assert "seconds overdue" in told


def test_lag_is_shown_by_hop_by_period_against_an_objective_and_from_the_archive(one_direction: Chain) -> None:
    one_direction.run("STOP REPLICAT rep1")
    with one_direction.home.parameters("rep1").open("a") as file:
        file.write("LAGARCHIVE\n")
    one_direction.start("rep1")
    for count in (1, 2, 3):
        one_direction.beat("north")
        until("it arrives", lambda count=count: len(one_direction.rows("south", "*", "gg_heartbeat_history")) == count)  # type: ignore[misc]
    login = "DBLOGIN USERIDALIAS south"
    now = one_direction.run(login, "LAG HEARTBEAT")
    assert "==> EXT1 ==> DP1 ==> REP1 ==>" in now
    assert "Extract 0.0" in now
    by_minute = one_direction.run(
        login, f"LAG HEARTBEAT {one_direction.name('north')}, HISTORY SINCE 2020-01-01 BY DAY"
    )
    assert by_minute.count("==> EXT1 ==> DP1 ==> REP1 ==>") == 5
    told = one_direction.run(login, "LAG HEARTBEAT SLO 99 % WITHIN 20 S")
    assert "Within 20 s: 100.000% of 3 heartbeats; goal 99.000%: held" in told
    assert "No heartbeat" in one_direction.run("LAG HEARTBEAT ARCHIVE")
    one_direction.run("STOP REPLICAT rep1")
    kept = one_direction.run("LAG HEARTBEAT, SLO 99 WITHIN 20 ARCHIVE")
    assert "of 3 heartbeats" in kept
    assert one_direction.run("LAG HEARTBEAT HISTORY BY DAY ARCHIVE").count("==> EXT1") == 5


def test_manager_beats_as_often_as_it_is_told_and_no_more_when_paused(one_direction: Chain) -> None:
    def runs() -> int:
        return int(one_direction.sql("north", "SELECT max(runs) FROM ggadmin.gg_heartbeat_jobs")[0][0])

    one_direction.run("DBLOGIN USERIDALIAS north", "ALTER HEARTBEATTABLE, FREQUENCY 0.2")
    until("five beats arrive", lambda: len(one_direction.rows("south", "*", "gg_heartbeat_history")) >= 5)
    assert runs() >= 5
    one_direction.run("DBLOGIN USERIDALIAS north", "ALTER HEARTBEATTABLE, FREQUENCY 0")
    still = runs()
    one_direction.sql("north", "SELECT pg_sleep(0.5)")
    assert runs() == still
    assert "(paused)" in one_direction.run("DBLOGIN USERIDALIAS north", "INFO HEARTBEATTABLE")


def test_a_group_that_takes_no_part_drops_heartbeats_and_nothing_else(chain: Chain) -> None:
    chain.extract("ext1", "north", "ea")
    chain.path("dp1", "ea", "pa")
    chain.replicat("rep1", "south", "pa", "DISABLE_HEARTBEAT_TABLE\nLAGSTATS THRESHOLDSECONDS 60\n")
    chain.start("ext1", "dp1", "rep1")
    chain.beat("north")
    chain.sql("north", "INSERT INTO shop.items VALUES (1)")
    until("the row arrives", lambda: len(chain.sql("south", "SELECT * FROM shop.items")) == 1)
    assert chain.rows("south", "*", "gg_heartbeat_history") == []
    told = chain.run("STATS REPLICAT rep1, TOTAL")
    assert "Heartbeats" not in told
    assert "Delivered within 60000 ms: 100.00%" in told


def test_a_clock_that_is_ahead_is_warned_of_in_the_log_in_lag_and_in_info(one_direction: Chain) -> None:
    one_direction.sql(
        "north", "UPDATE ggadmin.gg_heartbeat_seed SET heartbeat_timestamp = now() + interval '2 minutes'"
    )
    until("it arrives", lambda: len(one_direction.rows("south", "*", "gg_heartbeat_history")) == 1)
    until("the warning", lambda: "GGS-00652" in one_direction.home.event_log.read_text())
    login = "DBLOGIN USERIDALIAS south"
    for statement in ("LAG HEARTBEAT", "INFO HEARTBEATTABLE"):
        assert "Negative lag" in one_direction.run(login, statement)
    assert one_direction.rows("south", "incoming_lag < -100, 1, 1", "gg_lag") == [(True, 1, 1)]


def test_a_target_only_database_receives_and_its_ways_can_be_forgotten(chain: Chain) -> None:
    chain.run("DBLOGIN USERIDALIAS south", "DELETE HEARTBEATTABLE !", "ADD HEARTBEATTABLE, TARGETONLY, PARTITIONED")
    chain.extract("ext1", "north", "ea")
    chain.replicat("rep1", "south", "ea")
    chain.start("ext1", "rep1")
    chain.beat("north")
    chain.has("south", [(chain.name("north"), "EXT1", None, "REP1", None, None)], WAY)
    assert "TARGETONLY" in chain.run("DBLOGIN USERIDALIAS south", "INFO HEARTBEATTABLE")
    assert "1 heartbeat entries" in chain.run("DBLOGIN USERIDALIAS south", "DELETE HEARTBEATENTRY ext* !")
    assert chain.rows("south", "*") == []
    for wrong in ("FREQUENCY 8000", "FREQUENCY 0.05", "RETENTION_TIME 0", "PURGE_FREQUENCY 200", "FREQUENCY soon"):
        assert "ERROR" in chain.run("DBLOGIN USERIDALIAS south", f"ALTER HEARTBEATTABLE, {wrong}", fails=True)
