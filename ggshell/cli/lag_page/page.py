"""Builds the lag page: header, overview of paths, heat map, area charts and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby

from ggshell.cli.lag_page.charts import (
    area_legend,
    areas,
    element,
    heat_legend,
    heat_map,
    periods_of,
    spark_bar,
)
from ggshell.cli.output.units import minute_text, moment_text, pace_of, period_text
from ggshell.durations import PERIODS, seconds_text
from ggshell.query.queries.heartbeats import HOPS
from ggshell.query.queries.lag import ClockLead, LagFigures, LagPath, Trend, Window

STYLE = """
:root { --ink: #1c2733; --soft: #5d6b7a; --line: #d8dee6; --paper: #ffffff; --none: #eef1f4; color-scheme: light dark; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e9ef; --soft: #9aa7b5; --line: #3a4552; --paper: #161c23; --none: #242c36; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 14px/1.5 system-ui, sans-serif; }
main { max-width: 1200px; margin: 0 auto; padding: 28px 24px 60px; }
h1 { font-size: 26px; margin: 0 0 4px; }
h2 { font-size: 18px; margin: 36px 0 8px; }
h3 { font-size: 14px; margin: 20px 0 4px; font-weight: 600; }
.about, .note { color: var(--soft); margin: 0 0 10px; }
svg { width: 100%; height: auto; display: block; overflow: visible; }
svg text { font: 12px system-ui, sans-serif; fill: var(--ink); }
svg .tick { font-size: 11px; fill: var(--soft); }
svg .label { font-weight: 600; }
svg .axis { stroke: var(--soft); stroke-width: 1; }
svg .grid { stroke: var(--line); stroke-width: 1; }
svg .p95 { fill: none; stroke: var(--ink); stroke-width: 1.5; stroke-dasharray: 4 3; }
svg .hover { fill: transparent; }
svg .hover:hover { fill: var(--soft); fill-opacity: 0.15; }
svg rect.none { fill: var(--none); }
.legend { display: flex; flex-wrap: wrap; gap: 4px 16px; margin: 8px 0; color: var(--soft); font-size: 12px; }
.key i { display: inline-block; width: 14px; height: 12px; margin-right: 6px; vertical-align: -1px; border-radius: 2px; }
.key i.none { background: var(--none); border: 1px solid var(--line); }
.key i.line { width: 22px; height: 0; border-radius: 0; border-top: 2px dashed var(--ink); vertical-align: 4px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 4px 8px; border-bottom: 1px solid var(--line); text-align: left; white-space: nowrap; }
th { color: var(--soft); font-weight: 600; font-size: 12px; }
.n { text-align: right; }
.bar { display: inline-block; height: 9px; margin-right: 8px; border-radius: 2px; }
summary { cursor: pointer; color: var(--soft); }
@media print { main { max-width: none; padding: 0; } details { display: none; } }
"""


MOST_ROWS = 2000
"""The most rows of figures on a page; the statement returns all of them as data."""


def page(figures: LagFigures) -> str:
    """Build the HTML page."""
    ways = list(dict.fromkeys(each.way for each in figures.windows))
    names = {way: chr(65 + number) if number < 26 else str(number + 1) for number, way in enumerate(ways)}
    body = [
        element("h1", "Replication lag"),
        element("p", _about(figures), class_="about"),
        element("h2", "Paths"),
        _ways(figures, ways, names),
        element("h2", f"Lag by {figures.period.lower()} and path"),
        element(
            "p", "p95 of the total lag, from the heartbeat being sent to its commit. Times are UTC.", class_="note"
        ),
        heat_map(figures.windows, ways, names, figures.period),
        heat_legend(),
        element("h2", "Lag by hop"),
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
    coarser = ""
    if figures.asked:
        coarser = f" By {figures.period.lower()}: by {figures.asked.lower()} the charts would be too fine to read."
    return f"{beats:,} heartbeats, {span} (UTC), from {sources}. Generated {moment_text(figures.made)}.{coarser}"


def _ways(figures: LagFigures, ways: Sequence[LagPath], names: dict[LagPath, str]) -> str:
    trends = {each.way: each for each in figures.trends}
    heads = (
        "",
        "Deployment",
        "From",
        "To",
        "Path",
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
    """Format a trend as an arrow and a rate."""
    pace = pace_of(trend.slope if trend else 0.0, period)
    if trend is None or not pace:
        return "steady"
    arrow = "\N{NORTH EAST ARROW}" if trend.slope > 0 else "\N{SOUTH EAST ARROW}"
    end = "" if trend.caught_up is None else f", caught up in {seconds_text(trend.caught_up)} at this rate"
    return f"{arrow} {pace}{end}"


def _areas(figures: LagFigures, ways: Sequence[LagPath], names: dict[LagPath, str]) -> list[str]:
    begins = periods_of(figures.windows, figures.period)
    found = []
    for way in ways:
        mine = [each for each in figures.windows if each.way == way]
        found += [element("h3", f"{names[way]}\N{EN SPACE}{escape(str(way))}"), areas(mine, begins, figures.period)]
    return found


def _windows(windows: Iterable[Window], names: dict[LagPath, str], period: str) -> str:
    heads = (
        "Time",
        "Path",
        "Heartbeats",
        "p50",
        "p95",
        "p99",
        "Longest",
        *(f"\N{DIAMETER SIGN} {hop}" for hop in HOPS[:-1]),
    )
    shown = list(windows)
    most = max((each.total.p95 or 0.0 for each in shown), default=0.0)
    rows = [
        [
            period_text(each.begin, period),
            element("b", names[each.way]),
            f"{each.beats:,}",
            seconds_text(each.total.p50),
            spark_bar(each.total.p95 or 0.0, most) + seconds_text(each.total.p95),
            seconds_text(each.total.p99),
            seconds_text(each.total.longest),
            *(seconds_text(each.hops[hop].mean) for hop in HOPS[:-1]),
        ]
        for each in shown
    ]
    return _table(heads, rows, 2)


def _gaps(figures: LagFigures, names: dict[LagPath, str]) -> list[str]:
    head = element("h2", "Missing heartbeats")
    if not figures.gaps:
        return [head, element("p", "None: every heartbeat arrived at the usual interval.", class_="note")]
    rows = [
        [
            element("b", names[gap.way]) if gap.way in names else escape(str(gap.way)),
            moment_text(gap.begin),
            "not ended" if gap.lasts else moment_text(gap.end),
            seconds_text(gap.seconds),
            seconds_text(gap.usual),
        ]
        for gap in figures.gaps[:MOST_ROWS]
    ]
    return [head, _table(("Path", "From", "To", "Without for", "Usual"), rows, 3)]


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


def _all(figures: LagFigures, names: dict[LagPath, str]) -> str:
    shown = figures.windows[:MOST_ROWS]
    left = len(figures.windows) - len(shown)
    note = element("p", f"{left:,} more lines are omitted.", class_="note") if left else ""
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
