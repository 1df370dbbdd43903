"""The lag pipeline: percentiles by way and period, hop by hop; worst windows, trends, gaps in heartbeats, clocks.

One pass over the heartbeats gives a line for each way, period and hop, others the gaps; all else is worked out from these few
lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from ggshell.heartbeat.history import PERIODS
from ggshell.heartbeat.offset import Offset, estimate
from ggshell.spark.questions.beats import HOPS, Beats

SHARES: Final = {"p50": 50, "p95": 95, "p99": 99}
"""Percentiles, in percent."""
GAP_FACTOR: Final = 3
"""So many times the usual distance of a way's heartbeats is a gap."""
TREND_PERIODS: Final = 12
_MICRO: Final = 1_000_000
_WAY: Final = "deployment, remote_database, local_database, path"
_THREE_DIGITS: Final = (
    "lag - lag % CASE"
    + "".join(f" WHEN abs(lag) < {10**digits} THEN {10 ** (digits - 3)}" for digits in range(3, 15))
    + f" ELSE {10**12} END"
)
"""SQL of a lag with zeros behind its first three digits."""
_STEPS: Final = """
                 , steps AS (SELECT * FROM (SELECT way, sent, lag(sent) OVER (PARTITION BY way ORDER BY sent) AS earlier
                                               FROM lags) AS every_step WHERE earlier IS NOT NULL)"""
"""From each heartbeat of a way to the next."""


class Way(NamedTuple):
    """A path that heartbeats take, from one database to another, as one deployment knows it."""

    deployment: str
    remote: str
    local: str
    path: str

    def __str__(self) -> str:
        ends = f"{self.remote} to {self.local}" if self.local else f"from {self.remote}"
        return f"{ends}: {self.path}" if self.path else ends


class HopLag(NamedTuple):
    """A hop's lag over a period, in seconds; None where nothing is known."""

    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None
    longest: float | None
    least: float | None


NOTHING: Final = HopLag(None, None, None, None, None, None)


class Window(NamedTuple):
    """A way over a period; ``begin`` in microseconds since 1970."""

    way: Way
    begin: int
    beats: int
    hops: dict[str, HopLag]

    @property
    def total(self) -> HopLag:
        return self.hops["total"]


class Gap(NamedTuple):
    """Where a way had no heartbeat: from one birth to the next, in microseconds since 1970; ``usual`` in seconds."""

    way: Way
    begin: int
    end: int
    usual: float

    @property
    def seconds(self) -> float:
        return (self.end - self.begin) / _MICRO


class Trend(NamedTuple):
    """How a way's lag moves: ``now`` in seconds, ``slope`` in seconds of lag a second, ``caught_up`` in how many seconds it is
    gone if it goes on like this (None: it does not fall)."""

    way: Way
    now: float
    slope: float
    caught_up: float | None


class ClockLead(NamedTuple):
    """By how much a database's clock leads another's, by the quickest heartbeats of both directions."""

    remote: str
    local: str
    offset: Offset


def windows(beats: Beats, period: str) -> list[Window]:
    """A line for each way and period (a name of PERIODS), in order.

    Mean, greatest and least are exact.  A percentile is a lag that was measured, at most 1 % above the exact one: lags are
    counted by their first three digits, so that any number of them needs no more room than there are such numbers.
    """
    length = PERIODS[period] * _MICRO
    cases = " ".join(f"WHEN {number} THEN {hop}_lag" for number, hop in enumerate(HOPS))
    numbers = ", ".join(f"({number})" for number in range(len(HOPS)))
    ranks = ", ".join(
        f"min(CASE WHEN place * 100 >= beats * {share} THEN most END) / 1e6 AS {name}" for name, share in SHARES.items()
    )
    answer = beats.ask(
        "LAG REPORT",
        f"""
                 , hops AS (SELECT way, came - came % {length} AS began, hop, CASE hop {cases} END AS lag
                            FROM lags CROSS JOIN (VALUES {numbers}) AS numbers(hop)),
                 counted AS (SELECT way, began, hop, count(*) AS alike, sum(CAST(lag AS double)) AS together,
                                    min(lag) AS least, max(lag) AS most
                               FROM hops WHERE lag IS NOT NULL GROUP BY way, began, hop, {_THREE_DIGITS}),
                 ranked AS (SELECT *, sum(alike) OVER (PARTITION BY way, began, hop ORDER BY most) AS place,
                                   sum(alike) OVER (PARTITION BY way, began, hop) AS beats FROM counted)""",
        f"""SELECT {_WAY}, began, hop, beats, sum(together) / beats / 1e6 AS mean, {ranks},
                   max(most) / 1e6 AS longest, min(least) / 1e6 AS shortest
              FROM ranked JOIN ways ON ways.way = ranked.way GROUP BY {_WAY}, began, hop, beats""",
    )
    hops: dict[tuple[Way, int], dict[str, HopLag]] = {}
    counts: dict[tuple[Way, int], int] = {}
    for row in answer.rows:
        place, (hop, count, *figures) = (_way(row), row[4]), row[5:]
        hops.setdefault(place, dict.fromkeys(HOPS, NOTHING))[HOPS[hop]] = HopLag(*map(float, figures))
        counts[place] = max(count, counts.get(place, 0))  # each heartbeat has a whole lag, not each has every hop
    return [
        Window(*place, counts[place], of_place) for place, of_place in sorted(hops.items(), key=lambda each: each[0])
    ]


def _way(row: Sequence[str | None]) -> Way:
    return Way(*(text or "" for text in row[:4]))


def gaps(beats: Beats, least: float = 0.0) -> list[Gap]:
    """Where heartbeats were missing: much longer than usual from one to the next, and at least ``least`` seconds."""
    step = "percentile_disc(0.5) WITHIN GROUP (ORDER BY sent - earlier)"
    usual = {
        _way(row): row[4]
        for row in beats.ask(
            "LAG REPORT",
            _STEPS,
            f"SELECT {_WAY}, {step} AS step FROM steps JOIN ways ON ways.way = steps.way GROUP BY {_WAY}",
        ).rows
    }
    if not usual:
        return []
    shortest = max(min(usual.values()) * GAP_FACTOR, round(least * _MICRO))
    rows = beats.ask(
        "LAG REPORT",
        _STEPS,
        f"SELECT {_WAY}, earlier, sent FROM steps JOIN ways ON ways.way = steps.way WHERE sent - earlier > {shortest}",
    ).rows
    found = [Gap(_way(row), row[4], row[5], usual[_way(row)] / _MICRO) for row in rows]
    return sorted(gap for gap in found if gap.seconds > GAP_FACTOR * gap.usual)


def worst(found: Iterable[Window], number: int) -> list[Window]:
    """The windows with the greatest p95 of the whole lag."""
    known = [each for each in found if each.total.p95 is not None]
    return sorted(known, key=lambda each: (-(each.total.p95 or 0.0), each.begin, each.way))[:number]


def trends(found: Iterable[Window], period: str) -> list[Trend]:
    """How each way's mean lag moved over its last periods, by least squares."""
    told = []
    for way, of_way in groupby(found, key=lambda each: each.way):
        points = [(each.begin / _MICRO, each.total.mean) for each in of_way if each.total.mean is not None]
        points = points[-TREND_PERIODS:]
        if not points:
            continue
        now, slope = points[-1][1], _slope(points)
        falls = slope < 0 and now > 0
        told.append(Trend(way, now, slope, now / -slope if falls else None))
    return told


def _slope(points: Sequence[tuple[float, float]]) -> float:
    x, y = (sum(values) / len(points) for values in zip(*points, strict=True))
    spread = sum((at - x) ** 2 for at, _ in points)
    return sum((at - x) * (lag - y) for at, lag in points) / spread if spread else 0.0


def clock_leads(found: Iterable[Window]) -> list[ClockLead]:
    """For each two databases that send each other heartbeats, the first one's lead over the other."""
    least: dict[tuple[str, str], float] = {}
    for each in found:
        pair, value = (each.way.remote, each.way.local), each.total.least
        if value is not None and each.way.local:
            least[pair] = min(value, least.get(pair, value))
    told = []
    for remote, local in sorted(least):
        back = least.get((local, remote))
        offset = estimate([least[remote, local]], [back]) if back is not None and remote < local else None
        if offset is not None:
            told.append(ClockLead(remote, local, offset))
    return told
