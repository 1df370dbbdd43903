"""Every column of the four objects compared with values computed by hand, with a separate clock at each hop."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pipeline.heartbeat.deployment_end import DeploymentEnd, Hop, forwarded, replicate

from ggshell.clock import to_datetime
from ggshell.pipeline.heartbeat.names import HEARTBEAT_COLUMNS, HISTORY_COLUMNS, INCOMING, OUTGOING

SECOND = 1_000_000
BEAT = 1_790_000_000 * SECOND
EXTRACT = Hop("EXT1", BEAT + SECOND // 2)
AHEAD = Hop("DP1", BEAT + SECOND * 120 + SECOND * 7 // 10)
REPLICAT = Hop("REP1", BEAT + SECOND)
BACK = (Hop("EXT2", BEAT + SECOND * 10), (Hop("DP2", BEAT + SECOND * 11),), Hop("REP2", BEAT + SECOND * 13))


def at(microseconds: int) -> datetime:
    return to_datetime(microseconds).replace(tzinfo=None)


def seconds(later: datetime, earlier: datetime) -> Decimal:
    return Decimal((later - earlier) // timedelta(microseconds=1)) / 1_000_000


@pytest.fixture
def ends(tmp_path: Path, north: str, south: str) -> tuple[DeploymentEnd, DeploymentEnd]:
    return DeploymentEnd(north, tmp_path / "north"), DeploymentEnd(south, tmp_path / "south")


def of(row: dict[str, Any], names: tuple[str, ...]) -> list[Any]:
    return [row[name] for name in names]


def test_one_way_with_a_path_whose_clock_is_two_minutes_ahead(ends: tuple[DeploymentEnd, DeploymentEnd]) -> None:
    north, south = ends
    replicate(north, south, EXTRACT, (AHEAD,), REPLICAT)
    south.sql("TRUNCATE ggadmin.gg_heartbeat_history")
    north.send_heartbeat(BEAT)
    replicate(north, south, EXTRACT, (AHEAD,), REPLICAT)
    (row,), (history,) = south.rows("gg_heartbeat"), south.rows("gg_heartbeat_history")
    assert tuple(row) == HEARTBEAT_COLUMNS
    assert tuple(history) == HISTORY_COLUMNS
    incoming = ["EXT1", "DP1", "REP1", at(BEAT), at(EXTRACT.time), at(AHEAD.time), at(REPLICAT.time)]
    assert of(row, ("local_database", "heartbeat_timestamp", "remote_database")) == [south.name, at(BEAT), north.name]
    assert of(row, INCOMING) == incoming
    assert of(row, OUTGOING) == [None] * 7
    assert row["incoming_replicat_lw_csn"] == "00000000/00000123"
    assert row["incoming_extract_heartbeat_csn"] > row["incoming_extract_restart_csn"]
    assert isinstance(row["incoming_extract_restart_ts"], datetime)
    assert of(history, ("local_database", "remote_database")) == [south.name, north.name]
    assert of(history, INCOMING) == incoming
    assert of(history, OUTGOING) == [None] * 7
    assert of(history, HISTORY_COLUMNS[-4:]) == of(row, HEARTBEAT_COLUMNS[-4:])
    check_lag(south, row, history)
    check_lag_history(south, history)
    assert north.rows("gg_heartbeat") == []


def check_lag(south: DeploymentEnd, row: dict[str, Any], history: dict[str, Any]) -> None:
    (lag,) = south.rows("gg_lag")
    now = lag["current_local_ts"]
    assert lag == {
        "local_database": south.name,
        "current_local_ts": now,
        "remote_database": row["remote_database"],
        "incoming_heartbeat_age": seconds(now, at(BEAT)),
        "incoming_path": "==> EXT1 ==> DP1 ==> REP1 ==>",
        "incoming_lag": seconds(history["heartbeat_received_ts"], at(BEAT)),
        "outgoing_heartbeat_age": None,
        "outgoing_path": None,
        "outgoing_lag": None,
        "remote_extract_restart_csn": row["incoming_extract_restart_csn"],
        "remote_database_db_unique_name": row["remote_database"],
        "remote_extract_restart_csn_time": row["incoming_extract_restart_ts"],
        "remote_db_oldest_open_txn_age": seconds(now, row["incoming_extract_restart_ts"]),
        "local_replicat_lwm_csn": "00000000/00000123",
    }


def check_lag_history(south: DeploymentEnd, history: dict[str, Any]) -> None:
    (lag,) = south.rows("gg_lag_history")
    received = history["heartbeat_received_ts"]
    assert lag == {
        "local_database": south.name,
        "heartbeat_received_ts": received,
        "remote_database": history["remote_database"],
        "db_name": history["remote_database"],
        "db_unique_name": history["remote_database"],
        "incoming_heartbeat_age": seconds(received, at(BEAT)),
        "incoming_path": "==> EXT1 ==> DP1 ==> REP1 ==>",
        "incoming_lag": seconds(received, at(BEAT)),
        "outgoing_heartbeat_age": None,
        "outgoing_path": None,
        "outgoing_lag": None,
        "remote_extract_restart_csn": history["source_extract_restart_csn"],
        "remote_extract_restart_csn_time": history["source_extract_restart_csn_ts"],
        "remote_db_oldest_open_txn_age": seconds(received, history["source_extract_restart_csn_ts"]),
        "local_replicat_lwm_csn": "00000000/00000123",
        "incoming_extract_lag": Decimal("0.5"),
        "incoming_routine_lag": Decimal("120.2"),
        "incoming_replicat_read_lag": Decimal("-119.7"),
        "incoming_replicat_lag": seconds(received, at(REPLICAT.time)),
        "outgoing_extract_lag": None,
        "outgoing_routine_lag": None,
        "outgoing_replicat_read_lag": None,
        "outgoing_replicat_lag": None,
    }
    parts = ("extract", "routine", "replicat_read", "replicat")
    assert sum(lag[f"incoming_{part}_lag"] for part in parts) == lag["incoming_lag"]


def test_each_end_receives_path_and_lag_of_its_own_heartbeats(ends: tuple[DeploymentEnd, DeploymentEnd]) -> None:
    north, south = ends
    north.send_heartbeat(BEAT)
    replicate(north, south, EXTRACT, (AHEAD,), REPLICAT)
    south.send_heartbeat(BEAT + 9 * SECOND)
    replicate(south, north, *BACK)
    north.send_heartbeat(BEAT + 60 * SECOND)
    replicate(north, south, EXTRACT, (AHEAD,), REPLICAT)
    out = ["EXT1", "DP1", "REP1", at(BEAT), at(EXTRACT.time), at(AHEAD.time), at(REPLICAT.time)]
    back = ["EXT2", "DP2", "REP2", at(BEAT + 9 * SECOND), *(at(BEAT + n * SECOND) for n in (10, 11, 13))]
    (in_north,), (in_south,) = north.rows("gg_heartbeat"), south.rows("gg_heartbeat")
    assert of(in_north, INCOMING) == back
    assert of(in_north, OUTGOING) == out
    assert of(in_south, OUTGOING) == back
    assert in_south["incoming_heartbeat_ts"] == at(BEAT + 60 * SECOND)
    lag = south.sql("SELECT * FROM ggadmin.gg_lag_history ORDER BY heartbeat_received_ts DESC LIMIT 1")[0]
    shown = {name: value for name, value in lag.items() if name.startswith("outgoing")}
    assert shown == {
        "outgoing_heartbeat_age": seconds(lag["heartbeat_received_ts"], at(BEAT + 9 * SECOND)),
        "outgoing_path": "==> EXT2 ==> DP2 ==> REP2 ==>",
        "outgoing_lag": Decimal(4),
        "outgoing_extract_lag": Decimal(1),
        "outgoing_routine_lag": Decimal(1),
        "outgoing_replicat_read_lag": Decimal(2),
        "outgoing_replicat_lag": None,
    }
    (now,) = south.rows("gg_lag")
    assert (now["outgoing_path"], now["outgoing_lag"]) == ("==> EXT2 ==> DP2 ==> REP2 ==>", Decimal(4))


def test_a_change_by_replicat_is_not_a_heartbeat(ends: tuple[DeploymentEnd, DeploymentEnd]) -> None:
    north, south = ends
    north.send_heartbeat(BEAT)
    replicate(north, south, EXTRACT, (AHEAD,), REPLICAT)
    row = "local_database, remote_database, incoming_replicat, heartbeat_timestamp, incoming_heartbeat_ts"
    # What Replicat does if its changes carry no origin, so that an Extract there sees them.
    south.sql(f"INSERT INTO ggadmin.gg_heartbeat ({row}) VALUES ('x', 'y', 'R', '2026-01-01', '2026-01-01')")
    south.sql("UPDATE ggadmin.gg_heartbeat SET heartbeat_timestamp = incoming_heartbeat_ts")
    south.sql("DELETE FROM ggadmin.gg_heartbeat WHERE local_database = 'x'")
    assert south.extracted(BACK[0]) == []


def test_a_hub_between_two_ends_has_a_row_for_each_neighbor_only(
    ends: tuple[DeploymentEnd, DeploymentEnd], tmp_path: Path, hub: str
) -> None:
    north, south = ends
    middle = DeploymentEnd(hub, tmp_path / "hub")
    back = (Hop("EH", BEAT + SECOND), (), Hop("RN", BEAT + 2 * SECOND))
    onward = (Hop("EH", BEAT + SECOND), (Hop("DPH", BEAT + SECOND),), Hop("RS", BEAT + 2 * SECOND))
    for _ in range(3):
        north.send_heartbeat(BEAT)
        replicate(north, middle, Hop("EN", BEAT), (Hop("DP1", BEAT), Hop("DP2", BEAT)), Hop("RH", BEAT))
        middle.send_heartbeat(BEAT + 1)
        batches = middle.through_trail(middle.extracted(onward[0]))
        north.receive(batches, back[2])
        south.receive(middle.through_trail(forwarded(batches, onward[1][0])), onward[2])
    assert [(row["remote_database"], row["incoming_replicat"]) for row in south.rows("gg_heartbeat")] == [
        (middle.name, "RS")
    ]
    (in_north,), (in_hub,) = north.rows("gg_heartbeat"), middle.rows("gg_heartbeat")
    assert of(in_north, (*INCOMING[:3], *OUTGOING[:3])) == ["EH", None, "RN", "EN", "DP1,DP2", "RH"]
    assert of(in_hub, (*INCOMING[:3], *OUTGOING[:3])) == ["EN", "DP1,DP2", "RH", "EH", None, "RN"]
