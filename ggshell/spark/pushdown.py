"""What of a query's conditions a trail's reader can use: which files, transactions, tables and operations it may leave out.

Conditions come as (column, comparison, value); what is left out is never more than they say, so an engine may, and does, apply
them again to what is read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from ggshell.clock import from_datetime, to_datetime
from ggshell.trail import iotypes
from ggshell.trail.columnar import EVERYTHING, Wanted
from ggshell.types import Csn


class Condition(NamedTuple):
    """One of conditions that must all hold; ``comparison`` is one of = in < <= > >=, ``value`` a tuple for ``in``."""

    column: str
    comparison: str
    value: Any


def conditions_text(conditions: Iterable[Condition]) -> str:
    """Conditions as an option of ``ggtrail`` holds them: JSON, times as microseconds since 1970."""
    return json.dumps([[each.column, each.comparison, _plain_value(each.value)] for each in conditions])


def _plain_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return {"microseconds": from_datetime(value)}
    return [_plain_value(each) for each in value] if isinstance(value, tuple) else value


def conditions_from(text: str) -> list[Condition]:
    """The conditions of such an option."""
    return [Condition(column, comparison, _read(value)) for column, comparison, value in json.loads(text or "[]")]


def _read(value: Any) -> Any:
    if isinstance(value, dict):
        return to_datetime(value["microseconds"])
    return tuple(map(_read, value)) if isinstance(value, list) else value


def wanted_by(conditions: Iterable[Condition]) -> Wanted:
    """The reader's part of them."""
    found = EVERYTHING
    owners: tuple[str, ...] | None = None
    tables: tuple[str, ...] | None = None
    for each in conditions:
        values = each.value if each.comparison == "in" else (each.value,)
        equal = each.comparison in ("=", "in")
        if each.column == "owner" and equal:
            owners = tuple(map(str, values))
        elif each.column == "table" and equal:
            tables = tuple(map(str, values))
        elif each.column in _READERS:
            found = _READERS[each.column](found, each.comparison, tuple(values))
    if owners is not None or tables is not None:
        patterns = tuple(f"{_plain(owner)}.{_plain(table)}" for owner in owners or ("*",) for table in tables or ("*",))
        found = replace(found, tables=patterns)
    return found


def _plain(text: str) -> str:
    """A pattern that matches a name at least: brackets, which would begin a class, stand for any character."""
    return text.replace("[", "?")


def _operations(wanted: Wanted, comparison: str, values: tuple[Any, ...]) -> Wanted:
    if comparison not in ("=", "in"):
        return wanted
    try:
        numbers = [iotypes.io_type_number(str(value)) for value in values]
    except ValueError:
        return wanted
    return replace(wanted, operations=tuple(map(str, numbers)))


def _csn(wanted: Wanted, comparison: str, values: tuple[Any, ...]) -> Wanted:
    """CSNs are compared as text by a query: only where all texts have one length is that the order of the numbers."""
    if comparison not in ("=", "in") and not all(_is_lsn(str(value)) for value in values):
        return wanted
    try:
        found = [Csn.parse(str(value)) for value in values]
    except ValueError:
        return wanted
    if any(str(csn) != str(value) for csn, value in zip(found, values, strict=True)):
        return wanted
    low, high = _bounds(comparison, found, lambda csn: csn.value)
    return replace(
        wanted,
        first_csn=_later(wanted.first_csn, low, lambda csn: csn.value),
        last_csn=_earlier(wanted.last_csn, high, lambda csn: csn.value),
    )


def _is_lsn(text: str) -> bool:
    return len(text) == 17 and text[8] == "/"


def _time(wanted: Wanted, comparison: str, values: tuple[Any, ...]) -> Wanted:
    if not all(isinstance(value, datetime) for value in values):
        return wanted
    found = [from_datetime(value if value.tzinfo else value.replace(tzinfo=UTC)) for value in values]
    low, high = _bounds(comparison, found, lambda time: time)
    return replace(
        wanted,
        first_time=_later(wanted.first_time, low, lambda time: time),
        last_time=_earlier(wanted.last_time, high, lambda time: time),
    )


def _bounds(comparison: str, values: list[Any], key: Callable[[Any], int]) -> tuple[Any, Any]:
    low = min(values, key=key) if comparison in ("=", "in", ">", ">=") and values else None
    high = max(values, key=key) if comparison in ("=", "in", "<", "<=") and values else None
    return low, high


def _later(one: Any, other: Any, key: Callable[[Any], int]) -> Any:
    known = [value for value in (one, other) if value is not None]
    return max(known, key=key) if known else None


def _earlier(one: Any, other: Any, key: Callable[[Any], int]) -> Any:
    known = [value for value in (one, other) if value is not None]
    return min(known, key=key) if known else None


_READERS: Final[dict[str, Callable[[Wanted, str, tuple[Any, ...]], Wanted]]] = {
    "op": _operations,
    "io_type": _operations,
    "csn": _csn,
    "commit_ts": _time,
    "io_time": _time,
}
