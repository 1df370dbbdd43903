"""Log retention: captured positions of the log that the source may not release yet (CHECKPOINTRETENTIONTIME)."""

from __future__ import annotations

from collections import deque

from ggshell.clock import Clock

POINTS = 500
"""Positions kept in memory for one retention time."""


class HeldLog:
    """Releases log positions once they are older than the retention time.

    Capture times are known only for the current run: after a restart, the same positions are kept for the full retention
    again.
    """

    def __init__(self, retention: float, clock: Clock) -> None:
        """``retention``: in seconds; 0 releases every position at once."""
        self._retention = retention
        self._clock = clock
        self._points: deque[tuple[float, int]] = deque()

    def released(self, place: int) -> int | None:
        """Record that ``place`` is captured; return the position that the source may now release up to, or None."""
        if not self._retention:
            return place
        now, points = self._clock.steady(), self._points
        if not points or now - points[-1][0] >= self._retention / POINTS:
            points.append((now, place))
        free: int | None = None
        while points and now - points[0][0] >= self._retention:
            free = points.popleft()[1]
        return free
