"""What Logdump's switches say of how a record is shown."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from enum import Enum

from ggshell.errors import UsageError


class Level(Enum):
    """How much of something is shown."""

    OFF = "OFF"
    ON = "ON"
    MORE = "DETAIL"

    @classmethod
    def of(cls, word: str) -> Level:
        """The level that ON, OFF, DETAIL or DATA asks for."""
        return cls.MORE if word.upper() in ("DETAIL", "DATA") else cls(word.upper())


@dataclass(slots=True)
class Display:
    """The switches, as they are at first."""

    ghdr: bool = False
    detail: Level = Level.OFF
    file_header: Level = Level.OFF
    ggs_tokens: Level = Level.OFF
    user_tokens: Level = Level.OFF
    header_tokens: Level = Level.OFF
    metadata: Level = Level.ON
    dump: bool = True
    record_length: int = 140
    zone: tzinfo | None = None
    """None: this machine's."""

    @property
    def zone_name(self) -> str:
        return "LOCAL" if self.zone is None else f"GMT {datetime.now(self.zone):%z}" if self.zone is not UTC else "GMT"

    def time(self, moment: datetime | None) -> str:
        """A time as Logdump prints it, to the microsecond; empty for a record without one."""
        if moment is None:
            return ""
        local = moment.astimezone(self.zone)
        return f"{local:%Y/%m/%d %H:%M:%S}.{local.microsecond // 1000:03d}.{local.microsecond % 1000:03d}"

    def moment(self, text: str) -> datetime:
        """A time as somebody types it, in the zone of the display.  Raises UsageError."""
        plain = text.strip().strip("'\"").replace("/", "-")
        if len(plain) > 10 and plain[10] in ":T":
            plain = f"{plain[:10]} {plain[11:]}"
        try:
            if ":" in plain and "-" not in plain:
                plain = f"{datetime.now(self.zone):%Y-%m-%d} {plain}"
            found = datetime.fromisoformat(plain)
        except ValueError:
            raise UsageError(f"{text} is no time", hint="yyyy-mm-dd hh:mi:ss") from None
        if found.tzinfo is None:
            found = found.replace(tzinfo=self.zone) if self.zone is not None else found.astimezone()
        return found.astimezone(UTC)


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
