"""Heartbeats with real processes: in one direction, in both, and through paths; never in a loop, never as user rows."""

from __future__ import annotations

import pytest
from pipeline.heartbeat.deployment import Deployment
from processes import until

WAY = "remote_database, incoming_extract, incoming_routing_path, incoming_replicat, outgoing_extract, outgoing_replicat"


@pytest.fixture
def one_direction(deployment: Deployment) -> Deployment:
    deployment.extract("ext1", "north", "ea")
    deployment.path("dp1", "ea", "pa")
    deployment.replicat("rep1", "south", "pa")
    deployment.start("ext1", "dp1", "rep1")
    return deployment


def test_one_direction_fills_the_target_and_leaves_the_source_empty(one_direction: Deployment) -> None:
    one_direction.send_heartbeat("north")
    north, south = one_direction.database_name("north"), one_direction.database_name("south")
    one_direction.wait_for("south", [(north, "EXT1", "DP1", "REP1", None, None)], WAY)
    assert one_direction.rows("south", "local_database, 1, 1") == [(south, 1, 1)]
    one_direction.send_heartbeat("north")
    until("two heartbeats arrive", lambda: len(one_direction.rows("south", "*", "gg_heartbeat_history")) == 2)
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


def test_heartbeats_are_not_counted_as_user_rows_in_stats(one_direction: Deployment) -> None:
    one_direction.sql("north", "INSERT INTO shop.items VALUES (1)")
    one_direction.send_heartbeat("north")
    until("the heartbeat arrives", lambda: len(one_direction.rows("south", "*", "gg_heartbeat_history")) == 1)
    for group in ("EXTRACT ext1", "DISTPATH dp1", "REPLICAT rep1"):
        output = one_direction.run(f"STATS {group}, TOTAL")
        assert "gg_heartbeat" not in output
        assert "Total inserts" in output


def test_both_directions_are_recorded_and_nothing_loops(one_direction: Deployment) -> None:
    deployment = one_direction
    deployment.extract("ext2", "south", "eb")
    deployment.path("dp2", "eb", "pb")
    deployment.replicat("rep2", "north", "pb")
    deployment.start("ext2", "dp2", "rep2")
    north, south = deployment.database_name("north"), deployment.database_name("south")
    deployment.send_heartbeat("north")
    deployment.wait_for("south", [(north, "EXT1", "DP1", "REP1", None, None)], WAY)
    deployment.send_heartbeat("south")
    deployment.wait_for("north", [(south, "EXT2", "DP2", "REP2", "EXT1", "REP1")], WAY)
    deployment.send_heartbeat("north")
    deployment.wait_for("south", [(north, "EXT1", "DP1", "REP1", "EXT2", "REP2")], WAY)
    before = len(deployment.rows("south", "*", "gg_heartbeat_history"))
    deployment.send_heartbeat("north")
    until("the heartbeat arrives", lambda: len(deployment.rows("south", "*", "gg_heartbeat_history")) > before)
    counts = [len(deployment.rows(alias, "*", "gg_heartbeat_history")) for alias in ("north", "south")]
    deployment.sql("south", "INSERT INTO shop.items VALUES (7)")
    until("a row that came later arrives", lambda: len(deployment.sql("north", "SELECT * FROM shop.items")) == 1)
    assert [len(deployment.rows(alias, "*", "gg_heartbeat_history")) for alias in ("north", "south")] == counts
    assert counts[1] == before + 1
    lag = deployment.rows("south", "outgoing_path, outgoing_lag > 0, outgoing_heartbeat_age > 0", "gg_lag")
    assert lag == [("==> EXT2 ==> DP2 ==> REP2 ==>", True, True)]
    outgoing = "outgoing_heartbeat_ts, outgoing_extract_ts, outgoing_routing_ts, outgoing_replicat_ts"
    known = deployment.rows("north", outgoing.replace("outgoing", "incoming"))[0]
    output = deployment.rows("south", outgoing)[0]
    assert output == known


def test_a_trail_that_passes_two_paths_names_both(deployment: Deployment) -> None:
    deployment.extract("ext1", "north", "ea")
    deployment.path("dp1", "ea", "pa")
    deployment.path("dp2", "pa", "pb")
    deployment.replicat("rep1", "south", "pb")
    deployment.start("ext1", "dp1", "dp2", "rep1")
    deployment.send_heartbeat("north")
    deployment.wait_for("south", [(deployment.database_name("north"), "EXT1", "DP1,DP2", "REP1", None, None)], WAY)


def test_the_age_grows_after_a_kill_and_a_restart_delivers_the_waiting_heartbeat(one_direction: Deployment) -> None:
    one_direction.send_heartbeat("north")
    until("the heartbeat arrives", lambda: len(one_direction.rows("south", "*", "gg_heartbeat_history")) == 1)
    for number, group in enumerate(("ext1", "dp1", "rep1"), 2):
        kind = "DISTPATH" if group == "dp1" else ("REPLICAT" if group == "rep1" else "EXTRACT")
        one_direction.run(f"KILL {kind} {group}")
        one_direction.send_heartbeat("north")
        age = "incoming_heartbeat_age, 1, 1"
        first = one_direction.rows("south", age, "gg_lag")[0][0]
        assert one_direction.rows("south", age, "gg_lag")[0][0] > first
        one_direction.start(group)
        until(
            "the heartbeat arrives",
            lambda number=number: len(one_direction.rows("south", "*", "gg_heartbeat_history")) == number,
        )  # type: ignore[misc]
    assert len(one_direction.rows("south", "*")) == 1


def test_a_target_without_the_tables_drops_heartbeats_and_reports_it_once(one_direction: Deployment) -> None:
    one_direction.run("STOP REPLICAT rep1", "DBLOGIN USERIDALIAS south", "DELETE HEARTBEATTABLE")
    one_direction.send_heartbeat("north", "north")
    one_direction.sql("north", "INSERT INTO shop.items VALUES (1)")
    one_direction.start("rep1")
    until("the row arrives", lambda: len(one_direction.sql("south", "SELECT * FROM shop.items")) == 1)
    assert one_direction.home.report("REP1").read_text().count("OGG-02735") == 1


def test_info_shows_the_objects_and_warns_of_jobs_that_are_not_run(deployment: Deployment) -> None:
    deployment.run("DBLOGIN USERIDALIAS north", "ALTER HEARTBEATTABLE, FREQUENCY 0.5, RETENTION_TIME 7")
    deployment.sql("north", "UPDATE ggadmin.gg_heartbeat_jobs SET next_run = next_run - interval '1 hour'")
    output = deployment.run("DBLOGIN USERIDALIAS north", "INFO HEARTBEATTABLE")
    assert "HEARTBEAT table ggadmin.gg_heartbeat exists." in output
    assert "Frequency interval: 0.5 seconds." in output
    assert "Retention time: 7 days." in output
    assert "GGS-00654" in output
    assert "GG_UPDATE_HEARTBEATS is " in output
    assert "seconds overdue" in output


def test_lag_is_shown_by_hop_by_period_against_an_objective_and_from_the_archive(one_direction: Deployment) -> None:
    one_direction.run("STOP REPLICAT rep1")
    with one_direction.home.parameters("rep1").open("a") as file:
        file.write("LAGARCHIVE\n")
    one_direction.start("rep1")
    for count in (1, 2, 3):
        one_direction.send_heartbeat("north")
        until(
            "the heartbeat arrives",
            lambda count=count: len(one_direction.rows("south", "*", "gg_heartbeat_history")) == count,
        )  # type: ignore[misc]
    login = "DBLOGIN USERIDALIAS south"
    now = one_direction.run(login, "LAG HEARTBEAT")
    assert "==> EXT1 ==> DP1 ==> REP1 ==>" in now
    assert "Extract 0.0" in now
    by_minute = one_direction.run(
        login, f"LAG HEARTBEAT {one_direction.database_name('north')}, HISTORY SINCE 2020-01-01 BY DAY"
    )
    assert by_minute.count("==> EXT1 ==> DP1 ==> REP1 ==>") == 5
    output = one_direction.run(login, "LAG HEARTBEAT SLO 99 % WITHIN 20 S")
    assert "Within 20 s: 100.000% of 3 heartbeats; goal 99.000%: held" in output
    one_direction.sql(
        "south", "UPDATE ggadmin.gg_heartbeat SET incoming_heartbeat_ts = incoming_heartbeat_ts - interval '1 hour'"
    )
    output = one_direction.run(login, "LAG HEARTBEAT SLO 99 % WITHIN 20 S")
    assert "MISSED" in output
    assert "Not arrived yet: " in output
    assert "No heartbeat" in one_direction.run("LAG HEARTBEAT ARCHIVE")
    one_direction.run("STOP REPLICAT rep1")
    kept = one_direction.run("LAG HEARTBEAT, SLO 99 WITHIN 20 ARCHIVE")
    assert "of 3 heartbeats" in kept
    assert one_direction.run("LAG HEARTBEAT HISTORY BY DAY ARCHIVE").count("==> EXT1") == 5


def test_manager_sends_heartbeats_at_the_frequency_and_none_while_paused(one_direction: Deployment) -> None:
    def runs() -> int:
        return int(one_direction.sql("north", "SELECT max(runs) FROM ggadmin.gg_heartbeat_jobs")[0][0])

    one_direction.run("DBLOGIN USERIDALIAS north", "ALTER HEARTBEATTABLE, FREQUENCY 0.2")
    until("five heartbeats arrive", lambda: len(one_direction.rows("south", "*", "gg_heartbeat_history")) >= 5)
    assert runs() >= 5
    one_direction.run("DBLOGIN USERIDALIAS north", "ALTER HEARTBEATTABLE, FREQUENCY 0")
    still = runs()
    one_direction.sql("north", "SELECT pg_sleep(0.5)")
    assert runs() == still
    assert "(paused)" in one_direction.run("DBLOGIN USERIDALIAS north", "INFO HEARTBEATTABLE")


def test_a_group_without_heartbeats_drops_them_and_nothing_else(deployment: Deployment) -> None:
    deployment.extract("ext1", "north", "ea")
    deployment.path("dp1", "ea", "pa")
    deployment.replicat("rep1", "south", "pa", "DISABLE_HEARTBEAT_TABLE\nLAGSTATS THRESHOLDSECONDS 60\n")
    deployment.start("ext1", "dp1", "rep1")
    deployment.send_heartbeat("north")
    deployment.sql("north", "INSERT INTO shop.items VALUES (1)")
    until("the row arrives", lambda: len(deployment.sql("south", "SELECT * FROM shop.items")) == 1)
    assert deployment.rows("south", "*", "gg_heartbeat_history") == []
    output = deployment.run("STATS REPLICAT rep1, TOTAL")
    assert "Heartbeats" not in output
    assert "Delivered within 60000 ms: 100.00%" in output


def test_a_clock_that_is_ahead_is_reported_in_the_log_in_lag_and_in_info(one_direction: Deployment) -> None:
    one_direction.sql(
        "north", "UPDATE ggadmin.gg_heartbeat_seed SET heartbeat_timestamp = now() + interval '2 minutes'"
    )
    until("the heartbeat arrives", lambda: len(one_direction.rows("south", "*", "gg_heartbeat_history")) == 1)
    until("the warning", lambda: "GGS-00652" in one_direction.home.event_log.read_text())
    login = "DBLOGIN USERIDALIAS south"
    for statement in ("LAG HEARTBEAT", "INFO HEARTBEATTABLE"):
        assert "Negative lag" in one_direction.run(login, statement)
    assert one_direction.rows("south", "incoming_lag < -100, 1, 1", "gg_lag") == [(True, 1, 1)]


def test_a_target_only_database_receives_heartbeats_and_its_paths_can_be_deleted(deployment: Deployment) -> None:
    deployment.run(
        "DBLOGIN USERIDALIAS south", "DELETE HEARTBEATTABLE !", "ADD HEARTBEATTABLE, TARGETONLY, PARTITIONED"
    )
    deployment.extract("ext1", "north", "ea")
    deployment.replicat("rep1", "south", "ea")
    deployment.start("ext1", "rep1")
    deployment.send_heartbeat("north")
    deployment.wait_for("south", [(deployment.database_name("north"), "EXT1", None, "REP1", None, None)], WAY)
    assert "TARGETONLY" in deployment.run("DBLOGIN USERIDALIAS south", "INFO HEARTBEATTABLE")
    assert "1 heartbeat entries" in deployment.run("DBLOGIN USERIDALIAS south", "DELETE HEARTBEATENTRY ext* !")
    assert deployment.rows("south", "*") == []
    for wrong in ("FREQUENCY 8000", "FREQUENCY 0.05", "RETENTION_TIME 0", "PURGE_FREQUENCY 200", "FREQUENCY soon"):
        assert "ERROR" in deployment.run("DBLOGIN USERIDALIAS south", f"ALTER HEARTBEATTABLE, {wrong}", fails=True)
