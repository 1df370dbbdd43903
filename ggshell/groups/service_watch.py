"""Manager's supervision of the service: AUTOSTART SERVICE, and the restart of a service that ended without STOP SERVICE.

Each further attempt follows after a longer time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ggshell.clock import Clock
from ggshell.errors import GgsError
from ggshell.groups.control import wait_readable
from ggshell.groups.launch import READY_SECONDS, Launch
from ggshell.home.events import Severity
from ggshell.home.home import Home
from ggshell.home.process_file import ALIVE, ProcessState, state_of

FIRST_WAIT_SECONDS: Final = 1.0
LONGEST_WAIT_SECONDS: Final = 60.0
STABLE_SECONDS: Final = 600.0
"""After this time without a failure, the next restart is immediate again."""
Event = Callable[[Severity, str, str], None]


class ServiceWatch:
    """Watches the service of a home. ``check`` never waits."""

    def __init__(self, home: Home, clock: Clock, event: Event) -> None:
        self._home = home
        self._clock = clock
        self._event = event
        self._launch: Launch | None = None
        self._began = 0.0
        self._due = 0.0
        self._wait = FIRST_WAIT_SECONDS
        self._wanted = False

    def autostart(self) -> None:
        """Let ``check`` start the service, and try again until it runs."""
        self._wanted = True

    def check(self) -> None:
        """Start the service if it failed or AUTOSTART requires it, and the waiting time has passed."""
        if self._launch is not None:
            self._settle(self._launch)
            return
        state, now = state_of(self._home.service)[0], self._clock.steady()
        if state in ALIVE:
            self._wanted = False
        elif now >= self._due and (state is ProcessState.ABENDED or self._wanted):
            self._start(now, failed=state is ProcessState.ABENDED)

    def _start(self, now: float, *, failed: bool) -> None:
        self._wait = FIRST_WAIT_SECONDS if now - self._due > STABLE_SECONDS else self._wait
        self._due = now + self._wait
        self._wait = min(2 * self._wait, LONGEST_WAIT_SECONDS)
        if failed:
            self._event(Severity.WARNING, "GGS-00917", "The service ended without STOP SERVICE and is restarted.")
        try:
            self._launch, self._began = Launch(self._home, "service"), now
        except GgsError as error:
            self._event(Severity.ERROR, error.code, f"The service was not started: {error}")

    def _settle(self, launch: Launch) -> None:
        ready = bool(wait_readable([launch.fileno()], 0))
        if not ready and self._clock.steady() - self._began < READY_SECONDS:
            return
        self._launch = None
        try:
            launch.finish(ready=ready).returncode = 0  # the service outlives Manager
        except GgsError as error:
            self._event(Severity.ERROR, error.code, f"The service was not started: {error}")
