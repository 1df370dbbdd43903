"""How long to wait before the next try when a database is away."""

from __future__ import annotations

FIRST_SECONDS = 0.25
LONGEST_SECONDS = 30.0


class Backoff:
    """Doubling pauses from a quarter of a second to half a minute; a success begins anew."""

    def __init__(self) -> None:
        self._pause = FIRST_SECONDS
        self.attempts = 0

    def next(self) -> float:
        """Seconds to wait before the next try."""
        pause, self._pause = self._pause, min(self._pause * 2, LONGEST_SECONDS)
        self.attempts += 1
        return pause

    def reset(self) -> None:
        self._pause = FIRST_SECONDS
        self.attempts = 0
