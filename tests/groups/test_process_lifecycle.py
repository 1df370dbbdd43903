"""The lifecycle of a group's process: real processes that run, stop, abend and are killed."""

from __future__ import annotations

import signal
import stat
from pathlib import Path

import checkpoints
import pytest
from processes import Start, until, until_state

from ggshell.errors import ApplyError, NotFoundError, ProcessError, StateError
from ggshell.groups.lifecycle import run_group
from ggshell.groups.process_request import request
from ggshell.home import checkpoint as store
from ggshell.home.checkpoint import GroupKind, StopStatus
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessState, abend_reason, kill, read_process_file, state_of

EXTRACT = GroupKind.EXTRACT


def running(home: Home, group: str = "EXT1") -> str:
    """Wait until a group runs; returns its socket."""
    until_state(home, group, EXTRACT, ProcessState.RUNNING)
    entry = read_process_file(home.process(group, EXTRACT))
    assert entry is not None
    return entry.socket


def event_codes(home: Home) -> list[str]:
    return [line.split()[3] for line in home.event_log.read_text().splitlines()]


def test_a_run_from_start_to_stop(home: Home, start: Start) -> None:
    process = start("idle")
    socket = running(home)
    assert request(socket, "STATUS")["status"] == "At EOF"
    assert request(socket, "STATS")["tables"][0]["counts"]["total"]["inserts"] == 3
    assert request(socket, "STOP") == {"pid": process.pid}
    assert process.wait(10) == 0
    assert not home.process("EXT1", EXTRACT).exists()
    assert not home.socket("EXT1", EXTRACT).exists()
    checkpoint = store.load(home.checkpoint("EXT1", EXTRACT))
    assert (checkpoint.stop, checkpoint.result) == (StopStatus.GRACEFUL, 400)
    assert checkpoint.started > 0
    assert event_codes(home) == ["OGG-00992", "OGG-00993", "OGG-00991"]
    assert "#           inserts:         3" in home.report("EXT1").read_text()


def test_statistics_are_answered_while_a_group_still_connects(home: Home, start: Start) -> None:
    process = start("connect_for_long")
    socket = running(home)
    assert request(socket, "STATS")["tables"] == []
    assert request(socket, "STATUS")["status"] == "Starting"
    request(socket, "STOP")
    assert process.wait(10) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_process_gracefully(home: Home, start: Start, number: signal.Signals) -> None:
    process = start("idle")
    running(home)
    process.send_signal(number)
    assert process.wait(10) == 0
    assert state_of(home.process("EXT1", EXTRACT))[0] is ProcessState.STOPPED
    assert store.load(home.checkpoint("EXT1", EXTRACT)).stop is StopStatus.GRACEFUL


def test_a_forced_stop_is_recorded(home: Home, start: Start) -> None:
    process = start("idle")
    request(running(home), "FORCESTOP")
    assert process.wait(10) == 0
    assert store.load(home.checkpoint("EXT1", EXTRACT)).stop is StopStatus.FORCED


def test_socket_and_process_file_are_accessible_only_to_the_owner(home: Home, start: Start) -> None:
    start("idle")
    socket = home.socket("EXT1", EXTRACT)
    assert running(home) == str(socket)
    assert stat.S_ISSOCK(socket.stat().st_mode)
    assert socket.stat().st_mode & 0o777 == 0o600
    assert home.process("EXT1", EXTRACT).stat().st_mode & 0o777 == 0o600


def test_statistics_are_reported_and_the_latest_section_is_reset(home: Home, start: Start) -> None:
    start("idle")
    socket = running(home)
    assert request(socket, "REPORT") == {}
    assert "From Table shop.items to shop.items:" in home.report("EXT1").read_text()
    request(socket, "STATS", reset=True)
    counts = request(socket, "STATS")["tables"][0]["counts"]
    assert (counts["total"]["inserts"], counts["latest"]["inserts"]) == (3, 0)


def test_unknown_and_failing_requests_do_not_end_the_process(home: Home, start: Start) -> None:
    process = start("idle")
    socket = running(home)
    with pytest.raises(StateError, match="EXTRACT EXT1 does not support the request DANCE"):
        request(socket, "DANCE")
    with pytest.raises(ProcessError, match="ZeroDivisionError"):
        request(socket, "BUG")
    with pytest.raises(ApplyError, match="not now"):
        request(socket, "REFUSE")
    assert request(socket, "GETLAG") == {"lag_seconds": None, "at_eof": False}
    assert process.poll() is None


def test_kill_9_is_detected_and_the_next_run_starts(home: Home, start: Start) -> None:
    process = start("idle")
    running(home)
    process.kill()
    process.wait()
    assert state_of(home.process("EXT1", EXTRACT))[0] is ProcessState.ABENDED
    assert store.load(home.checkpoint("EXT1", EXTRACT)).stop is StopStatus.ABENDED
    second = start("idle")
    request(running(home), "STOP")
    assert second.wait(10) == 0
    assert home.report("EXT1", 0).exists()


def test_kill_is_recorded_in_the_process_file(home: Home, start: Start) -> None:
    process = start("idle")
    running(home)
    kill(home.process("EXT1", EXTRACT), "EXTRACT EXT1")
    process.wait(10)
    entry = read_process_file(home.process("EXT1", EXTRACT))
    assert entry is not None
    assert entry.killed


def test_a_second_process_of_the_same_group_is_refused(home: Home, start: Start) -> None:
    first = start("idle")
    socket = running(home)
    until("the report has the start", lambda: "EXT1 started." in home.report("EXT1").read_text())
    report = home.report("EXT1").read_text()
    second = start("idle")
    _, stderr = second.communicate(timeout=120)
    assert second.returncode == 1
    assert stderr.startswith("OGG-01454  EXTRACT EXT1 is locked by another process")
    assert first.poll() is None
    assert request(socket, "STATUS")["status"] == "At EOF"
    assert home.report("EXT1").read_text() == report
    assert not home.report("EXT1", 0).exists()


def test_an_expected_error_abends_the_process_without_a_traceback(home: Home, start: Start) -> None:
    assert start("refuse").wait(10) == 1
    assert state_of(home.process("EXT1", EXTRACT))[0] is ProcessState.ABENDED
    assert event_codes(home) == ["OGG-00992", "OGG-00993", "OGG-01296", "OGG-01668"]
    reason = abend_reason(*state_of(home.process("EXT1", EXTRACT)))
    assert str(reason) == "OGG-01296 no row has this key (shop.items) - look at the discard file"
    report = home.report("EXT1").read_text()
    assert "no row has this key (shop.items) - look at the discard file" in report
    assert "Traceback" not in report
    assert store.load(home.checkpoint("EXT1", EXTRACT)).stop is StopStatus.ABENDED
    assert not home.socket("EXT1", EXTRACT).exists()


def test_an_unexpected_exception_is_in_the_report_with_its_traceback(home: Home, start: Start) -> None:
    process = start("crash")
    _, stderr = process.communicate(timeout=120)
    assert (process.returncode, stderr) == (1, "")
    assert event_codes(home)[-2:] == ["GGS-00999", "OGG-01668"]
    report = home.report("EXT1").read_text()
    assert "Traceback (most recent call last)" in report
    assert "group_workloads.py" in report
    assert "hidden" not in report
    assert "Traceback" not in home.event_log.read_text()


def test_a_group_that_does_not_exist_creates_no_files(home: Home) -> None:
    with pytest.raises(NotFoundError, match="EXTRACT NONE does not exist"):
        run_group(home, "none", EXTRACT, lambda _: None)
    assert [path for folder in ("dirrpt", "dirpcs") for path in (home.root / folder).iterdir()] == []


def test_a_damaged_checkpoint_is_reported_in_every_output(home: Home, start: Start) -> None:
    for _ in range(2):  # the second save keeps the first as .previous, which the hint names
        checkpoints.save(home, checkpoints.extract("EXT1"))
    home.checkpoint("EXT1", EXTRACT).write_bytes(b"GGSCHK 1 00000000\n{}")
    process = start("idle")
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 1
    for text in (stderr, home.report("EXT1").read_text(), home.event_log.read_text()):
        assert "EXT1.cpe is damaged" in text
        assert "EXT1.cpe.previous" in text
    assert state_of(home.process("EXT1", EXTRACT))[0] is ProcessState.ABENDED


def test_a_home_with_a_long_path_works(start: Start, home: Home) -> None:
    long = Home(home.root / ("long" * 30))
    process = start("idle", where=long)
    socket = running(long)
    assert request(socket, "STATUS")["status"] == "At EOF"
    request(socket, "STOP")
    assert process.wait(10) == 0
    assert not Path(socket).exists()
