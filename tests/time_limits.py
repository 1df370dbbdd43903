"""How long a test waits before it fails: limits are set for an idle machine and grow with its load."""

from __future__ import annotations

import os
import time


def slowness() -> float:
    """The number of tasks that share a core of this machine now; at least 1."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


class Limit:
    """A time limit in seconds, counted from now."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._begun = time.monotonic()

    def has_passed(self) -> bool:
        return time.monotonic() - self._begun > self._seconds * slowness()
