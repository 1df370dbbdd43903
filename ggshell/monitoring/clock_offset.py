"""Estimates the difference between two databases' clocks from heartbeats, and corrects a lag by it.

Heartbeats travel in both directions. Let d be the remote clock's lead and w1, w2 the true times of the two directions.
Incoming heartbeats then show a lag of w1 - d, and outgoing heartbeats show w2 + d. The true times are not negative, so d
is between the negative of the smallest incoming lag and the smallest outgoing lag. The estimate is the middle of that range
and the error is half its width, as in clock synchronization protocols.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Offset(NamedTuple):
    """The remote clock's lead over the local clock, in seconds, plus or minus ``error``."""

    lead: float
    error: float

    @property
    def certain(self) -> bool:
        """Whether the clocks certainly differ."""
        return abs(self.lead) > self.error


def estimate(incoming: Iterable[float], outgoing: Iterable[float]) -> Offset | None:
    """Estimate the offset from the lags of incoming and outgoing heartbeats, in seconds; None unless there are both.

    If no constant offset explains the lags (the smallest ones add up to less than zero: a clock was set), the error is 0.
    """
    lags_in, lags_out = list(incoming), list(outgoing)
    if not lags_in or not lags_out:
        return None
    least_in, least_out = min(lags_in), min(lags_out)
    return Offset((least_out - least_in) / 2, max(0.0, (least_out + least_in) / 2))


class Bounded(NamedTuple):
    """A lag corrected by the clock offset; the true value is within ``error`` of ``seconds``."""

    seconds: float
    error: float


def set_right(shown: float, offset: Offset) -> Bounded:
    """Correct an incoming lag by the clock offset."""
    return Bounded(shown + offset.lead, offset.error)


def between_clocks(asked: int, answered: int, told: int) -> Offset:
    """Return the lead of a database's clock over this host's clock.

    ``told`` is the database's time; ``asked`` and ``answered`` are this host's times before and after the query. All are in
    microseconds.
    """
    middle = (asked + answered) / 2
    return Offset((told - middle) / 1e6, (answered - asked) / 2e6)
