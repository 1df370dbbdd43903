"""A home, and real processes in it; both end with the test, also when it fails."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import checkpoints
import pytest
from processes import Start

from ggshell.demo.processes import end_processes
from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home

WORKLOADS = Path(__file__).with_name("group_workloads.py")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path / "home")
    home.ensure()
    yield home
    end_processes(home.root)


@pytest.fixture
def start(home: Home) -> Iterator[Start]:
    """Start a workload of group_workloads.py as the process of Extract EXT1 (or another group)."""
    started: list[subprocess.Popen[str]] = []

    def begin(workload: str, group: str = "EXT1", where: Home = home, shift: int = 0) -> subprocess.Popen[str]:
        if not where.checkpoint(group, GroupKind.EXTRACT).exists():
            checkpoints.save(where, checkpoints.extract(group))
        command = [sys.executable, str(WORKLOADS), workload, str(where.root), group, str(shift)]
        started.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.communicate()
