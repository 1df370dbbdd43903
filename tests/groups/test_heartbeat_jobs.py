"""When Manager runs the heartbeat jobs, and how it reports their lag; with a fake clock and fake databases."""

from __future__ import annotations

from collections.abc import Iterable

from ggshell.clock import FakeClock
from ggshell.connectors.connector import HeartbeatDatabase
from ggshell.errors import ConnectionLostError
from ggshell.groups.heartbeat_jobs import HeartbeatJobs, late_seconds
from ggshell.home.events import Severity
from ggshell.monitoring.heartbeat_lag import Lag, lag_of
from ggshell.monitoring.lag_rules import LagRules
from ggshell.pipeline.heartbeat.row import Beat

SECOND = 1_000_000


class FakeDatabase:
    """Sends a heartbeat at an interval of the clock; the next ``failing`` runs fail."""

    name = "here:5432/db"

    def __init__(self, clock: FakeClock, every: float | None) -> None:
        self.clock, self.every, self.failing = clock, every, 0
        self.runs: list[float] = []
        self.shown: list[Lag] = []
        self.closed = False

    def run(self) -> float | None:
        if self.failing:
            self.failing -= 1
            raise ConnectionLostError("nobody answers")
        self.runs.append(self.clock.steady())
        return self.every

    def lags(self) -> tuple[list[Lag], float]:
        return self.shown, 60.0

    def close(self) -> None:
        self.closed = True


def jobs_of(
    clock: FakeClock, database: FakeDatabase, messages: list[object], rules: LagRules | None = None
) -> HeartbeatJobs:
    def find(known: Iterable[str]) -> list[HeartbeatDatabase]:
        return [] if database.name in set(known) else [database]

    return HeartbeatJobs(find, clock, messages.append, lambda: rules or LagRules())


def run_for(jobs: HeartbeatJobs, clock: FakeClock, seconds: float) -> None:
    """Let the jobs run for a time, sleeping as long as they request."""
    end = clock.steady() + seconds
    while clock.steady() < end:
        clock.advance(max(0.01, jobs.turn()))


def lag(total: float, age: float) -> Lag:
    beat = Beat("south", 1, "north", "E", None, "R", incoming_heartbeat_ts=0, incoming_extract_ts=0)
    return lag_of(beat._replace(incoming_replicat_ts=round(total * SECOND)), None, round(age * SECOND))


def test_a_job_runs_when_it_is_due_and_at_least_every_five_seconds() -> None:
    clock, messages = FakeClock(), list[object]()
    quick, slow = FakeDatabase(clock, 0.5), FakeDatabase(clock, 3600)
    run_for(jobs_of(clock, quick, messages), clock, 10)
    assert len(quick.runs) in (20, 21)
    run_for(jobs_of(clock, slow, messages), clock, 10)
    assert len(slow.runs) in (2, 3)
    assert messages == []


def test_new_heartbeat_objects_are_found_at_once() -> None:
    clock, found = FakeClock(), list[HeartbeatDatabase]()
    jobs = HeartbeatJobs(lambda known: [each for each in found if each.name not in known], clock, print)
    assert jobs.turn() > 20
    database = FakeDatabase(clock, 3600)
    found.append(database)
    jobs.turn()
    assert database.runs == []
    jobs.check_again()
    jobs.turn()
    assert len(database.runs) == 1


def test_a_failure_is_reported_once_and_the_job_is_tried_again() -> None:
    clock, messages = FakeClock(), list[object]()
    database = FakeDatabase(clock, 5)
    database.failing = 3
    jobs = jobs_of(clock, database, messages)
    run_for(jobs, clock, 60)
    assert messages == [(Severity.WARNING, "GGS-00402", "Heartbeat jobs of here:5432/db: nobody answers")]
    assert database.runs[0] == 30
    jobs.close()
    assert database.closed


def test_lag_above_the_thresholds_is_reported_at_the_report_interval() -> None:
    clock, messages = FakeClock(), list[object]()
    database = FakeDatabase(clock, 5)
    database.shown = [lag(1, 2), lag(7, 8), lag(30, 31)]
    run_for(jobs_of(clock, database, messages, LagRules(20, 5, 20)), clock, 39)
    assert [each[:2] for each in messages if isinstance(each, tuple)] == [
        (Severity.INFO, "OGG-00976"),
        (Severity.WARNING, "OGG-00976"),
    ] * 2


def test_the_lag_of_a_silent_path_is_the_age_of_its_last_heartbeat() -> None:
    assert late_seconds(lag(1, 100), 60) == 1
    assert late_seconds(lag(1, 121), 60) == 121
