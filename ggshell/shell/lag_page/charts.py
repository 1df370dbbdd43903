"""The two drawings of the lag page: lag by time and way as a heat map, and the hops of a way as stacked areas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import log10
from typing import Final

from ggshell.heartbeat.history import PERIODS
from ggshell.shell.lag_page.svg import (
    LEFT,
    MARK_WIDTH,
    WIDTH,
    Scale,
    element,
    seconds_text,
    text,
    ticks,
    time_marks,
    time_text,
    title,
)
from ggshell.spark.questions.beats import HOPS
from ggshell.spark.questions.lag import Way, Window

ROW_HEIGHT: Final = 26
AREA_HEIGHT: Final = 190
SHADES: Final = ("#eaf3fb", "#c6dbef", "#9ecae1", "#6baed6", "#4292c6", "#2171b5", "#0b4a8f", "#f28e2b", "#d6372c")
"""From quick to slow; the last two stand for lags that hurt."""
STEPS: Final = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 300.0)
"""Where one shade ends, in seconds."""
HOP_COLORS: Final = {"extract": "#4e79a7", "routing": "#f2a341", "read": "#59a14f", "apply": "#b07aa1"}
LARGEST_CELL: Final = 60.0


def shade(seconds: float) -> str:
    """The colour of a lag."""
    return SHADES[sum(seconds >= step for step in STEPS)]


def periods_of(windows: Sequence[Window], period: str) -> list[int]:
    """The begins of all periods from the first to the last, also of those without heartbeats."""
    if not windows:
        return []
    length = PERIODS[period] * 1_000_000
    begins = [each.begin for each in windows]
    return list(range(min(begins), max(begins) + length, length))


def heat_map(windows: Sequence[Window], ways: Sequence[Way], names: Mapping[Way, str], period: str) -> str:
    """A row for each way, a cell for each period, its shade the p95 of the whole lag; empty where no heartbeat came."""
    begins = periods_of(windows, period)
    known = {(each.way, each.begin): each for each in windows}
    cell = min(LARGEST_CELL, (WIDTH - LEFT) / max(1, len(begins)))
    parts: list[str] = []
    for row, way in enumerate(ways):
        parts.append(text(LEFT - 8, row * ROW_HEIGHT + 17, names[way], "end", "label"))
        for column, begin in enumerate(begins):
            window = known.get((way, begin))
            parts.append(
                _cell(window, LEFT + column * cell, row * ROW_HEIGHT, cell, f"{time_text(begin, period)}  {way}")
            )
    bottom = len(ways) * ROW_HEIGHT
    for begin in time_marks(begins, len(begins) * cell):
        place = LEFT + begins.index(begin) * cell
        parts.append(element("line", x1=place, x2=place, y1=bottom, y2=bottom + 5, class_="axis"))
        parts.append(text(place, bottom + 18, time_text(begin, period), class_="tick"))
    return element("svg", "".join(parts), viewBox=f"0 0 {WIDTH} {bottom + 26}", role="img", class_="heat")


def _cell(window: Window | None, x: float, y: float, width: float, words: str) -> str:
    p95 = window.total.p95 if window is not None else None
    where: dict[str, object] = {
        "x": x,
        "y": y + 1,
        "width": max(0.5, width - (1 if width > 4 else 0)),
        "height": ROW_HEIGHT - 2,
    }
    if window is None or p95 is None:
        return element("rect", title(f"{words}\nno heartbeat"), **where, class_="none")
    told = f"{words}\np50 {seconds_text(window.total.p50)}, p95 {seconds_text(p95)}, {window.beats:,} heartbeats"
    return element("rect", title(told), **where, fill=shade(p95))


def heat_legend() -> str:
    """What the shades mean."""
    labels = [f"< {seconds_text(STEPS[0])}", *(f"≥ {seconds_text(step)}" for step in STEPS)]
    entries = [
        element("span", element("i", " ", style=f"background:{color}") + escape(label), class_="key")
        for color, label in zip(SHADES, labels, strict=True)
    ]
    none = element("span", element("i", " ", class_="none") + "no heartbeat", class_="key")
    return element("p", "".join([*entries, none]), class_="legend")


def areas(windows: Sequence[Window], begins: Sequence[int], period: str) -> str:
    """The mean lag of each hop of one way, one above the other; the line is the p95 of the whole.

    Where no heartbeat came the areas end.  What clocks that disagree make negative counts as nothing.
    """
    known = {each.begin: each for each in windows}
    tops = [max(sum(_heights(each)), each.total.p95 or 0.0) for each in windows]
    high = max([*tops, 1e-3])
    y = Scale(0.0, high * 1.05, AREA_HEIGHT, 8)
    x = Scale(0.0, float(max(1, len(begins) - 1)), LEFT, WIDTH - 10)
    parts = [_grid(y, high), *(_run(run, known, begins, x, y, period) for run in _runs(begins, known))]
    for begin in time_marks(begins):
        place = x(begins.index(begin))
        anchor = "end" if place + MARK_WIDTH / 2 > WIDTH else "start"
        parts.append(text(place, AREA_HEIGHT + 18, time_text(begin, period), anchor, "tick"))
    parts.append(element("line", x1=LEFT, x2=WIDTH - 10, y1=AREA_HEIGHT, y2=AREA_HEIGHT, class_="axis"))
    return element("svg", "".join(parts), viewBox=f"0 0 {WIDTH} {AREA_HEIGHT + 26}", role="img", class_="areas")


def _heights(window: Window) -> list[float]:
    return [max(0.0, window.hops[hop].mean or 0.0) for hop in HOPS[:-1]]


def _grid(y: Scale, high: float) -> str:
    lines = [
        element("line", x1=LEFT, x2=WIDTH - 10, y1=y(value), y2=y(value), class_="grid")
        + text(LEFT - 8, y(value) + 4, seconds_text(value), "end", "tick")
        for value in ticks(high)
    ]
    return "".join(lines)


def _runs(begins: Sequence[int], known: Mapping[int, Window]) -> list[list[int]]:
    """The numbers of periods with heartbeats, in unbroken runs."""
    runs: list[list[int]] = []
    for number, begin in enumerate(begins):
        if begin not in known:
            continue
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def _run(
    run: Sequence[int], known: Mapping[int, Window], begins: Sequence[int], x: Scale, y: Scale, period: str
) -> str:
    """One unbroken run: areas, the line, and invisible columns that tell figures under the pointer."""
    windows = [known[begins[number]] for number in run]
    # A single period is drawn as wide as it lasts, not as a line without width.
    width = (x(1.0) - x(0.0)) / 2 if len(begins) > 1 else (x.end - x.start) / 2
    places = [x(number) for number in run] if len(run) > 1 else [max(x.start, x(run[0]) - width), x(run[0]) + width]
    shown = windows if len(run) > 1 else windows * 2
    base = [0.0] * len(shown)
    parts: list[str] = []
    for place, hop in enumerate(HOPS[:-1]):
        top = [low + _heights(window)[place] for low, window in zip(base, shown, strict=True)]
        upper = [f"{at:.1f},{y(value):.1f}" for at, value in zip(places, top, strict=True)]
        lower = [f"{at:.1f},{y(value):.1f}" for at, value in zip(places, base, strict=True)]
        parts.append(element("polygon", points=" ".join([*upper, *reversed(lower)]), fill=HOP_COLORS[hop]))
        base = top
    line = " ".join(
        f"{at:.1f},{y(max(0.0, window.total.p95 or 0.0)):.1f}" for at, window in zip(places, shown, strict=True)
    )
    parts.append(element("polyline", points=line, class_="p95"))
    for number, window in zip(run, windows, strict=True):
        told = "\n".join(
            [time_text(window.begin, period)]
            + [f"{hop} {seconds_text(window.hops[hop].mean)}" for hop in HOPS]
            + [f"p95 {seconds_text(window.total.p95)}"]
        )
        parts.append(
            element(
                "rect", title(told), x=x(number) - width, y=8, width=2 * width, height=AREA_HEIGHT - 8, class_="hover"
            )
        )
    return "".join(parts)


def area_legend() -> str:
    """What the colours mean."""
    names = {
        "extract": "to Extract",
        "routing": "to the path",
        "read": "to Replicat's reading",
        "apply": "to the commit",
    }
    entries = [
        element("span", element("i", " ", style=f"background:{HOP_COLORS[hop]}") + name, class_="key")
        for hop, name in names.items()
    ]
    line = element("span", element("i", " ", class_="line") + "p95 of the whole", class_="key")
    return element("p", "".join([*entries, line]), class_="legend")


def spark_bar(value: float, most: float, width: int = 90) -> str:
    """A bar behind a figure in a table, by the logarithm: lags differ by orders of magnitude."""
    if value <= 0 or most <= 0:
        return ""
    low = most / 1e4
    share = max(0.02, log10(max(value, low) / low) / 4)
    return element("i", " ", class_="bar", style=f"width:{share * width:.0f}px;background:{shade(value)}")
