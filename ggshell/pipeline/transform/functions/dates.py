"""@DATE, @DATEDIFF, @DATENOW."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from ggshell.clock import EPOCH, JULIAN_EPOCH_MICROSECONDS, local_text
from ggshell.language.expressions import Call
from ggshell.pipeline.transform import nodes
from ggshell.pipeline.transform.compiler import Maker, Scope
from ggshell.pipeline.transform.functions.arguments import fixed_text
from ggshell.pipeline.transform.nodes import Node
from ggshell.pipeline.transform.rows import Rows
from ggshell.pipeline.transform.values import State, Value

Parts = dict[str, int]
"""The known parts: year, century, short year, month, day, day of year, hour, minute, second, microsecond."""

_TOKEN = re.compile(
    r"JTSLCT|JTSGMT|PHAMIS|STRATUS|CDATE|YYYY|DOW0|DOW1|DOWA|JTS|JUL|TTS|DDD|MMM|F{1,6}|CC|YY|MM|DD|HH|MI|SS"
)
_ALONE = frozenset({"JTSLCT", "JTSGMT", "JTS", "JUL", "TTS", "PHAMIS", "STRATUS", "CDATE"})
_UNKNOWN = frozenset({"PHAMIS", "STRATUS"})
_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
_DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
_PARTS = {
    "CC": "century",
    "YY": "short year",
    "YYYY": "year",
    "MM": "month",
    "DD": "day",
    "DDD": "day of year",
    "HH": "hour",
    "MI": "minute",
    "SS": "second",
}
_DATES = frozenset({"CC", "YY", "YYYY", "MM", "MMM", "DD", "DDD", "DOW0", "DOW1", "DOWA", *_ALONE})
_JULIAN_DAY = 1_721_425
"""Python's day 1 is Julian day 1,721,426."""
_TTS_ZERO = datetime(1974, 12, 31)
_MICROSECOND = timedelta(microseconds=1)
_DIFFERENCE = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[: ](\d\d):(\d\d)(?::(\d\d))?)?")


class _Descriptor(NamedTuple):
    """A date format: its parts, its pattern (None for a single count), and its width if it has digits only."""

    names: tuple[str, ...]
    literal: tuple[str, ...]
    pattern: re.Pattern[str] | None
    digits: int


def _descriptor(text: str) -> _Descriptor:
    names = tuple(_TOKEN.findall(text))
    literal = tuple(_TOKEN.split(text))
    if len(names) == 1 and names[0] in _ALONE and not any(literal):
        return _Descriptor(names, literal, None, 0)
    parts = [re.escape(literal[0])]
    for part, behind in zip(names, literal[1:], strict=True):
        parts += [f"({_readable(part)})", re.escape(behind)]
    plain = all(part in _PARTS for part in names) and not any(literal)
    return _Descriptor(names, literal, re.compile("".join(parts)), sum(map(len, names)) if plain else 0)


def _readable(part: str) -> str:
    if part in ("MMM", "DOWA"):
        return "[A-Za-z]{3}"
    if part in ("DOW0", "DOW1"):
        return "[0-9]"
    return f"[0-9]{{1,{len(part)}}}" if part.startswith("F") else f"[0-9]{{{len(part)}}}"


def _read(form: _Descriptor, text: str) -> Parts | None:
    """The parts of a date text. None if it does not match the format."""
    if form.pattern is None:
        return _read_count(form.names[0], text)
    if len(text) < form.digits and text.isdigit():
        text = text.zfill(form.digits)
    match = form.pattern.fullmatch(text)
    if match is None:
        return None
    found: Parts = {}
    for part, value in zip(form.names, match.groups(), strict=True):
        if part in _PARTS:
            found[_PARTS[part]] = int(value)
        elif part == "MMM":
            if value.upper() not in _MONTHS:
                return None
            found["month"] = _MONTHS.index(value.upper()) + 1
        elif part.startswith("F"):
            found["microsecond"] = int(value.ljust(6, "0"))
    return found


def _read_count(part: str, text: str) -> Parts | None:
    """The parts of a date that is written as a count of days, seconds or microseconds."""
    try:
        count = int(text)
        if part == "JUL":
            day = date.fromordinal(count - _JULIAN_DAY)
            return {"year": day.year, "month": day.month, "day": day.day}
        if part == "JTSLCT":
            moment = EPOCH + timedelta(microseconds=count - JULIAN_EPOCH_MICROSECONDS)
        elif part == "CDATE":
            moment = (EPOCH + timedelta(seconds=count)).astimezone()
        elif part in ("JTS", "JTSGMT"):
            moment = (EPOCH + timedelta(microseconds=count - JULIAN_EPOCH_MICROSECONDS)).astimezone()
        else:
            return None
    except (ValueError, OverflowError):
        return None
    names = ("year", "month", "day", "hour", "minute", "second", "microsecond")
    return {name: getattr(moment, name) for name in names}


def _year(parts: Parts) -> int | None:
    """The year of some parts. A year without a century is within 1950 to 2049."""
    if "year" in parts:
        year = parts["year"]
        return year + (2000 if year < 50 else 1900) if year < 100 else year
    if "short year" not in parts and "century" not in parts:
        return None
    short, century = parts.get("short year", 0), parts.get("century", 0)
    return century * 100 + short if century else short + (2000 if short < 50 else 1900)


def _moment(parts: Parts) -> tuple[datetime, bool] | None:
    """The date and time of some parts, and whether they include a year. None if the date does not exist."""
    year = _year(parts)
    try:
        found = datetime(
            year if year is not None else 1970,
            parts.get("month", 1),
            parts.get("day", 1),
            parts.get("hour", 0),
            parts.get("minute", 0),
            parts.get("second", 0),
            parts.get("microsecond", 0),
        )
        if "day of year" in parts and "month" not in parts:
            found += timedelta(days=parts["day of year"] - 1)
            if parts["day of year"] < 1 or (year is not None and found.year != year):
                return None
    except (ValueError, OverflowError):
        return None
    return found, year is not None


_SHOWN: dict[str, Callable[[datetime], str]] = {
    "CC": lambda moment: f"{moment.year // 100:02}",
    "YY": lambda moment: f"{moment.year % 100:02}",
    "YYYY": lambda moment: f"{moment.year:04}",
    "MM": lambda moment: f"{moment.month:02}",
    "MMM": lambda moment: _MONTHS[moment.month - 1],
    "DD": lambda moment: f"{moment.day:02}",
    "DDD": lambda moment: f"{moment.timetuple().tm_yday:03}",
    "DOW0": lambda moment: str(moment.isoweekday() % 7),
    "DOW1": lambda moment: str(moment.isoweekday() % 7 + 1),
    "DOWA": lambda moment: _DAYS[moment.isoweekday() % 7],
    "HH": lambda moment: f"{moment.hour:02}",
    "MI": lambda moment: f"{moment.minute:02}",
    "SS": lambda moment: f"{moment.second:02}",
}


def _show(form: _Descriptor, moment: datetime) -> Value:
    if form.pattern is None:
        return _count(form.names[0], moment)
    parts = [form.literal[0]]
    for part, behind in zip(form.names, form.literal[1:], strict=True):
        show = _SHOWN.get(part)
        if show is not None:
            parts += [show(moment), behind]
        elif part.startswith("F"):
            parts += [f"{moment.microsecond:06}"[: len(part)], behind]
        else:
            return State.INVALID
    return "".join(parts)


def _count(part: str, moment: datetime) -> Value:
    if part in _UNKNOWN:
        return State.INVALID
    if part == "JUL":
        return moment.toordinal() + _JULIAN_DAY
    if part == "TTS":
        return (moment - _TTS_ZERO) // timedelta(milliseconds=10)
    local = part == "JTSLCT"
    try:
        since = (moment.replace(tzinfo=UTC) if local else moment.astimezone(UTC)) - EPOCH
    except (OverflowError, ValueError):
        return State.INVALID
    return since // timedelta(seconds=1) if part == "CDATE" else since // _MICROSECOND + JULIAN_EPOCH_MICROSECONDS


def _date(call: Call, scope: Scope) -> Node:
    output, *rest = call.arguments
    target = _descriptor(fixed_text(output, scope))
    forms = [_descriptor(fixed_text(tree, scope)) for tree in rest[::2]]
    needs_year = any(part in _DATES for part in target.names)
    for form, tree in zip(forms, rest[::2], strict=True):
        if "TTS" in form.names or "PHAMIS" in form.names:
            scope.refuse(f"@DATE cannot read {form.names[0]}", tree, page="date")

    def convert(*texts: str) -> Value:
        parts: Parts = {}
        for form, text in zip(forms, texts, strict=True):
            found = _read(form, text)
            if found is None:
                return State.INVALID
            parts.update(found)
        moment = _moment(parts)
        if moment is None or (needs_year and not moment[1]):
            return State.INVALID
        return _show(target, moment[0])

    return nodes.applied(convert, *(nodes.texts(scope.compile(tree)) for tree in rest[1::2]))


def _difference(call: Call, scope: Scope) -> Node:
    unit = fixed_text(call.arguments[0], scope).upper()
    if unit not in ("DD", "SS"):
        scope.refuse("@DATEDIFF supports 'DD' and 'SS'", call.arguments[0], page="datediff")

    def between(first: str, second: str) -> Value:
        begin, end = _plain_moment(first), _plain_moment(second)
        if begin is None or end is None:
            return State.INVALID
        if unit == "DD":
            return end.toordinal() - begin.toordinal()
        return (end - begin) // timedelta(seconds=1)

    return nodes.applied(between, *(nodes.texts(scope.compile(tree)) for tree in call.arguments[1:]))


def _plain_moment(text: str) -> datetime | None:
    match = _DIFFERENCE.fullmatch(text)
    if match is None:
        return None
    try:
        return datetime(*(int(part or 0) for part in match.groups()))  # type: ignore[arg-type]
    except ValueError:
        return None


def _now(call: Call, scope: Scope) -> Node:
    clock = scope.environment.clock

    def evaluate(rows: Rows) -> list[Value]:
        return [local_text(clock.now())] * len(rows)

    return Node(evaluate)


FUNCTIONS: dict[str, Maker] = {"DATE": _date, "DATEDIFF": _difference, "DATENOW": _now}
