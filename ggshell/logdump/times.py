"""TIME, CTIME, COMPUTETIMESTAMP, INTERPRETTIMESTAMP, INTERPRETINTERVAL: what the numbers of headers mean as times."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from ggshell.clock import JULIAN_EPOCH_MICROSECONDS, from_datetime, to_datetime
from ggshell.errors import UsageError
from ggshell.logdump.answers import Answer, Facts, Lines
from ggshell.logdump.display import stamp
from ggshell.logdump.registry import action
from ggshell.logdump.session import Session

_SECOND, _DAY = 1_000_000, 86_400_000_000


@action("TIME")
def time(session: Session) -> Iterator[Answer]:
    """The present time."""
    now = to_datetime(session.clock.now())
    yield Facts((("Local", stamp(now.astimezone())), ("GMT", stamp(now))))


@action("CTIME")
def c_time(session: Session, *, n: int) -> Iterator[Answer]:
    """A time in seconds since 1970.  Raises UsageError for one that no calendar has."""
    yield Lines(_both(n * _SECOND, n))


@action("INTERPRETTIMESTAMP")
def interpret_timestamp(session: Session, *, n: int) -> Iterator[Answer]:
    """A header's IO Time.  Raises UsageError for one that no calendar has."""
    yield Lines(_both(n - JULIAN_EPOCH_MICROSECONDS, n))


@action("COMPUTETIMESTAMP")
def compute_timestamp(session: Session, *, time_string: str) -> Iterator[Answer]:
    """The number of a time."""
    number = from_datetime(session.display.moment(time_string)) + JULIAN_EPOCH_MICROSECONDS
    yield Lines((f"{time_string} is JulianTimestamp {number}",))


@action("INTERPRETINTERVAL")
def interpret_interval(session: Session, *, n: int) -> Iterator[Answer]:
    """Microseconds as days, hours, minutes, seconds, milliseconds, microseconds."""
    days, rest = divmod(n, _DAY)
    seconds, micros = divmod(rest, _SECOND)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    yield Lines((f"Interval {n} is {days}-{clock}.{micros // 1000:03d}.{micros % 1000:03d}",))


def _both(microseconds: int, given: int) -> tuple[str, str]:
    try:
        moment: datetime = to_datetime(microseconds)
        return f"{stamp(moment.astimezone(UTC))} GMT", f"{stamp(moment.astimezone())} LCT"
    except (OverflowError, ValueError, OSError):
        raise UsageError(f"{given} lies outside of the years 1 to 9999") from None
