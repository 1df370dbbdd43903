"""Resolve the columns of COMPARECOLS and RESOLVECONFLICT for one table, and the order of their values (USEMAX, USEMIN)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from ggshell.errors import ApplyError
from ggshell.pipeline.apply.target import TableMapping
from ggshell.pipeline.transform.conflicts import (
    BY_GROUPS,
    Compared,
    ComparedExtent,
    Conflict,
    Method,
    Resolution,
    Resolutions,
)
from ggshell.record.families import family


class ColumnGroup(NamedTuple):
    """Columns that are resolved together; ``by`` and ``order``: for methods that compare a resolution column.

    ``key``: whether the group also decides about a change of the key: DEFAULT does, or the first group if there is none.
    """

    method: Method
    columns: frozenset[int]
    key: bool
    by: int = -1
    order: Order | None = None


Groups = Mapping[Conflict, Sequence[ColumnGroup]]


def column_groups(mapping: TableMapping, resolutions: Resolutions) -> Groups:
    """Return the groups of each conflict. Raises ApplyError for unknown columns or types that do not allow the method."""
    return {conflict: _groups(mapping, conflict, rules) for conflict, rules in resolutions.items()}


def _groups(mapping: TableMapping, conflict: Conflict, rules: Sequence[Resolution]) -> Sequence[ColumnGroup]:
    key = frozenset(mapping.key)
    everything = frozenset(place for place in range(len(mapping.columns)) if mapping.writable(place)) - key
    named = [frozenset(_place(mapping, name, conflict) for name in rule.columns) - key for rule in rules]
    rest = everything.difference(*named)
    default = next((number for number, rule in enumerate(rules) if not rule.columns), None)
    if conflict in BY_GROUPS and default is None and rest:
        text = f"RESOLVECONFLICT ({conflict}, …) has no rule for {names_of(mapping, rest)}"
        raise _wrong(mapping, text, "add (DEFAULT, method)")
    return tuple(
        _group(mapping, conflict, rule, named[number] if rule.columns else rest, number == (default or 0))
        for number, rule in enumerate(rules)
    )


def _group(
    mapping: TableMapping, conflict: Conflict, rule: Resolution, columns: frozenset[int], key: bool
) -> ColumnGroup:
    if rule.method is Method.DELTA:
        others = {place for place in columns if not _is_number(mapping, place)}
        if others:
            text = f"USEDELTA requires numeric columns, not {names_of(mapping, others)}"
            raise _wrong(mapping, text, "name numeric columns in COLS", code="OGG-01901")
    if not rule.by:
        return ColumnGroup(rule.method, columns, key)
    by = _place(mapping, rule.by, conflict)
    column = mapping.column(by)
    order = order_of(column.base_type or column.type_name)
    if order is None:
        text = f"{rule.method} cannot compare {rule.by}: values of type {column.type_name} have no order"
        raise _wrong(mapping, text, "name a column of numbers, dates, times or text", code="OGG-01901")
    return ColumnGroup(rule.method, columns, key, by, order)


def compared_columns(mapping: TableMapping, rules: Sequence[Compared], operation: str, own: int) -> frozenset[int]:
    """Return the columns besides the key whose old values must match the target's row.

    ``own``: the number of source columns; the columns that COLMAP computes follow them. Raises ApplyError for an unknown
    column."""
    found: frozenset[int] = frozenset()
    everything = frozenset(
        place for place, column in enumerate(mapping.columns[:own]) if column is not None and column.comparable
    )
    for rule in rules:
        if rule.operation != operation:
            continue
        named = frozenset(_place(mapping, name, f"ON {operation}", "COMPARECOLS") for name in rule.columns)
        match rule.extent:
            case ComparedExtent.ALL:
                found |= everything
            case ComparedExtent.EXCLUDING:
                found |= everything - named
            case ComparedExtent.INCLUDING:
                found |= _known_before(mapping, named, own)
    return found - frozenset(mapping.key)


def _known_before(mapping: TableMapping, named: frozenset[int], own: int) -> frozenset[int]:
    computed = {place for place in named if place >= own}
    if computed:
        text = (
            f"COMPARECOLS names {names_of(mapping, computed)}, which COLMAP computes: the source has no old value of it"
        )
        raise _wrong(mapping, text, "name columns that are mapped unchanged")
    return named


def without_comparisons(mapping: TableMapping) -> TableMapping:
    """Return a mapping that identifies rows by their key alone, for operations that replace a refused one."""
    return _plain(mapping) if mapping.compared_updates or mapping.compared_deletes else mapping


@lru_cache(maxsize=1024)
def _plain(mapping: TableMapping) -> TableMapping:
    """Return the same object each time, because targets know a mapping by its identity."""
    return mapping._replace(compared_updates=frozenset(), compared_deletes=frozenset())


def require_befores(mapping: TableMapping, compared: frozenset[int], held: Collection[int], operation: str) -> None:
    """Raises ApplyError if a record lacks old values that COMPARECOLS compares: a conflict would go undetected.

    Databases call this when they build a statement for records with a new set of columns, so it costs nothing per row.
    """
    missing = compared.difference(held)
    if not missing:
        return
    wanted = "LOGALLSUPCOLS" if operation == "UPDATE" else "NOCOMPRESSDELETES or LOGALLSUPCOLS"
    raise ApplyError(
        f"COMPARECOLS (ON {operation} …) compares {names_of(mapping, missing)}; the record does not contain their values before"
        " the change",
        code="OGG-01920",
        hint=f"set {wanted} in Extract's parameter file, and ADD TRANDATA {mapping.source.name}, ALLCOLS",
    )


def names_of(mapping: TableMapping, places: Collection[int]) -> str:
    """Return the target's names of columns, as a list for messages."""
    return ", ".join(mapping.column(place).name for place in sorted(places))


def _place(mapping: TableMapping, name: str, what: str, clause: str = "RESOLVECONFLICT") -> int:
    """Return the index of a target column by its name, in any case."""
    wanted = name.lower()
    found = [place for place, column in enumerate(mapping.columns) if column and column.name.lower() == wanted]
    if not found:
        text = f"{clause} ({what}, …) names column {name}, which {mapping.target.name} does not get from the source"
        hint = f"correct the column's name; if a wildcard selects the table, write MAP {mapping.source.name} before it"
        raise _wrong(mapping, text, f"{hint}, without this column", code="OGG-00201")
    return found[0]


def _is_number(mapping: TableMapping, place: int) -> bool:
    column = mapping.column(place)
    type_name = (column.base_type or column.type_name).lower()
    return family(type_name) == "number" and not type_name.startswith("money")


def _wrong(mapping: TableMapping, text: str, hint: str, code: str = "GGS-00511") -> ApplyError:
    return ApplyError(text, code=code, where=f"MAP {mapping.source.name}", hint=hint)


# The order of a column's values, derived from their texts.
#
# It is the same on every database, so that two sites agree on which value is greater.


Rank = tuple[int, int | Decimal] | str
Order = Callable[[bytes], Rank]
"""The rank of a value: greater values have greater ranks, equal values have equal ranks."""

_MOMENT = re.compile(
    r"(\d{4,})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?"
    r"(?:([-+])(\d\d)(?::?(\d\d))?(?::?(\d\d))?)?( \(?BC\)?)?"
)
_TEXTS = frozenset(
    {"text", "varchar", "varchar2", "nvarchar2", "character", "char", "nchar", "bpchar", "name", "string"}
)
_SECOND = 1_000_000_000
"""In nanoseconds, the finest resolution that a database keeps."""


def order_of(type_name: str) -> Order | None:
    """The order of a type's values. None if their texts do not define it (an interval, an array, an enum)."""
    lowered = type_name.lower()
    kind = family(lowered)
    if kind == "number":
        return None if lowered.startswith("money") else _number
    if kind == "clock":
        return None if "with time zone" in lowered else _text
    if lowered.startswith(("tinyint", "year")):
        return _number
    if kind in ("uuid", "bytes"):
        return _text
    if lowered.startswith(("timestamp", "datetime")):
        return _moment
    first = lowered.replace("(", " ").replace('"', " ").split()
    return _BY_FAMILY.get(kind or "") or (_text if first and kind is None and first[0] in _TEXTS else None)


def _number(value: bytes) -> Rank:
    """NaN is greater than every other number, as in PostgreSQL."""
    found = Decimal(value.decode())
    return (1, 0) if found.is_nan() else (0, found)


def _truth(value: bytes) -> Rank:
    return (int(value[:1] in (b"t", b"T", b"1")), 0)


def _text(value: bytes) -> Rank:
    """By code points, regardless of the collations of the two databases."""
    return value.decode()


def _moment(value: bytes) -> Rank:
    text = value.decode()
    if text.lower().endswith("infinity"):
        return (-1 if text.startswith("-") else 1, 0)
    match = _MOMENT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text} is not a date")
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    hour, minute, second = (int(match[place] or 0) for place in (4, 5, 6))
    offset = int(match[9] or 0) * 3600 + int(match[10] or 0) * 60 + int(match[11] or 0)
    seconds = hour * 3600 + minute * 60 + second - (-offset if match[8] == "-" else offset)
    fraction = int((match[7] or "").ljust(9, "0"))
    return (0, (_days(1 - year if match[12] else year, month, day) * 86_400 + seconds) * _SECOND + fraction)


def _days(year: int, month: int, day: int) -> int:
    """Days since a fixed date of the Gregorian calendar.

    Years begin in March, so that a leap day is the last day of its year.
    """
    year -= month <= 2
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return year * 365 + year // 4 - year // 100 + year // 400 + day_of_year


_BY_FAMILY: dict[str, Order] = {"moment": _moment, "truth": _truth}
