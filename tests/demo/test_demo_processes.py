"""Ends the processes of a home, and no others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ggshell.demo.processes import end_processes, running_processes
from ggshell.home.process_file import ProcessFile, ProcessState, start_ticks, write_process_file

pytestmark = pytest.mark.slow

WAIT = [sys.executable, "-c", "import signal; signal.pause()"]


def _note(home: Path, name: str, pid: int, ticks: int) -> None:
    (home / "dirpcs").mkdir(exist_ok=True)
    write_process_file(home / "dirpcs" / name, ProcessFile(pid, ticks, ProcessState.RUNNING, "", 0))


def _ended(child: subprocess.Popen[bytes]) -> bool:
    return child.wait(timeout=120) == -9


def test_all_processes_are_ended_with_manager_first(tmp_path: Path) -> None:
    children = {name: subprocess.Popen(WAIT) for name in ("EXT1.pce", "MGR.pcm", "REP1.pcr", "SERVICE.pcs")}
    for name, child in children.items():
        _note(tmp_path, name, child.pid, start_ticks(child.pid) or 0)
    assert end_processes(tmp_path) == ["MGR.pcm", "SERVICE.pcs", "EXT1.pce", "REP1.pcr"]
    assert all(_ended(child) for child in children.values())


def test_a_process_without_a_file_is_found_by_its_command_line(tmp_path: Path) -> None:
    words = ["-", "ggshell.groups", "extract", "--home", str(tmp_path), "--group", "ext1"]
    other = [*words[:4], str(tmp_path / "other"), *words[5:]]
    with subprocess.Popen([*WAIT, *words]) as mine, subprocess.Popen([*WAIT, *other]) as theirs:
        while not running_processes(tmp_path):  # wait until the new process has its command line
            assert mine.poll() is None
        assert end_processes(tmp_path) == ["extract ext1"]
        assert _ended(mine)
        assert theirs.poll() is None
        theirs.kill()


def test_a_process_that_reuses_a_pid_is_not_ended(tmp_path: Path) -> None:
    with subprocess.Popen(WAIT) as child:
        _note(tmp_path, "EXT1.pce", child.pid, 1)
        assert end_processes(tmp_path) == []
        assert child.poll() is None
        child.kill()
