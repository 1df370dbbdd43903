"""What the charts of the lag page are drawn with: elements, scales, texts of times and durations."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import floor, log10
from typing import NamedTuple

from ggshell.clock import to_datetime
from ggshell.heartbeat.history import PERIODS

WIDTH = 1000
_STILL = 0.001
"""A lag that changes by fewer seconds in a period stands still."""
LEFT = 70
"""Room for what stands beside a chart's left edge."""
MARK_WIDTH = 110
"""Room for a time below a chart."""


def element(name: str, content: str = "", /, **attributes: object) -> str:
    """An element; ``_`` in names of attributes stands for ``-``, ``class_`` for class."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_short(value))}"' for key, value in attributes.items()
    )
    return f"<{name}{given}>{content}</{name}>" if content else f"<{name}{given}/>"


def _short(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def text(x: float, y: float, words: str, anchor: str = "start", class_: str = "") -> str:
    """A line of text."""
    return element("text", escape(words), x=x, y=y, text_anchor=anchor, class_=class_)


def title(words: str) -> str:
    """What a browser shows when the pointer rests on an element."""
    return element("title", escape(words))


class Scale(NamedTuple):
    """A value's place: from ``low`` to ``high`` over places from ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        span = self.high - self.low
        share = (value - self.low) / span if span else 0.0
        return self.start + share * (self.end - self.start)


def ticks(high: float, count: int = 4) -> list[float]:
    """Round values from 0 up to a maximum: of seconds, from two minutes on of minutes, from two hours on of hours."""
    if high <= 0:
        return [0.0]
    unit = 3600.0 if high >= 7200 else 60.0 if high >= 120 else 1.0
    raw = high / unit / count
    power = 10.0 ** floor(log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)
    return [number * step * unit for number in range(int(high / unit / step + 1.001))]


def time_marks(begins: Sequence[int], width: float = WIDTH - LEFT) -> list[int]:
    """Some of the begins of periods, evenly, to stand under a chart of that width without touching each other."""
    step = max(1, -(-len(begins) // max(1, int(width / MARK_WIDTH))))
    marks = list(begins[::step])
    return marks[:-1] if len(marks) > 1 and len(begins) - begins.index(marks[-1]) < step / 2 else marks


def time_text(microseconds: int, period: str) -> str:
    """The begin of a period, UTC."""
    style = {"DAY": "%Y-%m-%d", "HOUR": "%m-%d %H:%M", "MINUTE": "%m-%d %H:%M"}[period]
    return to_datetime(microseconds).strftime(style)


def minute_text(microseconds: int) -> str:
    """A moment to the minute, with its year, UTC."""
    return to_datetime(microseconds).strftime("%Y-%m-%d %H:%M")


def moment_text(microseconds: int) -> str:
    """A moment to the second, UTC."""
    return to_datetime(microseconds).strftime("%Y-%m-%d %H:%M:%S")


def pace_of(slope: float, period: str) -> str:
    """By how much a lag changes in a period of the report, without its direction; empty where it stands still.  Not in a
    longer time: minutes of figures tell nothing of an hour."""
    change = abs(slope) * PERIODS[period]
    if change < _STILL:
        return ""
    return f"{seconds_text(change)} {'an' if period == 'HOUR' else 'a'} {period.lower()}"


def seconds_text(value: float | None) -> str:
    """A duration as a person reads it; a dash where nothing is known."""
    if value is None:
        return "–"
    size = abs(value)
    if size < 1e-9:
        return "0"
    if size < 0.9995:
        return f"{value * 1000:.3g} ms"
    if size < 120:
        return f"{value:.3g} s"
    if size < 7200:
        return f"{value / 60:.3g} min"
    return f"{value / 3600:.3g} h"
