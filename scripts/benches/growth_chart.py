"""The chart and the sentences about the bench ``growth``: time by number of objects, both on logarithmic scales."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

from benches.figures import LIMIT_NAME, Figure, number

_WIDTH, _HEIGHT, _MARGIN = 260, 180, 44
_COLUMNS = 3
_COLOR = "#0969da"


class Series(NamedTuple):
    """What grows: ``sizes`` objects take ``seconds`` each, the smallest first."""

    name: str
    unit: str
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]

    @property
    def sentence(self) -> str:
        more, longer = self.sizes[-1] / self.sizes[0], self.seconds[-1] / self.seconds[0]
        return (
            f"{self.name}: {number(more)} times as many {self.unit} ({self.sizes[0]:,} to {self.sizes[-1]:,}) take"
            f" {number(longer)} times as long ({number(self.seconds[0])} to {number(self.seconds[-1])} s)."
        )


def series_of(figures: Sequence[Figure]) -> list[Series]:
    """The series of a bench, whose cases are ``<name>, <size> <unit>``."""
    found: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for figure in figures:
        if figure.peer_name != LIMIT_NAME:
            name, _, rest = figure.case.partition(", ")
            size, _, unit = rest.partition(" ")
            found.setdefault((name, unit), []).append((int(size.replace(",", "")), statistics.median(figure.ours)))
    return [
        Series(name, unit, tuple(size for size, _ in points), tuple(taken for _, taken in points))
        for (name, unit), points in found.items()
    ]


def chart(series: Sequence[Series]) -> str:
    """An SVG with a small chart for each series. The dashed line is n log n from the smallest size on."""
    rows = -(-len(series) // _COLUMNS)
    width, height = _COLUMNS * _WIDTH, rows * _HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for place, each in enumerate(series):
        parts.append(f'<g transform="translate({place % _COLUMNS * _WIDTH} {place // _COLUMNS * _HEIGHT})">')
        parts += [*_small_chart(each), "</g>"]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _small_chart(series: Series) -> list[str]:
    limit = [
        series.seconds[0] * size * math.log(size) / (series.sizes[0] * math.log(series.sizes[0]))
        for size in series.sizes
    ]
    low, high = min(series.seconds), max([*series.seconds, *limit])
    right, bottom = _WIDTH - _MARGIN / 2, _HEIGHT - _MARGIN

    def at(size: int, seconds: float) -> str:
        x = _MARGIN + (right - _MARGIN) * math.log(size / series.sizes[0]) / math.log(
            series.sizes[-1] / series.sizes[0]
        )
        y = bottom - (bottom - 28) * math.log(seconds / low) / max(1e-9, math.log(high / low))
        return f"{x:.1f},{y:.1f}"

    line = " ".join(map(at, series.sizes, series.seconds))
    dashed = " ".join(map(at, series.sizes, limit))
    parts = [
        f'<text x="{_MARGIN}" y="16" font-weight="bold">{escape(series.name)}</text>',
        f'<path d="M{_MARGIN},24 V{bottom} H{right}" fill="none" stroke="#57606a"/>',
        f'<polyline points="{dashed}" fill="none" stroke="#8c959f" stroke-dasharray="4 3"/>',
        f'<polyline points="{line}" fill="none" stroke="{_COLOR}" stroke-width="2"/>',
        f'<text x="{right}" y="{_HEIGHT - 8}" text-anchor="end">{escape(series.unit)}</text>',
    ]
    for size, seconds in zip(series.sizes, series.seconds, strict=True):
        x, y = at(size, seconds).split(",")
        parts.append(f'<circle cx="{x}" cy="{y}" r="3" fill="{_COLOR}"/>')
        parts.append(f'<text x="{x}" y="{float(y) - 6:.1f}" text-anchor="middle">{number(seconds)} s</text>')
        parts.append(f'<text x="{x}" y="{bottom + 14}" text-anchor="middle">{size:,}</text>')
    return parts
