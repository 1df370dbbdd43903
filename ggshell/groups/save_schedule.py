"""When a process saves its checkpoint: at intervals while it works, and sooner if it waits for input."""

from __future__ import annotations

from ggshell.clock import Clock

IDLE_SECONDS = 1.0
"""The longest time in seconds that a process waits for input, and that its last work remains unsaved."""


class SaveSchedule:
    """The next time at which a session saves its checkpoint. The first save is due at once.

    Times are those of ``Clock.steady``, in seconds.
    """

    def __init__(self, clock: Clock, interval: float) -> None:
        """``interval``: seconds between two saves while input arrives."""
        self._interval = interval
        self._next = clock.steady()
        self.unsaved = True
        """Whether work was done that no checkpoint contains."""

    def worked(self) -> None:
        """Record that the process has read or applied more than the last checkpoint contains."""
        self.unsaved = True

    def is_due(self, now: float) -> bool:
        return now >= self._next

    def taken(self) -> None:
        """Record that a checkpoint of all work until now exists, which may not be written yet."""
        self.unsaved = False

    def saved(self, now: float) -> None:
        """Record that the checkpoint is written; ``now``: when it was due."""
        self._next = now + self._interval

    def hasten(self, now: float) -> None:
        """Save unsaved work soon, because there is no further input."""
        if self.unsaved:
            self._next = min(self._next, now + IDLE_SECONDS)

    def pause(self, now: float) -> float:
        """Return for how many seconds the process may wait for input."""
        return min(IDLE_SECONDS, max(0.0, self._next - now))
