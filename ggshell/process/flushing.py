"""When Extract syncs its trails: at once for few rows, seldom in a flood.

A sync costs about the same whatever it covers.  So a lone transaction is synced when nothing follows it, and of a flood as
much goes together as keeps the syncs to a small share of the time.
"""

from __future__ import annotations

from ggshell.clock import Clock

FLOOD_ROWS = 256
"""From so many rows since the last sync on, it is a flood."""
SHARE = 0.05
SHORTEST, LONGEST = 0.002, 0.1
"""Seconds between two syncs in a flood, at least and at most."""


class Flushing:
    """Counts rows and times syncs."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rows = 0
        self._due = clock.steady()

    @property
    def dirty(self) -> bool:
        """Whether rows wait for a sync."""
        return self._rows > 0

    def wrote(self, rows: int) -> None:
        """Rows were written."""
        self._rows += rows

    def is_due(self, *, idle: bool) -> bool:
        """Whether to sync now; ``idle``: nothing follows at this moment."""
        if not self._rows:
            return False
        return self._clock.steady() >= self._due or (idle and self._rows < FLOOD_ROWS)

    def flushed(self, began: float) -> None:
        """A sync that began at this (steady) moment is done."""
        now = self._clock.steady()
        self._rows = 0
        self._due = now + min(LONGEST, max(SHORTEST, (now - began) / SHARE))

    def seconds_left(self) -> float:
        """How long the rows that wait may wait for more."""
        return max(0.0, self._due - self._clock.steady())
