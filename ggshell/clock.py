"""The clock. Code that needs the time receives a ``Clock``; tests pass a ``FakeClock``."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
JULIAN_EPOCH_MICROSECONDS = 210_866_760_000_000_000
"""Microseconds from Julian day 0, noon UTC, to 1970-01-01 (day 2440587.5). Trail timestamps count from Julian day 0."""


class Clock(Protocol):
    """Wall-clock time in microseconds since 1970-01-01 UTC, and monotonic seconds for measuring intervals."""

    def now(self) -> int: ...

    def steady(self) -> float: ...


class SystemClock:
    """The clocks of the operating system."""

    def now(self) -> int:
        return time.time_ns() // 1000

    def steady(self) -> float:
        return time.monotonic()


class FakeClock:
    """A clock that moves only with ``advance``; wall-clock time and monotonic time move together."""

    def __init__(self, start: int = 1_700_000_000_000_000) -> None:
        self._now = start
        self._start = start

    def now(self) -> int:
        return self._now

    def steady(self) -> float:
        return (self._now - self._start) / 1e6

    def advance(self, seconds: float) -> None:
        self._now += round(seconds * 1e6)


def pause(seconds: float) -> bool:
    """Let time pass where no event says that the wait is over; Ctrl-C ends it. Returns False: nothing else ends it early.

    This is the only function that sleeps: wait for an event, a lock or a descriptor instead where there is one.
    """
    time.sleep(max(0.0, seconds))
    return False


def to_datetime(microseconds: int) -> datetime:
    """Convert microseconds since 1970 to a timezone-aware UTC datetime."""
    return EPOCH + timedelta(microseconds=microseconds)


def from_datetime(moment: datetime) -> int:
    """Convert a timezone-aware datetime to microseconds since 1970."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def local_text(microseconds: int, style: str = "%Y-%m-%d %H:%M:%S") -> str:
    """Format a timestamp (microseconds since 1970) in the machine's local time, as reports and INFO show it."""
    return to_datetime(microseconds).astimezone().strftime(style)
