"""How far two databases' clocks are apart, as far as heartbeats can tell, and what that leaves of a lag.

Heartbeats cross in both directions.  With d the remote clock's lead and w1, w2 the true times of the two directions, what
comes in shows w1 - d and what goes out w2 + d.  Neither true time is below zero, so d lies between minus the least lag in
and the least lag out; the middle is the best guess, half the width its error, as in the protocols that set clocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Offset(NamedTuple):
    """The remote clock's lead over the local one, in seconds, give or take ``error``."""

    lead: float
    error: float

    @property
    def certain(self) -> bool:
        """Whether the clocks differ for sure."""
        return abs(self.lead) > self.error


def estimate(incoming: Iterable[float], outgoing: Iterable[float]) -> Offset | None:
    """From the lags shown by heartbeats in and out, in seconds; None unless there are both.

    Lags that no constant difference can explain (their sum is below zero: a clock was set meanwhile) give an error of 0.
    """
    lags_in, lags_out = list(incoming), list(outgoing)
    if not lags_in or not lags_out:
        return None
    least_in, least_out = min(lags_in), min(lags_out)
    return Offset((least_out - least_in) / 2, max(0.0, (least_out + least_in) / 2))


class Bounded(NamedTuple):
    """A lag set right by the clocks' difference: the truth lies within ``error`` of ``seconds``."""

    seconds: float
    error: float


def set_right(shown: float, offset: Offset) -> Bounded:
    """What an incoming lag would be by one clock."""
    return Bounded(shown + offset.lead, offset.error)


def between_clocks(asked: int, answered: int, told: int) -> Offset:
    """A database's lead over this host: ``told`` is its time, asked for and answered at two moments here; microseconds."""
    middle = (asked + answered) / 2
    return Offset((told - middle) / 1e6, (answered - asked) / 2e6)
