"""Where a process stands between its source and its last checkpoint: what LAG, STATUS and INFO are made of."""

from __future__ import annotations

from typing import Any

from ggshell.clock import Clock
from ggshell.types import TrailPosition


class Progress:
    """The last record's time, and the last moment at which no input was left."""

    def __init__(self, clock: Clock, record_time: int, caught_up: int) -> None:
        self._clock = clock
        self.record_time = record_time
        self.caught_up = caught_up
        self.at_end = False
        self._lag: float | None = None

    def processed(self, record_time: int) -> None:
        """A record with this commit time was handled just now."""
        self.record_time = record_time
        self._lag = (self._clock.now() - record_time) / 1e6
        self.at_end = False

    def reached_end(self, at: int | None = None) -> None:
        """No input is left, now or at the moment given."""
        self.caught_up = max(self.caught_up, at if at is not None else self._clock.now())
        self.at_end = True

    def behind(self) -> None:
        """There is input that was not read yet."""
        self.at_end = False

    @property
    def reading(self) -> str:
        """What a reader of a trail does, in STATUS's words."""
        return "At EOF" if self.at_end else "Processing data"

    def read_answer(self, trail: str, place: TrailPosition) -> dict[str, Any]:
        """Where reading stands in a trail, as a part of the answer to STATUS."""
        return {"trail": trail, "seqno": place.seqno, "rba": place.rba, "timestamp": self.record_time}

    def lag_answer(self) -> dict[str, Any]:
        """The answer to GETLAG: seconds of the last record's lag (None before the first), whether the end is reached.

        While input waits that was not read, the lag is the age of the last record, and grows.
        """
        if self.at_end or self._lag is None:
            return {"lag_seconds": self._lag, "at_eof": self.at_end}
        return {"lag_seconds": (self._clock.now() - self.record_time) / 1e6, "at_eof": False}
