"""LAGSTATS: the share of changes that were delivered within given times, calculated from commit times."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ggshell.durations import DAY, HOUR, MICROSECONDS, MINUTE
from ggshell.parameters.lines import Parameter
from ggshell.types import Csn

if TYPE_CHECKING:
    from ggshell.record.change import ChangeBatch

_UNITS = {"msecs": 1000, "csecs": 10_000, "seconds": MICROSECONDS, "minutes": MINUTE * MICROSECONDS}
_UNITS |= {"hours": HOUR * MICROSECONDS, "days": DAY * MICROSECONDS}

_THRESHOLD = re.compile(rf"(?i)\bTHRESHOLD({'|'.join(_UNITS)})\s+(\d+)")


class LagStats:
    """Counts changes by the time from the commit at the source to the commit at the target.

    ``limits``: in microseconds. A change counts when it is committed. Changes that are read again after a lost connection
    count once.
    """

    def __init__(self, limits: Sequence[int]) -> None:
        self._limits = tuple(sorted(set(limits)))
        self._delivered = 0
        self._within = dict.fromkeys(self._limits, 0)
        self._waiting: deque[tuple[Csn, int, int]] = deque()

    def fed(self, batch: ChangeBatch) -> None:
        """Record changes that are passed to the delivery."""
        self._waiting.extend((piece.header.csn, piece.header.commit_time, piece.count) for piece in batch.pieces)

    def applied(self, csn: Csn | None, now: int) -> None:
        """Count the changes up to a commit as delivered; ``now`` in microseconds since 1970."""
        waiting = self._waiting
        while csn is not None and waiting and waiting[0][0] <= csn:
            _, commit_time, count = waiting.popleft()
            self._delivered += count
            for limit in self._limits:
                if now - commit_time <= limit:
                    self._within[limit] += count

    def forget(self) -> None:
        """Forget the changes in delivery, because the trail is read again after the last applied transaction."""
        self._waiting.clear()

    def snapshot(self) -> list[dict[str, Any]]:
        """Return plain data: each limit in milliseconds, the number of changes, and the number within the limit."""
        return [
            {"limit_ms": limit // 1000, "changes": self._delivered, "within": within}
            for limit, within in self._within.items()
        ]


def delivered_lines(snapshot: Iterable[dict[str, Any]]) -> list[str]:
    """Format a snapshot as lines of text."""
    return [
        f"Delivered within {each['limit_ms']} ms: {each['within'] / each['changes']:.2%} of {each['changes']} changes"
        for each in snapshot
        if each["changes"]
    ]


def lag_stats(parameters: Iterable[Parameter]) -> LagStats | None:
    """Return the statistics that LAGSTATS THRESHOLD... specifies, or None without a threshold."""
    limits = [
        int(number) * _UNITS[unit.lower()]
        for item in parameters
        if item.name == "LAGSTATS"
        for unit, number in _THRESHOLD.findall(item.text)
    ]
    return LagStats(limits) if limits else None
