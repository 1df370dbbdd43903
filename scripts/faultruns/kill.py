"""kill -9 of any process at any moment: of one, of several, of all at once; then START."""

from __future__ import annotations

import contextlib
import os
import random
import signal

from benches.ground import wait_until

from faultruns.chain import MEMBERS, Chain
from ggshell.home.process_file import ProcessState, read_process_file

LONGEST_WAIT = 0.5
_ALL = 0.1


MARIADB = True


def missing() -> str:
    """Every machine can kill."""
    return ""


def prepare(ground: Chain) -> None:
    """Nothing is needed."""


def spoil(ground: Chain, rounds: int, seed: int) -> None:
    """A round: the load goes on for a moment, victims die, a moment passes, they start again. Raises Failed."""
    chance = random.Random(f"kill {seed}")
    names = list(MEMBERS)
    for _ in range(rounds):
        ground.wait(chance.uniform(0.0, LONGEST_WAIT))
        victims = names if chance.random() < _ALL else chance.sample(names, chance.choice((1, 1, 2)))
        for name in victims:
            _kill(ground, name)
        ground.wait(chance.uniform(0.0, LONGEST_WAIT / 4))
        ground.start("Manager", *victims)
    ground.start(*names)


def _kill(ground: Chain, name: str) -> None:
    entry = read_process_file(ground.path(name))
    if entry is not None:
        with contextlib.suppress(ProcessLookupError):  # Manager may be late to see what died before
            os.kill(entry.pid, signal.SIGKILL)
    wait_until(f"{name} is seen dead", lambda: ground.state(name) is not ProcessState.RUNNING, seconds=10, every=0.01)
