"""Log that the source is asked to keep for a while although it is captured, so that lost trails can be made anew from it."""

from __future__ import annotations

from collections import deque

from ggshell.clock import Clock

POINTS = 500


class HeldLog:
    """Gives places free when they are as old as the retention; beginning with what the source holds already.

    What was captured when is known of this run only: after a restart the same places are kept for a whole retention again.
    """

    def __init__(self, retention: float, clock: Clock) -> None:
        """``retention``: seconds; 0 gives every place free at once."""
        self._retention = retention
        self._clock = clock
        self._points: deque[tuple[float, int]] = deque()

    def released(self, place: int) -> int | None:
        """``place`` is captured; up to where the source may forget, None while that is nothing new."""
        if not self._retention:
            return place
        now, points = self._clock.steady(), self._points
        if not points or now - points[-1][0] >= self._retention / POINTS:
            points.append((now, place))
        free: int | None = None
        while points and now - points[0][0] >= self._retention:
            free = points.popleft()[1]
        return free
