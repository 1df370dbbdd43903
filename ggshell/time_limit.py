"""The time limit of a request or statement: how long a database may take to answer, and when its client has disconnected.

The code that carries out the request checks the limit while it waits; any other thread can end it.
"""

from __future__ import annotations

import math
import threading
from typing import Final

from ggshell.clock import Clock

RETRY_SECONDS: Final = 3.0
"""How long each further wait may take after a database did not answer: enough to undo changes, if it answers again."""


class TimeLimit:
    """A limit for one piece of work. ``silence``: seconds that a database may leave a statement without an answer.

    ``seconds``: how long the whole work may take from now on. Both are unlimited by default. Any thread can use it.
    """

    def __init__(self, clock: Clock, silence: float = math.inf, seconds: float = math.inf) -> None:
        self._clock = clock
        self._over = threading.Event()
        self._end = clock.steady() + seconds
        self._silence = silence

    @property
    def ended(self) -> bool:
        """Whether the work is to stop."""
        return self._over.is_set() or self._clock.steady() >= self._end

    def end(self) -> None:
        """End the work, because its client has disconnected."""
        self._over.set()

    def renew(self, seconds: float) -> None:
        """The work may take so many seconds from now on, unless it has ended."""
        self._end = self._clock.steady() + seconds

    def begin(self) -> None:
        """Begin the next piece of work, with no limit for the whole of it."""
        self._end = math.inf
        self._over.clear()

    def pause(self, seconds: float) -> bool:
        """Wait; return whether the work is to stop, which also ends the wait."""
        self._over.wait(max(0.0, min(seconds, self._end - self._clock.steady())))
        return self.ended

    def now(self) -> float:
        """The moment from which ``refusal`` measures, in seconds."""
        return self._clock.steady()

    def left(self, seconds: float) -> float:
        """Return for how many of so many seconds a new wait may last."""
        return max(0.0, min(seconds, self._silence, self._end - self._clock.steady()))

    def refusal(self, since: float) -> str:
        """Return why a wait for a database that began at a moment ends now, empty if it may continue.

        After a database was silent for too long, the next waits are short.
        """
        if self._over.is_set():
            return "the statement was canceled because its client disconnected"
        now = self._clock.steady()
        if now >= self._end:
            return "it did not answer within the time limit of the request"
        if now - since < self._silence:
            return ""
        silence, self._silence = self._silence, min(self._silence, RETRY_SECONDS)
        return f"it did not answer within {silence:g} seconds"
