"""The two charts of the lag page: a heat map of lag by time and path, and the hops of a path as stacked areas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import floor, log10
from typing import Final, NamedTuple

from ggshell.cli.output.units import period_text
from ggshell.durations import HOUR, MINUTE, PERIODS, seconds_text
from ggshell.query.queries.heartbeats import HOPS
from ggshell.query.queries.lag import LagPath, Window

WIDTH = 1000
LEFT = 70
"""Width of the labels on the left of a chart."""
MARK_WIDTH = 110
"""Width of a time label below a chart."""


def element(name: str, content: str = "", /, **attributes: object) -> str:
    """Build an element. In attribute names ``_`` stands for ``-``; ``class_`` stands for ``class``."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_short(value))}"' for key, value in attributes.items()
    )
    return f"<{name}{given}>{content}</{name}>" if content else f"<{name}{given}/>"


def _short(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def text(x: float, y: float, words: str, anchor: str = "start", class_: str = "") -> str:
    """Build a line of text."""
    return element("text", escape(words), x=x, y=y, text_anchor=anchor, class_=class_)


def title(words: str) -> str:
    """Build the tooltip of an element."""
    return element("title", escape(words))


class Scale(NamedTuple):
    """Maps values from ``low`` to ``high`` linearly to coordinates from ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        span = self.high - self.low
        share = (value - self.low) / span if span else 0.0
        return self.start + share * (self.end - self.start)


def ticks(high: float, count: int = 4) -> list[float]:
    """Return round values from 0 to a maximum: in seconds, from two minutes in minutes, from two hours in hours."""
    if high <= 0:
        return [0.0]
    unit = float(HOUR if high >= 2 * HOUR else MINUTE if high >= 2 * MINUTE else 1)
    raw = high / unit / count
    power = 10.0 ** floor(log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)
    return [number * step * unit for number in range(int(high / unit / step + 1.001))]


def time_marks(begins: Sequence[int], width: float = WIDTH - LEFT) -> list[int]:
    """Choose evenly spaced period starts as labels that do not overlap in a chart of that width."""
    step = max(1, -(-len(begins) // max(1, int(width / MARK_WIDTH))))
    marks = list(begins[::step])
    return marks[:-1] if len(marks) > 1 and len(begins) - begins.index(marks[-1]) < step / 2 else marks


ROW_HEIGHT: Final = 26
AREA_HEIGHT: Final = 190
SHADES: Final = ("#eaf3fb", "#c6dbef", "#9ecae1", "#6baed6", "#4292c6", "#2171b5", "#0b4a8f", "#f28e2b", "#d6372c")
"""From low to high lag; the last two colors mark lags that need attention."""
STEPS: Final = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 300.0)
"""The upper limit of each shade, in seconds."""
HOP_COLORS: Final = {"extract": "#4e79a7", "routing": "#f2a341", "read": "#59a14f", "apply": "#b07aa1"}
LARGEST_CELL: Final = 60.0


def shade(seconds: float) -> str:
    """The color of a lag."""
    return SHADES[sum(seconds >= step for step in STEPS)]


def periods_of(windows: Sequence[Window], period: str) -> list[int]:
    """The start times of all periods from the first to the last, including those without heartbeats."""
    if not windows:
        return []
    length = PERIODS[period] * 1_000_000
    begins = [each.begin for each in windows]
    return list(range(min(begins), max(begins) + length, length))


def heat_map(windows: Sequence[Window], ways: Sequence[LagPath], names: Mapping[LagPath, str], period: str) -> str:
    """Draw one row per path and one cell per period, shaded by the p95 of the total lag.

    A cell is blank if there was no heartbeat.
    """
    begins = periods_of(windows, period)
    known = {(each.way, each.begin): each for each in windows}
    cell = min(LARGEST_CELL, (WIDTH - LEFT) / max(1, len(begins)))
    parts: list[str] = []
    for row, way in enumerate(ways):
        parts.append(text(LEFT - 8, row * ROW_HEIGHT + 17, names[way], "end", "label"))
        for column, begin in enumerate(begins):
            window = known.get((way, begin))
            parts.append(
                _cell(window, LEFT + column * cell, row * ROW_HEIGHT, cell, f"{period_text(begin, period)}  {way}")
            )
    bottom = len(ways) * ROW_HEIGHT
    for begin in time_marks(begins, len(begins) * cell):
        place = LEFT + begins.index(begin) * cell
        parts.append(element("line", x1=place, x2=place, y1=bottom, y2=bottom + 5, class_="axis"))
        parts.append(text(place, bottom + 18, period_text(begin, period), class_="tick"))
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
    hover_text = f"{words}\np50 {seconds_text(window.total.p50)}, p95 {seconds_text(p95)}, {window.beats:,} heartbeats"
    return element("rect", title(hover_text), **where, fill=shade(p95))


def heat_legend() -> str:
    """The legend of the shades."""
    labels = [f"< {seconds_text(STEPS[0])}", *(f"≥ {seconds_text(step)}" for step in STEPS)]
    entries = [
        element("span", element("i", " ", style=f"background:{color}") + escape(label), class_="key")
        for color, label in zip(SHADES, labels, strict=True)
    ]
    none = element("span", element("i", " ", class_="none") + "no heartbeat", class_="key")
    return element("p", "".join([*entries, none]), class_="legend")


def areas(windows: Sequence[Window], begins: Sequence[int], period: str) -> str:
    """Draw the mean lag of each hop of one path as stacked areas; the line is the p95 of the total lag.

    The areas are interrupted where there was no heartbeat. Negative values, which clock differences cause, count as
    zero.
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
        parts.append(text(place, AREA_HEIGHT + 18, period_text(begin, period), anchor, "tick"))
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
    """The numbers of the periods with heartbeats, grouped into unbroken runs."""
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
    """Draw one unbroken run: the areas, the line, and invisible columns that show figures as tooltips."""
    windows = [known[begins[number]] for number in run]
    # A single period is drawn at its full width, not as a line without width.
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
        hover_text = "\n".join(
            [period_text(window.begin, period)]
            + [f"{hop} {seconds_text(window.hops[hop].mean)}" for hop in HOPS]
            + [f"p95 {seconds_text(window.total.p95)}"]
        )
        parts.append(
            element(
                "rect",
                title(hover_text),
                x=x(number) - width,
                y=8,
                width=2 * width,
                height=AREA_HEIGHT - 8,
                class_="hover",
            )
        )
    return "".join(parts)


def area_legend() -> str:
    """The legend of the hop colors."""
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
    """Draw a bar before a figure in a table. Its width is logarithmic, since lags differ by orders of magnitude."""
    if value <= 0 or most <= 0:
        return ""
    low = most / 1e4
    share = max(0.02, log10(max(value, low) / low) / 4)
    return element("i", " ", class_="bar", style=f"width:{share * width:.0f}px;background:{shade(value)}")
