"""Processes: who runs, who answers, what is kept, what is purged."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from ggshell.clock import FakeClock, SystemClock
from ggshell.errors import NotFoundError, ProcessError, StateError
from ggshell.params import PurgeRule, RestartRule
from ggshell.process import control
from ggshell.process.control import ControlServer
from ggshell.process.manager import Attempts, pattern_matches
from ggshell.process.purge import removable
from ggshell.process.report import Report, masked
from ggshell.process.runner import Runner
from ggshell.process.state import ProcessFile, ProcessState, follow, start_ticks, state_of, write_process_file
from ggshell.process.statistics import Statistics
from ggshell.store.checkpoint import GroupType
from ggshell.store.home import Home
from ggshell.types import TableName


def test_a_process_file_of_a_dead_or_other_process_means_abended(tmp_path: Path) -> None:
    path = tmp_path / "E.pce"
    assert state_of(path)[0] is ProcessState.STOPPED
    ticks = start_ticks(os.getpid()) or 0
    write_process_file(path, ProcessFile(os.getpid(), ticks, ProcessState.RUNNING, "", 0))
    assert state_of(path)[0] is ProcessState.RUNNING
    write_process_file(path, ProcessFile(os.getpid(), ticks + 1, ProcessState.RUNNING, "", 0))
    assert state_of(path)[0] is ProcessState.ABENDED


def test_states_follow_the_table_only() -> None:
    assert follow(ProcessState.STOPPED, ProcessState.STARTING) is ProcessState.STARTING
    with pytest.raises(StateError):
        follow(ProcessState.STOPPED, ProcessState.RUNNING)


@pytest.mark.parametrize("depth", [1, 12])
def test_requests_are_answered_over_a_private_socket_also_from_a_deep_home(tmp_path: Path, depth: int) -> None:
    folder = tmp_path.joinpath(*["a-rather-long-folder"] * depth)
    folder.mkdir(parents=True)

    def handle(verb: str, arguments: dict[str, object]) -> dict[str, object]:
        if verb == "FAIL":
            raise NotFoundError("nothing here", hint="look elsewhere")
        return {"verb": verb, **arguments}

    server = ControlServer(folder / "E.sock", handle)
    runner = Runner(server, SystemClock())
    worker = threading.Thread(target=lambda: [runner.wait([], 5) for _ in range(12)])
    worker.start()
    try:
        assert server.path.stat().st_mode & 0o777 == 0o600
        assert control.request(str(server.path), "STATUS", a=1) == {"verb": "STATUS", "a": 1}
        with pytest.raises(Exception, match="nothing here"):
            control.request(str(server.path), "FAIL")
    finally:
        runner.stop()
        worker.join()
        server.close()
    with pytest.raises(ProcessError):
        control.request(str(server.path), "STATUS")


def test_older_reports_are_kept_as_0_to_9_and_secrets_masked(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.ensure()
    parameters = home.parameters("ext1")
    parameters.write_text("EXTRACT ext1\nUSERID a, PASSWORD topsecret\n")
    for number in range(12):
        report = Report(home, "EXT1", "Capture", FakeClock())
        report.write(f"run {number}")
    report.opening(parameters)
    assert "run 10" in home.report("EXT1", 0).read_text()
    assert "run 1\n" in home.report("EXT1", 9).read_text()
    assert "topsecret" not in home.report("EXT1").read_text()
    assert masked("password 'a b', x") == "password *******, x"


def test_statistics_keep_total_day_hour_and_latest_apart() -> None:
    clock = FakeClock()
    statistics = Statistics(clock)
    table = TableName("a", "b")
    statistics.add(table, table, 5, 3)
    statistics.reset()
    clock.advance(3600)
    statistics.add(table, table, 15, 2)
    counts = statistics.snapshot()["tables"][0]["counts"]
    assert (counts["total"]["inserts"], counts["total"]["updates"]) == (3, 2)
    assert (counts["hourly"]["inserts"], counts["latest"]["inserts"]) == (0, 0)


@pytest.mark.parametrize(
    ("rule", "needed", "expected"),
    [
        (PurgeRule("x", keep_files=1), 3, [0, 1, 2]),
        (PurgeRule("x", keep_files=1), 1, [0]),
        (PurgeRule("x", keep_files=4), 3, [0]),
        (PurgeRule("x", keep_files=1), None, []),
        (PurgeRule("x", use_checkpoints=False, keep_files=2), None, [0, 1, 2]),
        (PurgeRule("x", keep_hours=3, keep_files=1), 4, [0, 1]),
    ],
)
def test_purge_keeps_what_a_reader_or_a_rule_needs(rule: PurgeRule, needed: int | None, expected: list[int]) -> None:
    hour = 3_600_000_000
    files = [(seqno, seqno * hour) for seqno in range(5)]
    assert removable(files, needed, rule, 4 * hour) == expected


def test_patterns_take_kinds_and_names() -> None:
    assert pattern_matches("ER", "*", ("EXT1", GroupType.EXTRACT))
    assert not pattern_matches("ER", "*", ("DP1", GroupType.PATH))
    assert pattern_matches("EXTRACT", "e*", ("EXT1", GroupType.EXTRACT))
    assert not pattern_matches("REPLICAT", "*", ("EXT1", GroupType.EXTRACT))


def test_restarts_wait_are_counted_and_forgotten_after_the_reset_time(tmp_path: Path) -> None:
    from ggshell.params import ManagerParameters
    from ggshell.process.manager import Manager

    home = Home(tmp_path)
    home.ensure()
    clock = FakeClock()
    manager = Manager(home, ManagerParameters(), clock)
    try:
        rule, attempts = RestartRule("ER", "*", retries=2, wait=10, reset=100), Attempts()
        seen = []
        for _ in range(60):
            if manager.may_restart(rule, attempts):
                seen.append(round(clock.steady()))
            clock.advance(5)
        assert seen == [10, 25, 125, 140, 240, 255]
    finally:
        manager.close()
