"""Logdump's display settings, and how it reads and prints times."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from enum import Enum
from typing import Final

from ggshell.clock import Clock, to_datetime
from ggshell.errors import UsageError

_TIME: Final = re.compile(
    r"(?:(\d{4}|\d{2})[-/](\d\d?)[-/](\d\d?))?[T:\s]*"
    r"(?:(\d\d?)(?::(\d\d?)(?::(\d\d?)(?:\.(\d{3}\.\d{3}|\d{1,6})\d*)?)?)?)?\s*(Z?)",
    re.ASCII,
)
_OFFSET: Final = re.compile(r"([+-]?)(\d\d?)(?::([0-5]\d))?", re.ASCII)
_FURTHEST_HOUR: Final = 15
_CENTURY: Final = 70
"""Two-digit years from this one on belong to the last century."""


class Level(Enum):
    """The level of detail at which something is shown."""

    OFF = "Off"
    ON = "On"
    MORE = "Detail"


@dataclass(slots=True)
class Display:
    """The display settings, with their defaults."""

    clock: Clock
    ghdr: bool = False
    detail: Level = Level.OFF
    file_header: Level = Level.OFF
    ggs_tokens: Level = Level.OFF
    user_tokens: Level = Level.OFF
    header_tokens: Level = Level.OFF
    metadata: Level = Level.ON
    sql_format: bool = False
    dump: bool = True
    record_length: int = 140
    zone: tzinfo | None = None
    """The time zone of displayed times; None for the machine's own."""

    @property
    def zone_name(self) -> str:
        if self.zone is None:
            return "LOCAL"
        return "GMT" if self.zone is UTC else f"GMT {self.now():%z}"

    def now(self) -> datetime:
        """Return the current time in the display's zone."""
        return to_datetime(self.clock.now()).astimezone(self.zone)

    def time(self, moment: datetime | None) -> str:
        """Return a time as Logdump prints it, to the microsecond; empty for a record without one."""
        return "" if moment is None else stamp(moment.astimezone(self.zone))

    def moment(self, text: str) -> datetime:
        """Parse a time as typed (``[[yy]yy-mm-dd] [hh[:mi[:ss]]]``) or as displayed, in the display's zone.

        Without a date, today is meant. Raises UsageError."""
        match = _TIME.fullmatch(text.strip().strip("'\"").strip())
        if match is None or not (match[1] or match[4]):
            raise UsageError(f"{text} is not a valid time", hint="yyyy-mm-dd hh:mi:ss")
        today = self.now()
        year, month, day = (int(each) for each in match.group(1, 2, 3)) if match[1] else today.timetuple()[:3]
        if match[1] and len(match[1]) == 2:
            year += 1900 if year >= _CENTURY else 2000
        hour, minute, second = (int(each or 0) for each in match.group(4, 5, 6))
        fraction = int((match[7] or "").replace(".", "").ljust(6, "0"))
        try:
            found = datetime(year, month, day, hour, minute, second, fraction, UTC if match[8] else self.zone)
            return found.astimezone(UTC)
        except (ValueError, OverflowError) as error:
            raise UsageError(f"{text} is not a valid time: {error}", hint="yyyy-mm-dd hh:mi:ss") from None


def stamp(moment: datetime) -> str:
    """Format a time as Logdump does, with milliseconds and microseconds separated."""
    return f"{moment:%Y/%m/%d %H:%M:%S}.{moment.microsecond // 1000:03d}.{moment.microsecond % 1000:03d}"


def zone_of(offset: str) -> tzinfo:
    """Return the time zone of an offset such as +09:00 or -3; UTC if it is empty.

    The range is that of PostgreSQL: -15:59 to +15:59. Raises UsageError."""
    if not offset:
        return UTC
    match = _OFFSET.fullmatch(offset)
    if match is None or int(match[2]) > _FURTHEST_HOUR:
        raise UsageError(f"{offset} is not a valid offset from GMT", hint="use -15:59 to +15:59, for example +09:00")
    distance = timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
    return timezone(-distance if match[1] == "-" else distance)
