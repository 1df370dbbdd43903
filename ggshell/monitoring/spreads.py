"""Lag over time: heartbeats grouped by minute, hour or day, and checked against a service level objective."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import ceil
from typing import NamedTuple

from ggshell.durations import PERIODS
from ggshell.monitoring.heartbeat_lag import PART_NAMES, Parts

HOPS = (*PART_NAMES, "total")
_MICRO = 1_000_000


class Arrival(NamedTuple):
    """A received heartbeat; ``received`` in microseconds since 1970."""

    remote: str
    path: str
    received: int
    parts: Parts


class Spread(NamedTuple):
    """The distribution of one hop's lag in a period, in seconds; ``begin`` in microseconds since 1970."""

    begin: int
    remote: str
    path: str
    hop: str
    beats: int
    p50: float
    p95: float
    p99: float
    longest: float


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the nearest-rank percentile: the smallest value that is not exceeded by at least ``share`` of the values.

    ``ordered``: the values in ascending order, at least one.
    """
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


def spreads(arrivals: Iterable[Arrival], period: str) -> list[Spread]:
    """Return the number of heartbeats and their percentiles for each period (UTC), path and hop."""
    length = PERIODS[period] * _MICRO
    gathered: dict[tuple[int, str, str], list[Parts]] = defaultdict(list)
    for each in arrivals:
        gathered[each.received // length * length, each.remote, each.path].append(each.parts)
    found: list[Spread] = []
    for (begin, remote, path), parts in sorted(gathered.items()):
        for place, hop in enumerate(HOPS):
            values = [part.total if hop == "total" else part[place] for part in parts]
            known = sorted(value for value in values if value is not None)
            if known:
                ranks = (percentile(known, 0.5), percentile(known, 0.95), percentile(known, 0.99), known[-1])
                found.append(Spread(begin, remote, path, hop, len(known), *ranks))
    return found


class Objective(NamedTuple):
    """A service level objective and its result.

    ``share``: the fraction of heartbeats within the limit. ``budget``: the number of heartbeats that may be late under the
    goal. ``left``: the unused fraction of the budget; negative if more heartbeats were late. ``held``: whether the goal is
    met.
    """

    remote: str
    path: str
    goal: float
    limit: float
    beats: int
    within: int

    @property
    def share(self) -> float:
        return self.within / self.beats if self.beats else 1.0

    @property
    def budget(self) -> float:
        return (1 - self.goal) * self.beats

    @property
    def left(self) -> float:
        late = self.beats - self.within
        if not self.budget:
            return 1.0 if not late else -float(late)
        return 1 - late / self.budget

    @property
    def held(self) -> bool:
        return self.share >= self.goal


def objectives(arrivals: Iterable[Arrival], goal: float, limit: float) -> list[Objective]:
    """Check each path against an objective: a fraction ``goal`` (0 to 1) of its heartbeats within ``limit`` seconds."""
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for each in arrivals:
        total = each.parts.total
        if total is not None:
            counts[each.remote, each.path][0] += 1
            counts[each.remote, each.path][1] += total <= limit
    return [Objective(*way, goal, limit, count, within) for way, (count, within) in sorted(counts.items())]
