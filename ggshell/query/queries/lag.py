"""The lag report: percentiles by path, period and hop; worst windows, trends, gaps in heartbeats, clock offsets.

One pass over the heartbeats returns a row per path, period and hop, further passes return the gaps. Everything else is
computed from these few rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final, NamedTuple

import pyarrow as pa

from ggshell.durations import DAY, PERIODS
from ggshell.monitoring.clock_offset import Offset, estimate
from ggshell.query.queries.heartbeats import HOPS, Heartbeats
from ggshell.query.views import PARTS

MOST_PERIODS: Final = 1500
"""The most periods that a chart can show, for example a day by minute; the page uses the finest period that fits."""
SHARES: Final = {"p50": 50, "p95": 95, "p99": 99}
"""Percentiles, in percent."""
GAP_FACTOR: Final = 3
"""A gap is this many times the usual interval between heartbeats of a path."""
GAP_LOOK_BACK: Final = DAY
"""How many seconds before a time range heartbeats are read: a gap at its beginning has its first heartbeat there."""
TREND_PERIODS: Final = 12
TURN: Final = 0.1
"""The lag has a turning point if up to three lines leave less than this share of the squared error of a single line."""
_NOISE: Final = 1e-6
"""In squared seconds: a deviation of a millisecond is not a turning point."""
LEAST_FORECAST: Final = 1.0
"""The lag in seconds from which a catch-up time is forecast: smaller lag comes and goes."""
_MICRO: Final = 1_000_000
_WAY: Final = "deployment, remote_database, local_database, path"
_NAMES: Final = [(name, pa.string()) for name in _WAY.split(", ")]
_COUNTED: Final = pa.schema(
    [
        *_NAMES,
        *[("began", pa.int64()), ("hop", pa.int32()), ("alike", pa.int64()), ("together", pa.float64())],
        *[("least", pa.int64()), ("most", pa.int64())],
    ]
)
_STEPPED: Final = pa.schema(
    [("series", pa.string()), *_NAMES, *((name, pa.int64()) for name in ("earlier", "sent", "most", "alike", "came"))]
)
_STEPS: Final = """
        steps AS (SELECT *, sent - earlier AS step
                    FROM (SELECT way, sent, lag(sent) OVER (PARTITION BY way ORDER BY sent) AS earlier FROM lags)
                   WHERE earlier IS NOT NULL)"""
"""The step from each heartbeat of a path to the next one of the same slice."""
_EDGES: Final = f"""
        SELECT series, {_WAY}, min(sent) AS earlier, max(sent) AS sent, NULL AS most, NULL AS alike,
               max(came) AS came
          FROM lags JOIN ways USING (way) GROUP BY series, {_WAY}"""
"""The first and the last heartbeat of each path in a slice, and the last arrival."""
_BETWEEN: Final = f"""
        SELECT * FROM (SELECT {_WAY}, lag(sent) OVER (PARTITION BY series ORDER BY earlier) AS earlier, earlier AS sent
                         FROM {PARTS} WHERE most IS NULL AND alike IS NULL) AS edges
         WHERE earlier IS NOT NULL"""
"""The step from the last heartbeat of a slice to the first of a later slice of the same source."""


def _three_digits(value: str) -> str:
    """SQL for a number rounded down to its first three digits."""
    cases = "".join(f" WHEN abs({value}) < {10**digits} THEN {10 ** (digits - 3)}" for digits in range(3, 15))
    return f"{value} - {value} % CASE{cases} ELSE {10**12} END"


def _ranked(keys: str, counts: str, *sums: str) -> str:
    """SQL of ``ranked``: values (``most``) grouped to three digits, with their frequency (``alike``) and ``sums``.

    ``beats`` is the count per key; ``place`` is the running count up to a row.
    """
    columns = ", ".join(["max(most) AS most", "sum(alike) AS alike", *sums])
    return f"""
             merged AS (SELECT {keys}, {columns} FROM {counts} GROUP BY {keys}, {_three_digits("most")}),
             ranked AS (SELECT *, sum(alike) OVER (PARTITION BY {keys} ORDER BY most) AS place,
                               sum(alike) OVER (PARTITION BY {keys}) AS beats FROM merged)"""


def _percentile(share: int) -> str:
    """SQL for a percentile: the smallest value in ``ranked`` that at least this percentage does not exceed."""
    return f"min(CASE WHEN place * 100 >= beats * {share} THEN most END)"


class LagPath(NamedTuple):
    """A path that heartbeats take from one database to another, as one deployment sees it."""

    deployment: str
    remote: str
    local: str
    path: str

    def __str__(self) -> str:
        ends = f"{self.remote} to {self.local}" if self.local else f"from {self.remote}"
        return f"{ends}: {self.path}" if self.path else ends


class HopLag(NamedTuple):
    """The lag of a hop over a period, in seconds; None if unknown."""

    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None
    longest: float | None
    least: float | None


NOTHING: Final = HopLag(None, None, None, None, None, None)


class Window(NamedTuple):
    """A path over a period; ``begin`` in microseconds since 1970."""

    way: LagPath
    begin: int
    beats: int
    hops: dict[str, HopLag]

    @property
    def total(self) -> HopLag:
        return self.hops["total"]


class Gap(NamedTuple):
    """A period without heartbeats: from one birth to the next, in microseconds since 1970; ``usual`` in seconds.

    ``lasts``: no heartbeat has ended it. It begins with the last arrival and ends with the time range, or with what the
    source knows.
    """

    way: LagPath
    begin: int
    end: int
    usual: float
    lasts: bool = False

    @property
    def seconds(self) -> float:
        return (self.end - self.begin) / _MICRO


class Trend(NamedTuple):
    """The trend of a path's lag.

    ``now``: in seconds; ``slope``: in seconds of lag per second; ``caught_up``: seconds until the lag is zero at this rate
    (None: the lag is not falling).
    """

    way: LagPath
    now: float
    slope: float
    caught_up: float | None


class ClockLead(NamedTuple):
    """By how much the clock of a database is ahead of another's, from the fastest heartbeats in both directions."""

    remote: str
    local: str
    offset: Offset


class LagFigures(NamedTuple):
    """The figures of a lag report.

    ``made``: time of the report, in microseconds since 1970; ``sources``: descriptions of the sources; ``asked``: the
    requested period, if the page uses a coarser one.
    """

    period: str
    sources: tuple[str, ...]
    made: int
    windows: list[Window]
    worst: list[Window]
    trends: list[Trend]
    gaps: list[Gap]
    clocks: list[ClockLead]
    asked: str = ""


def drawn_period(windows: Sequence[Window], period: str) -> str:
    """The period that the page uses: the requested one, or the finest coarser one with at most MOST_PERIODS periods."""
    span = max(each.begin for each in windows) - min(each.begin for each in windows)
    coarser = [name for name, length in PERIODS.items() if length >= PERIODS[period]]
    fitting = (name for name in coarser if span // (PERIODS[name] * 1_000_000) < MOST_PERIODS)
    return next(fitting, coarser[-1])


def windows(beats: Heartbeats, period: str) -> list[Window]:
    """One row per path and period (a name of PERIODS), in order.

    Mean, maximum and minimum are exact. A percentile is a measured lag, less than 1 % above the exact value: lags are
    counted by their first three digits, so the space needed is bounded by the number of such values.
    """
    length = PERIODS[period] * _MICRO
    cases = " ".join(f"WHEN {number} THEN {hop}_lag" for number, hop in enumerate(HOPS))
    numbers = ", ".join(f"({number})" for number in range(len(HOPS)))
    part = f"""
        hops AS (SELECT way, came - came % {length} AS began, hop, CASE hop {cases} END AS lag
                   FROM lags CROSS JOIN (VALUES {numbers}) AS numbers(hop)),
        counted AS (SELECT way, began, hop, count(*) AS alike, sum(CAST(lag AS double)) AS together, min(lag) AS least,
                           max(lag) AS most
                      FROM hops WHERE lag IS NOT NULL GROUP BY way, began, hop, {_three_digits("lag")})
        SELECT {_WAY}, began, hop, alike, together, least, most FROM counted JOIN ways USING (way)"""
    ranks = ", ".join(f"{_percentile(share)} / 1e6 AS {name}" for name, share in SHARES.items())
    ranked = _ranked(f"{_WAY}, began, hop", PARTS, "sum(together) AS together", "min(least) AS least")
    sql = f"""
        WITH {ranked}
        SELECT {_WAY}, began, hop, beats, sum(together) / beats / 1e6 AS mean, {ranks}, max(most) / 1e6 AS longest,
               min(least) / 1e6 AS shortest
          FROM ranked GROUP BY {_WAY}, began, hop, beats"""
    answer = beats.ask("LAG REPORT", _COUNTED, part, sql)
    hops: dict[tuple[LagPath, int], dict[str, HopLag]] = {}
    counts: dict[tuple[LagPath, int], int] = {}
    for row in answer.rows:
        place, (hop, count, *figures) = (_way(row), row[4]), row[5:]
        hops.setdefault(place, dict.fromkeys(HOPS, NOTHING))[HOPS[hop]] = HopLag(*map(float, figures))
        counts[place] = max(count, counts.get(place, 0))  # every heartbeat has a total lag, but not every hop
    return [
        Window(*place, counts[place], of_place) for place, of_place in sorted(hops.items(), key=lambda each: each[0])
    ]


def _way(row: Sequence[str]) -> LagPath:
    return LagPath(*row[:4])


def gaps(beats: Heartbeats, least: float = 0.0) -> list[Gap]:
    """Where heartbeats were missing: an interval much longer than usual, and at least ``least`` seconds.

    The time range need not have a heartbeat on both sides of a gap. One that began in the day before the range, or that
    still lasts at its end, is a gap too.
    """
    wider = replace(beats, since=max(1, beats.since - GAP_LOOK_BACK * _MICRO)) if beats.since else beats
    paces = _paces(wider)
    if not paces:
        return []
    shortest = round(least * _MICRO)
    longer = f"sent - earlier > {max(min(pace.usual for pace in paces.values()) * GAP_FACTOR, shortest)}"
    part = f"""{_STEPS}
        SELECT series, {_WAY}, earlier, sent, step AS most, NULL AS alike, NULL AS came
          FROM steps JOIN ways USING (way) WHERE {longer}
        UNION ALL {_EDGES}"""
    sql = f"""
        SELECT {_WAY}, earlier, sent FROM {PARTS} WHERE most IS NOT NULL
        UNION ALL SELECT {_WAY}, earlier, sent FROM ({_BETWEEN}) AS between_slices WHERE {longer}"""
    rows = wider.ask("LAG REPORT", _STEPPED, part, sql).rows
    found = [Gap(_way(row), row[4], row[5], paces[_way(row)].usual / _MICRO) for row in rows]
    for way, pace in paces.items():
        end = beats.known_until(way.deployment)
        if end - pace.last > shortest:
            found.append(Gap(way, pace.last, end, pace.usual / _MICRO, lasts=True))
    return sorted(gap for gap in found if gap.end > beats.since and gap.seconds > GAP_FACTOR * gap.usual)


class _Pace(NamedTuple):
    """The usual step between the heartbeats of a path, and its last arrival; in microseconds."""

    usual: int
    last: int


def _paces(beats: Heartbeats) -> dict[LagPath, _Pace]:
    """The pace of each path that has at least two heartbeats."""
    counted = f"SELECT way, max(step) AS most, count(*) AS alike FROM steps GROUP BY way, {_three_digits('step')}"
    part = f"""{_STEPS}, counted AS ({counted})
        SELECT series, {_WAY}, NULL AS earlier, NULL AS sent, most, alike, NULL AS came
          FROM counted JOIN ways USING (way)
        UNION ALL {_EDGES}"""
    sql = f"""
        WITH every AS (SELECT {_WAY}, most, alike FROM {PARTS} WHERE alike IS NOT NULL
                       UNION ALL SELECT {_WAY}, sent - earlier, 1 FROM ({_BETWEEN}) AS between_slices),
             {_ranked(_WAY, "every")},
             usual AS (SELECT {_WAY}, {_percentile(50)} AS step FROM ranked GROUP BY {_WAY}),
             newest AS (SELECT {_WAY}, max(came) AS came FROM {PARTS} WHERE came IS NOT NULL GROUP BY {_WAY})
        SELECT {_WAY}, step, came FROM usual JOIN newest USING ({_WAY})"""
    return {_way(row): _Pace(*row[4:]) for row in beats.ask("LAG REPORT", _STEPPED, part, sql).rows}


def worst(found: Iterable[Window], number: int) -> list[Window]:
    """The windows with the highest p95 of the total lag."""
    known = [each for each in found if each.total.p95 is not None]
    return sorted(known, key=lambda each: (-(each.total.p95 or 0.0), each.begin, each.way))[:number]


def trends(found: Iterable[Window], period: str) -> list[Trend]:
    """The trend of each path's mean lag: least squares over its last periods, from the last turning point on."""
    result = []
    for way, of_way in groupby(found, key=lambda each: each.way):
        points = [(each.begin / _MICRO, each.total.mean) for each in of_way if each.total.mean is not None]
        points = points[-TREND_PERIODS:]
        if not points:
            continue
        now, slope = points[-1][1], _slope(_since_turn(points))
        falls = slope < 0 and now >= LEAST_FORECAST
        result.append(Trend(way, now, slope, now / -slope if falls else None))
    return result


def _since_turn(points: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    """The points of the last straight segment: quiet hours before a backlog do not show how fast it is reduced."""
    whole = _squares(points)
    if whole <= _NOISE * len(points):
        return points
    left, turn = _broken(points, 2)
    return points[turn:] if left < TURN * whole else points


def _broken(points: Sequence[tuple[float, float]], breaks: int) -> tuple[float, int]:
    """The least squared error of lines with at most this many breaks, and where the last line begins."""
    best = (_squares(points), 0)
    if breaks:
        tails = range(1, len(points) - 1)
        best = min([best, *((_broken(points[:at], breaks - 1)[0] + _squares(points[at:]), at) for at in tails)])
    return best


def _squares(points: Sequence[tuple[float, float]]) -> float:
    """The squared error of the best line through points."""
    slope, count = _slope(points), len(points)
    x, y = sum(at for at, _ in points) / count, sum(lag for _, lag in points) / count
    return sum(math.pow(lag - y - slope * (at - x), 2.0) for at, lag in points)


def _slope(points: Sequence[tuple[float, float]]) -> float:
    x, y = (sum(values) / len(points) for values in zip(*points, strict=True))
    spread = sum((at - x) ** 2 for at, _ in points)
    return sum((at - x) * (lag - y) for at, lag in points) / spread if spread else 0.0


def clock_leads(found: Iterable[Window]) -> list[ClockLead]:
    """For each pair of databases that send heartbeats to each other, the first one's clock offset to the other."""
    least: dict[tuple[str, str], float] = {}
    for each in found:
        pair, value = (each.way.remote, each.way.local), each.total.least
        if value is not None and each.way.local:
            least[pair] = min(value, least.get(pair, value))
    result = []
    for remote, local in sorted(least):
        back = least.get((local, remote))
        offset = estimate([least[remote, local]], [back]) if back is not None and remote < local else None
        if offset is not None:
            result.append(ClockLead(remote, local, offset))
    return result
