"""Whether several appliers pay: decided by measuring, because it depends on the target, the line to it, and the load.

One connection applies whole groups of transactions in one target transaction, so it is faster than several appliers wherever
the target answers quickly. Several appliers are faster where each commit takes long. Under load, the process therefore tries
the other way from time to time and keeps the faster one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from ggshell.clock import Clock

MEASURED_SECONDS: Final = 0.5
"""How long a way is measured under load."""
MEASURED_OPERATIONS: Final = 200
MOST_SECONDS: Final = 3.0
"""How long a way is measured that applies fewer operations than ``MEASURED_OPERATIONS``."""
BUSY_SHARE: Final = 0.5
"""Above this share of processor time, this process is the limit, and several appliers cannot be faster."""
GAIN: Final = 1.1
"""How much faster several appliers must be."""
FIRST_TRIAL: Final = 2.0
"""Seconds after the start before several appliers are tried."""
FIRST_PAUSE: Final = 10.0
LONGEST_PAUSE: Final = 600.0
"""Seconds until the other way is tried again; the pause doubles each time that it was not faster."""


class ParallelismChoice:
    """Chooses between one connection and several appliers by their rates under load. Starts with one connection."""

    def __init__(self, clock: Clock, processor_time: Callable[[], float] = time.thread_time, *, several: bool) -> None:
        """``processor_time``: the seconds that the calling thread has used; ``several``: start with several appliers."""
        self._clock = clock
        self._processor_time = processor_time
        self.several = several
        """Whether several appliers are to be used now."""
        self._before: float | None = None
        self._pause = FIRST_PAUSE
        self._next_trial = clock.steady() + FIRST_TRIAL
        self._began: tuple[float, float, int] | None = None

    def idle(self) -> None:
        """Note that everything is applied: rates are measured under load only."""
        self._began = None

    def applied(self, operations: int) -> None:
        """Note how many operations have been applied the way that is in use, and choose the way for what follows."""
        now, used = self._clock.steady(), self._processor_time()
        if self._began is None:
            self._began = now, used, operations
            return
        began, used_before, before = self._began
        seconds, count = now - began, operations - before
        if seconds < MEASURED_SECONDS or (count < MEASURED_OPERATIONS and seconds < MOST_SECONDS):
            return
        self._began = now, used, operations
        if self._wants_change(now, count / seconds, (used - used_before) / seconds):
            self.several = not self.several
            self._began = None

    def _wants_change(self, now: float, rate: float, share: float) -> bool:
        if self._before is not None:
            return self._lost_trial(now, rate)
        if now < self._next_trial or (not self.several and share > BUSY_SHARE):
            return False
        self._before = rate
        return True

    def _lost_trial(self, now: float, rate: float) -> bool:
        """Judge the way that was tried; return whether the earlier one was faster."""
        earlier, self._before = self._before or 0.0, None
        lost = rate < earlier * GAIN if self.several else rate * GAIN < earlier
        self._pause = min(2 * self._pause, LONGEST_PAUSE) if lost else FIRST_PAUSE
        self._next_trial = now + self._pause
        return lost
