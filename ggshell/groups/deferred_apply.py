"""DEFERAPPLYINTERVAL: a Replicat applies each transaction a fixed time after its commit at the source."""

from __future__ import annotations

from collections.abc import Callable

from ggshell.clock import Clock, local_text
from ggshell.record.change import ChangeBatch


class DeferredApply:
    """Holds transactions back until they are old enough. The trail's order is kept: those after a held one wait too."""

    def __init__(self, clock: Clock, seconds: float, ahead: Callable[[], int] = lambda: 0) -> None:
        """``seconds``: the age at which a transaction is applied; 0: as soon as it arrives.

        ``ahead`` returns how far this process's clock is known to be ahead, in microseconds.
        """
        self._clock = clock
        self._ahead = ahead
        self._delay = round(seconds * 1e6)
        self._held: ChangeBatch | None = None
        self._due = 0
        """The time by this process's clock at which the first held transaction is applied, in microseconds."""

    def read(self, read: Callable[[], ChangeBatch | None]) -> ChangeBatch | None:
        """Return the transactions that are due, of the held batch or else of the next one that ``read`` returns."""
        batch, self._held = (read() if self._held is None else self._held), None
        if batch is None or not self._delay:
            return batch
        now, later = self._clock.now(), self._delay + self._ahead()
        for number, piece in enumerate(batch.pieces):
            if piece.header.commit_time + later > now:
                self._due = piece.header.commit_time + later
                self._held = batch.from_piece(number)
                return batch.until_piece(number) if number else None
        return batch

    @property
    def holds(self) -> bool:
        """Whether transactions were read that are not due yet."""
        return self._held is not None

    def pause(self, seconds: float) -> float:
        """Return how long the group may wait for input: some seconds, or less if a transaction is due earlier."""
        return seconds if self._held is None else min(seconds, max(0.0, (self._due - self._clock.now()) / 1e6))

    def status(self, otherwise: str) -> str:
        """Return the status to show: what the group waits for, or the given one if it holds no transaction."""
        if self._held is None:
            return otherwise
        return f"Deferring: the next transaction is applied at {local_text(self._due)} (DEFERAPPLYINTERVAL)"

    def forget(self) -> None:
        """Release the held transactions: the session has ended, and the next one reads them again."""
        self._held = None
