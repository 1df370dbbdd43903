"""Times, rates and sizes as the command line shows them."""

from __future__ import annotations

from ggshell.clock import to_datetime
from ggshell.durations import PERIODS, seconds_text

_STILL = 0.001
"""A lag that changes by fewer seconds per period counts as steady."""


def moment(microseconds: int) -> str | None:
    """A time as the data formats show it: ISO 8601 in UTC, or None for 0."""
    if not microseconds:
        return None
    return to_datetime(microseconds).isoformat(timespec="microseconds")


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
    change = abs(slope) * PERIODS[period]
    if change < _STILL:
        return ""
    return f"{seconds_text(change)} {'an' if period == 'HOUR' else 'a'} {period.lower()}"
