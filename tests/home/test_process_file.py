"""States and process files: running processes, dead ones, and processes that reuse the pid of a dead one."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import until

from ggshell.errors import StateError
from ggshell.home.process_file import (
    ProcessFile,
    ProcessState,
    abend_reason,
    alive,
    end_descriptor,
    follow,
    kill,
    read_process_file,
    start_by_ps,
    start_ticks,
    state_of,
    write_process_file,
)


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def entry(pid: int, state: ProcessState = ProcessState.RUNNING) -> ProcessFile:
    return ProcessFile(pid, start_ticks(pid) or 0, state, "/socket", 1)


@pytest.mark.parametrize("now", ProcessState)
def test_only_the_listed_state_changes_are_possible(now: ProcessState) -> None:
    possible = set()
    for then in ProcessState:
        try:
            possible.add(follow(now, then))
        except StateError as error:
            assert str(then) in error.message
    assert (
        possible
        == {
            ProcessState.STOPPED: {"STARTING"},
            ProcessState.STARTING: {"RUNNING", "ABENDED", "STOPPED"},
            ProcessState.RUNNING: {"STOPPED", "ABENDED"},
            ProcessState.ABENDED: {"STARTING"},
        }[now]
    )


def test_without_a_process_file_a_group_is_stopped(tmp_path: Path) -> None:
    assert state_of(tmp_path / "EXT1.pce") == (ProcessState.STOPPED, None)


def test_a_living_process_has_the_state_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "EXT1.pce"
    for state in ProcessState:
        write_process_file(path, entry(os.getpid(), state))
        assert state_of(path) == (state, entry(os.getpid(), state))
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
def test_a_process_file_left_by_kill_9_means_abended(tmp_path: Path, child: subprocess.Popen[bytes]) -> None:
    path = tmp_path / "EXT1.pce"
    write_process_file(path, entry(child.pid))
    assert state_of(path)[0] is ProcessState.RUNNING
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # a zombie does not count as running
    assert state_of(path)[0] is ProcessState.ABENDED
    assert f"process {child.pid} could not record" in str(abend_reason(*state_of(path)))
    child.wait()
    assert state_of(path)[0] is ProcessState.ABENDED


ENDS_ITS_FIRST_THREAD = """
import ctypes, sys, threading
threading.Thread(target=sys.stdin.read).start()
ctypes.CDLL(None).pthread_exit(None)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="threads are counted in /proc")
def test_a_process_is_running_until_its_last_thread_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "EXT1.pce"
    with subprocess.Popen([sys.executable, "-c", ENDS_ITS_FIRST_THREAD], stdin=subprocess.PIPE) as process:
        write_process_file(path, entry(process.pid))
        status = Path(f"/proc/{process.pid}/status")
        until("the first thread ends", lambda: "State:\tZ" in status.read_text())
        assert state_of(path)[0] is ProcessState.RUNNING
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert state_of(path)[0] is ProcessState.ABENDED


def test_a_reused_pid_is_another_process(tmp_path: Path) -> None:
    path = tmp_path / "EXT1.pce"
    mine = entry(os.getpid())
    write_process_file(path, mine._replace(ticks=mine.ticks - 1))
    assert state_of(path)[0] is ProcessState.ABENDED
    assert end_descriptor(mine._replace(ticks=mine.ticks - 1)) is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"pid": 1}', b'{"pid":1,"state":"DANCING"}', b"\xff"])
def test_a_damaged_process_file_is_ignored(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "EXT1.pce"
    path.write_bytes(content)
    assert read_process_file(path) is None


@pytest.mark.slow
def test_the_end_descriptor_becomes_readable_when_the_process_ends(child: subprocess.Popen[bytes]) -> None:
    descriptor = end_descriptor(entry(child.pid))
    assert descriptor is not None
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    assert poll.poll(0) == []
    child.kill()
    assert poll.poll(5000)
    os.close(descriptor)


@pytest.mark.slow
def test_kill_is_recorded_in_the_process_file(tmp_path: Path, child: subprocess.Popen[bytes]) -> None:
    path = tmp_path / "EXT1.pce"
    write_process_file(path, entry(child.pid))
    assert kill(path, "EXTRACT EXT1").pid == child.pid
    assert child.wait(5) == -9
    state, left = state_of(path)
    assert state is ProcessState.ABENDED
    assert left is not None
    assert left.killed
    with pytest.raises(StateError, match="EXTRACT EXT1 is not running"):
        kill(path, "EXTRACT EXT1")


@pytest.mark.slow
def test_the_start_time_is_known_without_proc(child: subprocess.Popen[bytes]) -> None:
    first = start_by_ps(child.pid)
    assert first is not None
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert start_by_ps(child.pid) is None
    child.wait()
    assert start_by_ps(child.pid) is None
    assert not alive(ProcessFile(child.pid, 1, ProcessState.RUNNING, "", 0))
