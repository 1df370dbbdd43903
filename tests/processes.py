"""Waits for other processes, for tests that start them."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable

from time_limits import Limit

from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessState, state_of

Start = Callable[..., "subprocess.Popen[str]"]


SHORTEST_PAUSE, LONGEST_PAUSE = 0.01, 0.2


def until(what: str, done: Callable[[], bool], seconds: float = 60) -> None:
    """Wait for something that another process does; the limit grows with the machine's load.

    It pauses for twice as long as a check takes: a check that connects or runs a command must not take the core from
    the process that it waits for.
    """
    limit, pause = Limit(seconds), threading.Event()
    begun = time.monotonic()
    while not done():
        assert not limit.has_passed(), f"{what}: not within {seconds} seconds"
        pause.wait(min(max(SHORTEST_PAUSE, 2 * (time.monotonic() - begun)), LONGEST_PAUSE))
        begun = time.monotonic()


def until_state(home: Home, group: str, kind: GroupKind, state: ProcessState, seconds: float = 60) -> None:
    """Wait until a group is in a state, according to its process file and its process."""
    until(f"{group} is {state}", lambda: state_of(home.process(group, kind))[0] is state, seconds)
