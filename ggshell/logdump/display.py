"""What Logdump's switches say of how a record is shown, and how times are read and written."""

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
_CENTURY: Final = 70
"""Years of two digits from here on are of the last century."""


class Level(Enum):
    """How much of something is shown."""

    OFF = "Off"
    ON = "On"
    MORE = "Detail"


@dataclass(slots=True)
class Display:
    """The switches, as they are at first."""

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
    """None: this machine's."""

    @property
    def zone_name(self) -> str:
        if self.zone is None:
            return "LOCAL"
        return "GMT" if self.zone is UTC else f"GMT {self.now():%z}"

    def now(self) -> datetime:
        """The present time in the zone of the display."""
        return to_datetime(self.clock.now()).astimezone(self.zone)

    def time(self, moment: datetime | None) -> str:
        """A time as Logdump prints it, to the microsecond; empty for a record without one."""
        return "" if moment is None else stamp(moment.astimezone(self.zone))

    def moment(self, text: str) -> datetime:
        """A time as somebody types it (``[[yy]yy-mm-dd] [hh[:mi[:ss]]]``, or as it is shown), in the zone of the display;
        without a date today's.  Raises UsageError."""
        match = _TIME.fullmatch(text.strip().strip("'\"").strip())
        if match is None or not (match[1] or match[4]):
            raise UsageError(f"{text} is no time", hint="yyyy-mm-dd hh:mi:ss")
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
            raise UsageError(f"{text} is no time: {error}", hint="yyyy-mm-dd hh:mi:ss") from None


def stamp(moment: datetime) -> str:
    """A time in Logdump's form, milliseconds and microseconds apart."""
    return f"{moment:%Y/%m/%d %H:%M:%S}.{moment.microsecond // 1000:03d}.{moment.microsecond % 1000:03d}"


def zone_of(offset: str) -> tzinfo:
    """UTC, or the zone of an offset like +09:00 or -3.  Raises UsageError."""
    if not offset:
        return UTC
    sign = -1 if offset.startswith("-") else 1
    hours, _, minutes = offset.lstrip("+-").partition(":")
    try:
        return timezone(sign * timedelta(hours=int(hours), minutes=int(minutes or 0)))
    except ValueError:
        raise UsageError(f"{offset} is no offset from GMT", hint="for example +09:00") from None
