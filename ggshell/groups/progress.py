"""The progress of a process since its last checkpoint, from which LAG, STATUS and INFO get their values,
and the last transactions that a group finished, as its checkpoint file stores them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ggshell.clock import Clock
from ggshell.home.checkpoint import Checkpoint, GroupOptions
from ggshell.record.transaction import Completed
from ggshell.types import Csn, TrailPosition

STALLED_SECONDS = 1.0
"""Seconds that a record may wait while none is processed before the reason is looked for."""


class Standing(NamedTuple):
    """The state that the worker publishes. It is replaced as a whole, so any thread can read it.

    ``record_time``: the commit time of the last record processed. ``caught_up``: the last time at which no input was left.
    ``last_lag``: the lag of the last record, in seconds. ``waits``: the commit time of the oldest record that was read but
    not processed, 0 if there is none. ``moved``: the monotonic time when ``waits`` last changed.
    """

    record_time: int
    caught_up: int
    at_end: bool = False
    last_lag: float | None = None
    waits: int = 0
    moved: float = 0.0


class ReadingProgress:
    """Tracks the last record's time, the last time at which no input was left, and the waiting records.

    Record times are the source's. ``ahead`` returns how far this process's clock is known to be ahead, in microseconds.
    """

    def __init__(self, clock: Clock, record_time: int, caught_up: int, ahead: Callable[[], int] = lambda: 0) -> None:
        self._clock = clock
        self._ahead = ahead
        self.standing = Standing(record_time, caught_up)

    @property
    def record_time(self) -> int:
        return self.standing.record_time

    @property
    def caught_up(self) -> int:
        return self.standing.caught_up

    @property
    def at_end(self) -> bool:
        return self.standing.at_end

    def processed(self, record_time: int) -> None:
        """Record that a record with this commit time was just processed."""
        lag = (self._clock.now() - self._ahead() - record_time) / 1e6
        self.standing = self.standing._replace(record_time=record_time, last_lag=lag, at_end=False)

    def taken(self, record_time: int) -> None:
        """Record that a record with this commit time was read and is being processed."""
        if not self.standing.waits:
            self.waits(record_time)

    def waits(self, record_time: int) -> None:
        """Set the commit time of the oldest waiting record; 0 if none waits."""
        if record_time != self.standing.waits:
            self.standing = self.standing._replace(waits=record_time, moved=self._clock.steady())

    def reached_end(self, at: int | None = None) -> None:
        """Record that no input is left, now or at the given time."""
        caught_up = max(self.caught_up, at if at is not None else self._clock.now())
        self.standing = self.standing._replace(caught_up=caught_up, at_end=True, waits=0)

    def behind(self) -> None:
        """Record that there is input that was not read yet."""
        if self.standing.at_end:
            self.standing = self.standing._replace(at_end=False)

    def stalled(self) -> bool:
        """Whether a record has waited for ``STALLED_SECONDS`` while none was processed. Any thread can call this."""
        found = self.standing
        return bool(found.waits) and self._clock.steady() - found.moved >= STALLED_SECONDS

    @property
    def reading(self) -> str:
        """The state of a trail reader, as STATUS shows it."""
        return "At EOF" if self.at_end else "Processing data"

    def read_answer(self, trail: str, place: TrailPosition) -> dict[str, Any]:
        """Return the read position in a trail, as part of the answer to STATUS."""
        return {"trail": trail, "seqno": place.seqno, "rba": place.rba, "timestamp": self.record_time}

    def lag_answer(self, *, busy: bool = False) -> dict[str, Any]:
        """Return the answer to GETLAG: the lag in seconds (None before the first record), and whether the end is reached.

        The lag is the age of the oldest waiting record. If that is unknown but input is left, or if the worker is ``busy``,
        it is the time since everything was processed. At the end, it is the lag of the last record. Any thread can call
        this.
        """
        found, now = self.standing, self._clock.now()
        at_end = found.at_end and not busy and not found.waits
        if at_end or (found.last_lag is None and not found.waits):
            lag = found.last_lag
        else:
            since = found.waits or max(found.record_time, found.caught_up - self._ahead())
            lag = (now - self._ahead() - since) / 1e6
        return {"lag_seconds": lag, "at_eof": at_end, "now": now}


def completed_of(checkpoint: Checkpoint) -> Completed | None:
    """Return the last transactions in a checkpoint, or None before the first."""
    if not checkpoint.latest_csn:
        return None
    xids = checkpoint.options.completed or (checkpoint.latest_xid,)
    return Completed(Csn.parse(checkpoint.latest_csn), frozenset(xids))


def with_completed(options: GroupOptions, last: Completed | None) -> GroupOptions:
    """Return a checkpoint's options with the last transactions; None: no further ones."""
    return options if last is None else options._replace(completed=tuple(sorted(last.xids or ())))


def without_completed(checkpoint: Checkpoint) -> Checkpoint:
    """Return the checkpoint without its last transactions, for a group that is moved to another position.

    The group's trails still record what they contain.
    """
    return checkpoint._replace(latest_csn="", latest_xid="", options=checkpoint.options._replace(completed=()))


def moved_in_trail(checkpoint: Checkpoint, place: TrailPosition) -> Checkpoint:
    """Return the checkpoint of a group that is moved to another position of the trail that it reads.

    If it goes back, its own trails may be shorter than it has written them, for example after a restore: what they lack is
    written again.
    """
    found, before = without_completed(checkpoint), checkpoint.read.current
    if isinstance(before, TrailPosition) and place < before:
        return found._replace(write=tuple(each._replace(current=TrailPosition(0, 0)) for each in found.write))
    return found
