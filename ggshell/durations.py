"""Durations: the units, how statements and parameters write them, and every form in which results and messages show them.

A duration is in seconds unless the name or the docstring says microseconds, the unit of lags and timestamps.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from decimal import Decimal

MINUTE: Final = 60
HOUR: Final = 3600
DAY: Final = 86_400
WEEK: Final = 7 * DAY
MICROSECONDS: Final = 1_000_000
"""In a second."""
PERIODS: Final = {"MINUTE": MINUTE, "HOUR": HOUR, "DAY": DAY}
"""The periods by which statements group (BY HOUR)."""

_UNITS: dict[str, int] = dict.fromkeys(("", "S", "SEC", "SECS", "SECOND", "SECONDS"), 1)
_UNITS |= dict.fromkeys(("M", "MIN", "MINS", "MINUTE", "MINUTES"), MINUTE)
_UNITS |= dict.fromkeys(("H", "HR", "HRS", "HOUR", "HOURS"), HOUR)
_UNITS |= dict.fromkeys(("D", "DAY", "DAYS"), DAY)
_UNITS |= dict.fromkeys(("WEEK", "WEEKS"), WEEK)
_LONGEST_INTERVAL = 36_525 * DAY
_INTERVAL = re.compile(r"(\d{1,20}(?:\.\d{1,20})?)\s*([A-Za-z]*)")
_IN_SECONDS, _IN_MINUTES = 2 * MINUTE, 2 * HOUR
"""Shorter durations are shown in seconds, and those up to the second one in minutes."""


class Interval(float):
    """An interval in seconds."""


def read_interval(text: str) -> Interval:
    """Parse an interval: ``600sec``, ``20M``, ``4H``, ``10 HOURS``, ``1.5 DAYS``.

    ``M`` means minutes; a number without a unit means seconds. Raises ValueError with a message for the user.
    """
    match = _INTERVAL.fullmatch(text.strip())
    unit = _UNITS.get(match[2].upper()) if match else None
    if match is None or unit is None or (seconds := float(match[1]) * unit) > _LONGEST_INTERVAL:
        raise ValueError(f"{text} is not a valid interval: use, for example, 600sec, 20M or 4H, up to 100 years")
    return Interval(seconds)


def read_hours(text: str) -> Interval:
    """Parse an interval in which a number without a unit means hours. Raises ValueError."""
    return read_interval(f"{text}H" if text.strip().replace(".", "", 1).isdigit() else text)


def counted_seconds(seconds: Decimal) -> str:
    """Format a duration in seconds, without trailing zeros: ``1 second``, ``0.5 seconds``."""
    return f"{seconds.normalize():f} second{'s' if seconds != 1 else ''}"


def whole_seconds(microseconds: int | None) -> int | None:
    """Convert microseconds to the whole seconds in which lags are shown."""
    return None if microseconds is None else microseconds // MICROSECONDS


def clock_text(microseconds: int | None) -> str:
    """Format a lag as ``HH:MM:SS``; hours may have more than two digits; empty for None."""
    if microseconds is None:
        return ""
    minutes, second = divmod(microseconds // MICROSECONDS, MINUTE)
    hours, minute = divmod(minutes, 60)
    return f"{hours:02}:{minute:02}:{second:02}"


def days_text(microseconds: int) -> str:
    """Format an interval as Logdump does: ``1-02:03:04.005.006``, with days, milliseconds and microseconds."""
    days, rest = divmod(microseconds, DAY * MICROSECONDS)
    micros = rest % MICROSECONDS
    return f"{days}-{clock_text(rest)}.{micros // 1000:03}.{micros % 1000:03}"


def seconds_text(value: float | None) -> str:
    """Format a duration with three digits in the largest suitable unit: ``12.3 ms``, ``90 s``; a dash if it is unknown."""
    if value is None:
        return "–"
    size = abs(value)
    if size < 1e-9:
        return "0"
    if size < 0.9995:
        return f"{value * 1000:.3g} ms"
    if size < _IN_SECONDS:
        return f"{value:.3g} s"
    return f"{value / MINUTE:.3g} min" if size < _IN_MINUTES else f"{value / HOUR:.3g} h"


def rough_text(seconds: float) -> str:
    """Format an estimate as a whole number, at least one second: ``8 s``, ``17 min``, ``28 h``."""
    if seconds < _IN_SECONDS:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / MINUTE:.0f} min" if seconds < _IN_MINUTES else f"{seconds / HOUR:.0f} h"


def milliseconds_text(seconds: float) -> str:
    """Format a duration to the millisecond: ``0.250 s``."""
    return f"{seconds:.3f} s"


def interval_text(seconds: int, hours: str = "H", minutes: str = "M") -> str:
    """Format an interval as a parameter file writes it, in whole hours or in minutes: ``4H``, ``90M``.

    ``hours``, ``minutes``: the words for the units.
    """
    return f"{seconds // HOUR}{hours}" if seconds % HOUR == 0 else f"{seconds / MINUTE:g}{minutes}"
