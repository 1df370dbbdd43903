"""When the next batch of a stream begins: as late as its oldest rows allow, so that a lake gets few and large files."""

from __future__ import annotations

import math
from typing import Final

from ggshell.clock import Clock

LOOK_SECONDS: Final = 0.25
"""How often Spark looks for new data while no batch runs."""


class BatchTiming:
    """Times the batches of one stream. ``latency``: seconds from a row in the trail to its commit in the target.

    A batch begins when its oldest rows have waited so long that they are committed in time if it takes as long as the last
    one. A full batch begins at once. Each check for new data is one call of ``begins`` or ``nothing``.

    ``interval``: seconds from the beginning of a batch to that of the next, if the next is not full.
    """

    def __init__(self, latency: float, clock: Clock, interval: float = 0) -> None:
        self._latency = latency
        self._interval = interval
        self._next = -math.inf
        """When the next batch begins at the earliest if it is not full."""
        self._clock = clock
        self._looked = -math.inf  # what is there at first may have waited for long
        self._arrived: float | None = None
        """A moment before which no row of the next batch was in the trail."""
        self._begun: float | None = None
        self._taken = 0.0
        """Seconds of the last batch."""

    def begins(self, *, full: bool) -> bool:
        """Whether a batch begins now with the rows that are there. ``full``: they fill one."""
        now = self._now()
        if self._arrived is None:
            self._arrived = self._looked
        self._looked = now
        due = max(self._next, self._arrived + self._latency - LOOK_SECONDS - self._taken)
        if not full and now < due:
            return False
        self._arrived, self._begun, self._next = None, now, now + self._interval
        return True

    def nothing(self) -> None:
        """Note that there are no rows."""
        self._looked = self._now()
        self._arrived = None

    def _now(self) -> float:
        now = self._clock.steady()
        if self._begun is not None:  # Spark looks again after a batch has ended
            self._taken, self._begun = now - self._begun, None
            self._looked = now - self._taken  # rows may have arrived since the batch began
        return now
