"""Lag over time: heartbeats grouped by minute, hour or day, and checked against a service level objective."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import ceil
from typing import NamedTuple

from ggshell.durations import PERIODS
from ggshell.monitoring.heartbeat_lag import PART_NAMES, Lag, Parts

HOPS = (*PART_NAMES, "total")
USUAL_INTERVAL = 60.0
"""The default FREQUENCY of heartbeats, in seconds."""
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

    ``beats``: the heartbeats that arrived; ``within``: those within the limit; ``overdue``: those that have not arrived within
    the limit yet. ``share``: the fraction within the limit. ``budget``: the number of heartbeats that may be late under the
    goal. ``left``: the unused fraction of the budget; negative if more heartbeats were late. ``held``: whether the goal is
    met.
    """

    remote: str
    path: str
    goal: float
    limit: float
    beats: int
    within: int
    overdue: int = 0

    @property
    def due(self) -> int:
        """The heartbeats that should have arrived."""
        return self.beats + self.overdue

    @property
    def late(self) -> int:
        return self.due - self.within

    @property
    def share(self) -> float:
        return self.within / self.due if self.due else 1.0

    @property
    def budget(self) -> float:
        return (1 - self.goal) * self.due

    @property
    def left(self) -> float:
        if not self.budget:
            return 1.0 if not self.late else -float(self.late)
        return 1 - self.late / self.budget

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


def with_overdue(
    found: Iterable[Objective], lags: Iterable[Lag], recent: Iterable[Lag], goal: float, limit: float
) -> list[Objective]:
    """Count the heartbeats that have not arrived: while replication is interrupted, all that arrived can be in time.

    ``lags``: the present state of each path; ``recent``: its last heartbeats, which show how often they are sent.
    """
    known = {(each.remote, each.path): each for each in found}
    sent: dict[tuple[str, str], list[int]] = defaultdict(list)
    for each in recent:
        if each.beat.incoming_heartbeat_ts is not None:
            sent[_way(each)].append(each.beat.incoming_heartbeat_ts)
    for each in lags:
        way, age = _way(each), each.incoming.age
        overdue = int((age - limit) / _interval(sent[way])) if age is not None and age > limit else 0
        if overdue:
            known[way] = known.get(way, Objective(*way, goal, limit, 0, 0))._replace(overdue=overdue)
    return [known[way] for way in sorted(known)]


def _way(lag: Lag) -> tuple[str, str]:
    return str(lag.beat.remote_database), lag.incoming.path


def _interval(sent: Sequence[int]) -> float:
    """Return the usual seconds between heartbeats that were sent at some times (microseconds since 1970)."""
    moments = sorted(set(sent))
    gaps = sorted(later - earlier for earlier, later in pairwise(moments))
    return gaps[len(gaps) // 2] / _MICRO if gaps else USUAL_INTERVAL
