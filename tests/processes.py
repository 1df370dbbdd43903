"""Waiting for what other processes do, for tests that start them."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable

from ggshell.process.state import ProcessState, state_of
from ggshell.store.checkpoint import GroupType
from ggshell.store.home import Home

Start = Callable[..., "subprocess.Popen[str]"]


def until(what: str, done: Callable[[], bool], seconds: float = 60) -> None:
    """Wait for something that another process does; the limit is for a machine that does much else."""
    limit, pause = time.monotonic() + seconds, threading.Event()
    while not done():
        assert time.monotonic() < limit, f"{what}: not within {seconds} seconds"
        pause.wait(0.01)


def until_state(home: Home, group: str, kind: GroupType, state: ProcessState, seconds: float = 60) -> None:
    """Wait until a group's process file says, truly, that it is in a state."""
    until(f"{group} is {state}", lambda: state_of(home.process(group, kind))[0] is state, seconds)
