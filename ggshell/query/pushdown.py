"""Turns a query's conditions into what the reader can skip: files, transactions, tables and operations.

Conditions are (column, comparison, value). The reader never skips more than they exclude, so an engine can, and does, apply
them again to the rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from ggshell.clock import from_datetime, to_datetime
from ggshell.files import read_json
from ggshell.trail import iotypes
from ggshell.trail.columnar import EVERYTHING, RowFilter
from ggshell.types import Csn


class Condition(NamedTuple):
    """One of several conditions that must all hold. ``comparison``: one of = in < <= > >=; ``value``: a tuple for ``in``."""

    column: str
    comparison: str
    value: Any


def conditions_text(conditions: Iterable[Condition]) -> str:
    """Conditions as the text of a ``ggtrail`` option: JSON, with times as microseconds since 1970."""
    return json.dumps([[each.column, each.comparison, _plain_value(each.value)] for each in conditions])


def _plain_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return {"microseconds": from_datetime(value)}
    return [_plain_value(each) for each in value] if isinstance(value, tuple) else value


def conditions_from(text: str) -> list[Condition]:
    """The conditions in such an option."""
    return [Condition(column, comparison, _read(value)) for column, comparison, value in read_json(text or "[]")]


def _read(value: Any) -> Any:
    if isinstance(value, dict):
        return to_datetime(value["microseconds"])
    return tuple(map(_read, value)) if isinstance(value, list) else value


def wanted_by(conditions: Iterable[Condition]) -> RowFilter:
    """The part of the conditions that the reader can apply."""
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
    """A pattern that matches at least this name: brackets, which would begin a character class, match any character."""
    return text.replace("[", "?")


def _operations(wanted: RowFilter, comparison: str, values: tuple[Any, ...]) -> RowFilter:
    if comparison not in ("=", "in"):
        return wanted
    try:
        numbers = [iotypes.io_type_number(str(value)) for value in values]
    except ValueError:
        return wanted
    return replace(wanted, operations=tuple(map(str, numbers)))


def _csn(wanted: RowFilter, comparison: str, values: tuple[Any, ...]) -> RowFilter:
    """Queries compare CSNs as text. That is the order of the numbers only if all texts have the same length."""
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


def _time(wanted: RowFilter, comparison: str, values: tuple[Any, ...]) -> RowFilter:
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


_READERS: Final[dict[str, Callable[[RowFilter, str, tuple[Any, ...]], RowFilter]]] = {
    "op": _operations,
    "io_type": _operations,
    "csn": _csn,
    "commit_ts": _time,
    "io_time": _time,
}
