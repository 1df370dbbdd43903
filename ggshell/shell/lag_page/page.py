"""The page as a whole: head, ways at a glance, heat map, areas, tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby
from typing import NamedTuple

from ggshell.heartbeat.history import PERIODS
from ggshell.shell.lag_page.charts import area_legend, areas, heat_legend, heat_map, periods_of, spark_bar
from ggshell.shell.lag_page.style import STYLE
from ggshell.shell.lag_page.svg import element, minute_text, moment_text, pace_of, seconds_text, time_text
from ggshell.spark.questions.beats import HOPS
from ggshell.spark.questions.lag import ClockLead, Gap, Trend, Way, Window

MOST_ROWS = 2000
"""A page with more lines of figures is of no use; the statement gives them all as data."""


class LagFigures(NamedTuple):
    """All that a report tells.  ``made`` in microseconds since 1970; ``sources`` in words."""

    period: str
    sources: tuple[str, ...]
    made: int
    windows: list[Window]
    worst: list[Window]
    trends: list[Trend]
    gaps: list[Gap]
    clocks: list[ClockLead]


def page(figures: LagFigures) -> str:
    """The HTML."""
    ways = list(dict.fromkeys(each.way for each in figures.windows))
    names = {way: chr(65 + number) if number < 26 else str(number + 1) for number, way in enumerate(ways)}
    body = [
        element("h1", "Replication lag"),
        element("p", _about(figures), class_="about"),
        element("h2", "Ways"),
        _ways(figures, ways, names),
        element("h2", f"Lag by {figures.period.lower()} and way"),
        element("p", "p95 of the whole lag, from the heartbeat's birth to its commit. Times are UTC.", class_="note"),
        heat_map(figures.windows, ways, names, figures.period),
        heat_legend(),
        element("h2", "Where the time goes"),
        area_legend(),
        *_areas(figures, ways, names),
        element("h2", "Worst times"),
        _windows(figures.worst, names, figures.period),
        *_gaps(figures, names),
        *_clocks(figures.clocks),
        element("h2", "All figures"),
        _all(figures, names),
    ]
    head = element("meta", charset="utf-8") + element("meta", name="viewport", content="width=device-width")
    head += element("title", "Replication lag") + element("style", STYLE)
    whole = element("html", element("head", head) + element("body", element("main", "".join(body))), lang="en")
    return f"<!DOCTYPE html>\n{whole}\n"


def _about(figures: LagFigures) -> str:
    begins = [each.begin for each in figures.windows]
    beats = sum(each.beats for each in figures.windows)
    length = PERIODS[figures.period] * 1_000_000
    span = f"{minute_text(min(begins))} to {minute_text(max(begins) + length)}" if begins else "no time"
    sources = ", ".join(map(escape, figures.sources))
    return f"{beats:,} heartbeats, {span} (UTC), from {sources}. Made {moment_text(figures.made)}."


def _ways(figures: LagFigures, ways: Sequence[Way], names: dict[Way, str]) -> str:
    trends = {each.way: each for each in figures.trends}
    heads = (
        "",
        "Deployment",
        "From",
        "To",
        "Way",
        "Heartbeats",
        "p50",
        "worst p95",
        "Longest",
        f"Last {figures.period.lower()}",
        "Trend",
    )
    rows = []
    for way, group in groupby(figures.windows, key=lambda each: each.way):
        mine = list(group)
        middle = sorted(each.total.p50 or 0.0 for each in mine)[(len(mine) - 1) // 2]
        trend = trends.get(way)
        rows.append(
            [
                element("b", names[way]),
                *(escape(text) or "–" for text in way),
                f"{sum(each.beats for each in mine):,}",
                seconds_text(middle),
                seconds_text(max(each.total.p95 or 0.0 for each in mine)),
                seconds_text(max(each.total.longest or 0.0 for each in mine)),
                seconds_text(trend.now if trend else None),
                _trend(trend, figures.period),
            ]
        )
    return _table(heads, rows, 5)


def _trend(trend: Trend | None, period: str) -> str:
    """An arrow and the pace."""
    pace = pace_of(trend.slope if trend else 0.0, period)
    if trend is None or not pace:
        return "steady"
    arrow = "\N{NORTH EAST ARROW}" if trend.slope > 0 else "\N{SOUTH EAST ARROW}"
    end = "" if trend.caught_up is None else f", gone in {seconds_text(trend.caught_up)}"
    return f"{arrow} {pace}{end}"


def _areas(figures: LagFigures, ways: Sequence[Way], names: dict[Way, str]) -> list[str]:
    begins = periods_of(figures.windows, figures.period)
    found = []
    for way in ways:
        mine = [each for each in figures.windows if each.way == way]
        found += [element("h3", f"{names[way]}\N{EN SPACE}{escape(str(way))}"), areas(mine, begins, figures.period)]
    return found


def _windows(windows: Iterable[Window], names: dict[Way, str], period: str) -> str:
    heads = (
        "Time",
        "Way",
        "Heartbeats",
        "p50",
        "p95",
        "p99",
        "Longest",
        *(f"\N{DIAMETER SIGN} {hop}" for hop in HOPS[:-1]),
    )
    told = list(windows)
    most = max((each.total.p95 or 0.0 for each in told), default=0.0)
    rows = [
        [
            time_text(each.begin, period),
            element("b", names[each.way]),
            f"{each.beats:,}",
            seconds_text(each.total.p50),
            spark_bar(each.total.p95 or 0.0, most) + seconds_text(each.total.p95),
            seconds_text(each.total.p99),
            seconds_text(each.total.longest),
            *(seconds_text(each.hops[hop].mean) for hop in HOPS[:-1]),
        ]
        for each in told
    ]
    return _table(heads, rows, 2)


def _gaps(figures: LagFigures, names: dict[Way, str]) -> list[str]:
    head = element("h2", "Missing heartbeats")
    if not figures.gaps:
        return [head, element("p", "None: each came as soon as usual after the one before.", class_="note")]
    rows = [
        [element("b", names.get(gap.way, "")), moment_text(gap.begin), moment_text(gap.end), seconds_text(gap.seconds),
         seconds_text(gap.usual)]
        for gap in figures.gaps[:MOST_ROWS]
    ]  # fmt: skip
    return [head, _table(("Way", "From", "To", "Without for", "Usual"), rows, 3)]


def _clocks(clocks: Sequence[ClockLead]) -> list[str]:
    if not clocks:
        return []
    rows = [
        [
            escape(each.remote),
            escape(each.local),
            seconds_text(each.offset.lead),
            f"± {seconds_text(each.offset.error)}",
            "for sure" if each.offset.certain else "perhaps not at all",
        ]
        for each in clocks
    ]
    return [element("h2", "Clocks"), _table(("Clock of", "leads that of", "by", "give or take", ""), rows, 2)]


def _all(figures: LagFigures, names: dict[Way, str]) -> str:
    shown = figures.windows[:MOST_ROWS]
    left = len(figures.windows) - len(shown)
    note = element("p", f"{left:,} more lines are left out here.", class_="note") if left else ""
    summary = element("summary", f"{len(shown):,} line{'' if len(shown) == 1 else 's'}")
    return element("details", summary + _windows(shown, names, figures.period) + note)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], numbers_from: int) -> str:
    def cells(kind: str, row: Sequence[str]) -> str:
        return "".join(
            element(kind, cell or " ", class_="n" if place >= numbers_from else "t") for place, cell in enumerate(row)
        )

    body = "".join(element("tr", cells("td", row)) for row in rows)
    table = element("table", element("thead", element("tr", cells("th", heads))) + element("tbody", body or " "))
    return element("div", table, class_="scroll")
