"""Heartbeat metrics from a lag archive: labels, percentiles, and when the last heartbeat arrived."""

from __future__ import annotations

from pathlib import Path

from ggshell.clock import FakeClock
from ggshell.home.checkpoint import Checkpoint, GroupKind, ReadCheckpoint, SourceType, save
from ggshell.home.home import Home
from ggshell.monitoring import lag_archive
from ggshell.monitoring.lag_archive import ArchiveRow, lag_folder
from ggshell.pipeline.heartbeat.row import Beat
from ggshell.service.heartbeat_metrics import KEPT_SECONDS, HeartbeatMetrics

SECOND = 1_000_000


def archive(home: Home, group: str, received: int, routing: str | None = None) -> None:
    """Add one heartbeat with a lag of two seconds."""
    sent = received - 2 * SECOND
    beat = Beat("south", sent, "north", "EXT1", routing, group, sent, sent + 1000, None, received - 2000)
    lag_archive.write(lag_folder(home), group, [ArchiveRow(beat, received)])


def add(home: Home, group: str) -> None:
    home.ensure()
    kept = Checkpoint(group, GroupKind.REPLICAT, ReadCheckpoint(SourceType.TRAIL, "./dirdat/ea"))
    save(home.checkpoint(group, GroupKind.REPLICAT), kept)


def samples(metrics: HeartbeatMetrics) -> dict[str, list[tuple[dict[str, str], float]]]:
    return {each.name: [(sample.labels, sample.value) for sample in each.samples] for each in metrics.collect()}


def test_the_path_is_the_names_of_its_processes(tmp_path: Path) -> None:
    home, clock = Home(tmp_path), FakeClock()
    add(home, "REP1")
    archive(home, "REP1", clock.now() - SECOND)
    archive(home, "REP2", clock.now() - SECOND, routing="PMP1")
    lag = samples(HeartbeatMetrics(home, clock))["ggshell_heartbeat_lag_seconds"]
    assert {labels["path"] for labels, _ in lag} == {"EXT1/REP1", "EXT1/PMP1/REP2"}
    assert {value for labels, value in lag if labels["hop"] == "total"} == {2.0}


def test_the_last_heartbeat_is_reported_for_longer_than_the_lag_and_only_for_groups_of_the_home(tmp_path: Path) -> None:
    home, clock = Home(tmp_path), FakeClock()
    add(home, "REP1")
    received = clock.now() - SECOND
    archive(home, "REP1", received)
    archive(home, "GONE", received)
    metrics = HeartbeatMetrics(home, clock)
    last = [({"group": "REP1"}, received / SECOND)]
    assert samples(metrics)["ggshell_heartbeat_last_received_time_seconds"] == last
    clock.advance(30 * 3600 + KEPT_SECONDS)
    later = samples(metrics)
    assert later["ggshell_heartbeat_lag_seconds"] == []
    assert later["ggshell_heartbeat_last_received_time_seconds"] == last
