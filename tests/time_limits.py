"""How long a test waits before it fails: limits are said for a machine that does nothing else, and grow with what it does."""

from __future__ import annotations

import os
import time


def slowness() -> float:
    """How many tasks share a core of this machine now; 1 at least."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


class Limit:
    """A limit of so many seconds, counted from now."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._begun = time.monotonic()

    def has_passed(self) -> bool:
        return time.monotonic() - self._begun > self._seconds * slowness()
