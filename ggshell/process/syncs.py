"""When to make durable what was written: a lone transaction at once, a steady stream now and then."""

from __future__ import annotations

FLUSH_PAUSE = 0.002
"""Under a steady stream one sync serves at least what comes within this time (seconds)."""
STREAM_FACTOR = 4


class Syncs:
    """A trail's syncs, as one process makes them.

    While more comes, syncs take no more than a fifth of the time; where nothing comes, they may follow each other after as
    long as the last one took, so that one that was slow serves what came meanwhile.
    """

    def __init__(self) -> None:
        self._done = self._took = 0.0

    def pause(self, now: float, *, quiet: bool) -> float:
        """Seconds until a sync is due."""
        wait = min(self._took, FLUSH_PAUSE) if quiet else max(FLUSH_PAUSE, STREAM_FACTOR * self._took)
        return max(0.0, self._done + wait - now)

    def ended(self, began: float, now: float) -> None:
        """A sync was made between these moments."""
        self._done, self._took = now, now - began
