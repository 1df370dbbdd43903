"""Parsers for quantities in statements and files: sizes, times of day, weekdays and timestamps.

There is one parser for each. Every parser raises ValueError with a message that can be shown to the user.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import NamedTuple

from ggshell.clock import from_datetime

SIZE_UNITS = {"": 1, "B": 1, "K": 1 << 10, "KB": 1 << 10, "M": 1 << 20, "MB": 1 << 20, "G": 1 << 30, "GB": 1 << 30}
DAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
_LARGEST_SIZE = (1 << 63) - 1
_SIZE = re.compile(r"(\d{1,20})\s*([A-Za-z]*)")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})")
_TIMESTAMP = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})(?:(?:[ T:]|\s+)(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?(Z)?)?", re.IGNORECASE
)


class Size(int):
    """A size in bytes."""


class TimeOfDay(NamedTuple):
    """An hour and a minute."""

    hour: int
    minute: int


class Weekday(int):
    """A day of the week; 0 is Monday."""


class Timestamp(str):
    """A validated timestamp in the form that the statement used; ``moment`` is in microseconds since 1970."""

    __slots__ = ("moment",)
    moment: int


def read_size(text: str) -> Size:
    """Parse a size: ``4096``, ``24M``, ``500MB``, ``1G``."""
    match = _SIZE.fullmatch(text.strip())
    unit = SIZE_UNITS.get(match[2].upper()) if match else None
    if match is None or unit is None or (size := int(match[1]) * unit) > _LARGEST_SIZE:
        raise ValueError(f"{text} is not a valid size: use a whole number with K, M or G, for example 256MB")
    return Size(size)


def read_time_of_day(text: str) -> TimeOfDay:
    """Parse a time of day: ``hh:mi``, 00:00 to 23:59."""
    match = _CLOCK.fullmatch(text.strip())
    if match is None or int(match[1]) > 23 or int(match[2]) > 59:
        raise ValueError(f"{text} is not a valid time of day: use hh:mi, 00:00 to 23:59")
    return TimeOfDay(int(match[1]), int(match[2]))


def read_weekday(text: str) -> Weekday:
    """Parse a day of the week, for example ``FRIDAY``, in upper or lower case."""
    if text.strip().upper() not in DAYS:
        raise ValueError(f"{text} is not a valid day of the week: use, for example, FRIDAY")
    return Weekday(DAYS.index(text.strip().upper()))


def read_timestamp(text: str) -> Timestamp:
    """Parse ``yyyy-mm-dd[ hh:mi[:ss[.ffffff]]]``: local time of the machine, or UTC if a ``Z`` follows."""
    plain = " ".join(text.strip().strip("\"'").split())
    match = _TIMESTAMP.fullmatch(plain)
    wrong = ValueError(f"{plain} is not a valid time: use yyyy-mm-dd hh:mi:ss")
    if match is None:
        raise wrong
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    micros = int((match[7] or "").ljust(6, "0")[:6])
    zone = "+00:00" if match[8] else ""
    try:
        moment = datetime.fromisoformat(
            f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}{zone}"
        ).astimezone()
    except (ValueError, OverflowError):
        raise wrong from None
    found = Timestamp(plain)
    found.moment = from_datetime(moment)
    return found
