"""Numbers and units as the command line shows them: lags, times, sizes."""

from __future__ import annotations

from ggshell.clock import to_datetime

_STILL = 0.001
"""A lag that changes by fewer seconds per period counts as steady."""


def clock_text(microseconds: int | None) -> str:
    """Format a lag as ``HH:MM:SS``; hours may have more than two digits; empty for None."""
    if microseconds is None:
        return ""
    minutes, second = divmod(microseconds // 1_000_000, 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours:02}:{minute:02}:{second:02}"


def moment(microseconds: int) -> str | None:
    """A time as the data formats show it: ISO 8601 in UTC, or None for 0."""
    if not microseconds:
        return None
    return to_datetime(microseconds).isoformat(timespec="microseconds")


def seconds(microseconds: int | None) -> int | None:
    """Convert microseconds to the whole seconds in which lags are shown."""
    return None if microseconds is None else microseconds // 1_000_000


def size(number: float) -> str:
    """Format a number of bytes in the largest suitable unit."""
    for unit in ("bytes", "KB", "MB", "GB"):
        if abs(number) < 1024 or unit == "GB":
            return f"{number:.0f} {unit}" if unit == "bytes" else f"{number:.1f} {unit}"
        number /= 1024
    return ""


def minute_text(microseconds: int) -> str:
    """Format a time to the minute, with its year, in UTC."""
    return to_datetime(microseconds).strftime("%Y-%m-%d %H:%M")


def moment_text(microseconds: int) -> str:
    """Format a time to the second, in UTC."""
    return to_datetime(microseconds).strftime("%Y-%m-%d %H:%M:%S")


def period_text(microseconds: int, period: str) -> str:
    """Format the start of a period, in UTC."""
    style = {"DAY": "%Y-%m-%d", "HOUR": "%m-%d %H:%M", "MINUTE": "%m-%d %H:%M"}[period]
    return to_datetime(microseconds).strftime(style)


def pace_of(slope: float, period: str) -> str:
    """Format how much a lag changes per period, without sign; empty if it is steady.

    The rate is not extrapolated to a longer time: minutes of data say nothing about an hour.
    """
    from ggshell.monitoring.spreads import PERIODS

    change = abs(slope) * PERIODS[period]
    if change < _STILL:
        return ""
    return f"{seconds_text(change)} {'an' if period == 'HOUR' else 'a'} {period.lower()}"


def seconds_text(value: float | None) -> str:
    """Format a duration; a dash if it is unknown."""
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
