"""A recovery under way: how much of the log has been read again, how much is left, and the time that will take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ggshell.capture.bounded.plan import Kind, Plan
from ggshell.clock import Clock


class Recovering:
    """From the place where reading begins to the one that it had reached before (``target``: position and time)."""

    def __init__(self, plan: Plan, begin_time: int, target: tuple[int, int], clock: Clock, started: float) -> None:
        """``started``: when it began by the steady clock; restoring counts to it.  ``until``: the target's position."""
        self.plan = plan
        self._begin_time = begin_time
        self.until, self._target_time = target
        self._clock = clock
        self._started = started
        self._seconds = 0.0
        self._bytes = 0
        self._fraction = 0.0
        self.complete = plan.position >= self.until

    def look(self, position: int, time: int, bytes_read: int) -> bool:
        """Note how far reading came; True when this completes the recovery."""
        if self.complete:
            return False
        self._bytes = bytes_read
        self._seconds = self._clock.steady() - self._started
        span = self._target_time - self._begin_time
        self._fraction = min(max((time - self._begin_time) / span, 0.0), 1.0) if span > 0 and time else 0.0
        self.complete = position >= self.until
        return self.complete

    def facts(self) -> Mapping[str, Any]:
        """For STATUS, INFO and the report: ``left_bytes`` and ``left_seconds`` are None while nothing can be said."""
        known = self._fraction > 0
        rest = (1 - self._fraction) / self._fraction if known else 0.0
        return {
            "kind": str(self.plan.kind),
            "bounded": self.plan.kind is Kind.BOUNDED,
            "reason": self.plan.reason,
            "complete": self.complete,
            "percent": 100 if self.complete else round(100 * self._fraction),
            "bytes": self._bytes,
            "seconds": self._seconds,
            "left_bytes": 0 if self.complete else round(self._bytes * rest) if known else None,
            "left_seconds": 0 if self.complete else self._seconds * rest if known else None,
        }

    def words(self) -> str:
        """The same as a line."""
        facts = self.facts()
        text = (
            f"{facts['kind']} ({facts['reason']}), {facts['percent']} % of the log read again, {facts['bytes']:,} bytes"
        )
        if facts["left_seconds"]:
            text += f"; about {facts['left_bytes']:,} bytes and {facts['left_seconds']:.0f} seconds left"
        return text
