"""kill -9 of each process under load, then START: nothing is lost and nothing is applied twice.

The load does not stop while processes are killed. A seed determines the time of each kill, so rounds differ and runs
do not.
"""

from __future__ import annotations

import os
import random
import signal
from typing import NamedTuple

import pytest
from replication import Replication

from ggshell.home.process_file import ProcessState, read_process_file, state_of


class Victim(NamedTuple):
    """A process: the file that names its pid, and the statement that starts it again."""

    file: str
    start: str


VICTIMS = {
    "Extract": Victim("EXT1.pce", "START EXTRACT ext1"),
    "pump": Victim("PMP1.pce", "START EXTRACT pmp1"),
    "path": Victim("DP1.pcd", "START DISTPATH dp1"),
    "Replicat": Victim("REP1.pcr", "START REPLICAT rep1"),
    "Manager": Victim("MGR.pcm", "START MANAGER"),
}


def _kill(replication: Replication, victim: Victim) -> None:
    path = replication.home / "dirpcs" / victim.file
    entry = read_process_file(path)
    assert entry is not None
    os.kill(entry.pid, signal.SIGKILL)
    replication.until(f"{victim.file} is reported as abended", lambda: state_of(path)[0] is ProcessState.ABENDED, 10)


@pytest.mark.parametrize("name", VICTIMS)
def test_a_killed_process_resumes_without_loss_or_repetition(
    replication: Replication, name: str, request: pytest.FixtureRequest
) -> None:
    victim, chance = VICTIMS[name], random.Random(name)
    path = replication.home / "dirpcs" / victim.file
    with replication.start_workload(seed=len(name)) as workload:
        try:
            for _ in range(request.config.getoption("--rounds") or 5):
                replication.wait(chance.uniform(0.1, 0.8))
                _kill(replication, victim)
                replication.wait(chance.uniform(0.0, 0.2))
                replication.ggshell("-c", victim.start)
                replication.until(f"{name} runs", lambda: state_of(path)[0] is ProcessState.RUNNING, 30)
            assert workload.poll() is None
        finally:
            workload.terminate()
    replication.wait_for_everything()
    assert replication.differences() == {}
