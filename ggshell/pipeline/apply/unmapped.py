"""Report what a mapping leaves out: columns that the target computes, columns without values, silent value changes."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from ggshell.pipeline.apply.target import TableMapping

Noted = Callable[[TableMapping, str], None]
"""Called with a mapping and one sentence about what it leaves out."""


def not_noted(mapping: TableMapping, text: str) -> None:
    """Ignore what a mapping leaves out."""


def unmapped(mapping: TableMapping, *, chosen: bool = False) -> list[str]:
    """Return what a mapping leaves out, one sentence per kind.

    ``chosen``: COLMAP names the columns and leaves out the others on purpose."""
    source, target = mapping.source, mapping.target
    mapped = [column for column in mapping.columns if column is not None]
    computed = [column.name for column in mapped if not column.writable]
    names = {column.name for column in mapped}
    lacking = [column.name for column in target.columns if column.writable and column.name not in names]
    found = []
    if computed:
        found.append(
            f"{target.name} computes {_columns(computed)} itself (generated): the values of {source.name} are not applied"
        )
    if lacking and not chosen:
        found.append(
            f"{source.name} has no value for {_columns(lacking)} of {target.name}: inserted rows get the default or NULL,"
            " and updates do not change it (a generated column of the source is in its log only if it is published)"
        )
    return found + _changed(mapping)


def _changed(mapping: TableMapping) -> list[str]:
    """Return the silent value changes, one sentence for all columns with the same two types."""
    names: dict[tuple[str, str, str], list[str]] = {}
    for mine, theirs in zip(mapping.source.columns, mapping.columns, strict=True):
        if theirs is not None and theirs.writable:
            changes = "; ".join(silent_changes(mine.type_name, theirs.holds or theirs.type_name))
            if changes:
                names.setdefault((theirs.type_name, mine.type_name, changes), []).append(theirs.name)
    return [
        f"{_columns(found)} of {mapping.target.name} {_is(found)} {theirs}, the source's {_is(found)} {mine}: {changes}"
        for (theirs, mine, changes), found in names.items()
    ]


def _columns(names: list[str]) -> str:
    return f"column{'s'[: len(names) != 1]} {', '.join(names)}"


def _is(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"


# Find column type conversions that silently change values: digits, times of day, blanks or order are lost, UTC is
# assumed.
#
# A value that does not fit at all is refused by the target. The conversions listed here are not: the database rounds,
# truncates or assumes UTC without an error. PostgreSQL's documentation, chapter "Data Types", describes each of them.
# Every session that reads the source or writes the target runs in UTC.


class Silent(StrEnum):
    """What happens to values, in the words of the warning."""

    CUT = "values may be rounded or cut without an error"
    TAKEN_AS_UTC = "values without a time zone are taken as UTC"
    SHOWN_IN_UTC = "values get the date and time that they have in UTC"
    OFFSET_DROPPED = "the time is kept as written, and its offset from UTC is dropped"


_TYPE = re.compile(
    r'(?P<base>"char"|[a-z][a-z0-9_ ]*?)\s*(?:\((?P<numbers>[-\d, ]+)\))?(?P<rest>\s+[a-z ]+)?(?P<array>(?:\[\])*)'
)
_ALIASES = {
    "decimal": "numeric",
    "number": "numeric",
    "double": "double precision",
    "float": "real",  # DuckDB's name; PostgreSQL's catalog has no type of this name
    "timestamp": "timestamp without time zone",
    "timestamptz": "timestamp with time zone",
    "timestamp_s": "timestamp without time zone(0)",
    "timestamp_ms": "timestamp without time zone(3)",
    "timestamp_ns": "timestamp without time zone",
    "time": "time without time zone",
    "timetz": "time with time zone",
    "bpchar": "character",
    "char": "character",
    "varchar": "character varying",
}
_BOUNDS = {
    f"{prefix}{kind}": base
    for kind in ("range", "multirange")
    for prefix, base in {
        "ts": "timestamp without time zone",
        "tstz": "timestamp with time zone",
        "date": "date",
    }.items()
}
"""Ranges are checked by the type of their bounds."""
_UNLIMITED = 1 << 20
_WITHOUT_ZONE = ("timestamp without time zone", "time without time zone")
_WITH_ZONE = ("timestamp with time zone", "time with time zone")
_WHOLE = ("smallint", "integer", "bigint", "tinyint", "hugeint")
_TEXTS = ("text", "character varying", "character", "name", '"char"', "json", "xml", "citext")
_LONGEST_NAME = 63


class _Type(NamedTuple):
    base: str
    numbers: tuple[int, ...]
    array: bool


def silent_changes(source: str, target: str) -> tuple[Silent, ...]:
    """Return the silent changes of a source column's values in a column of the target type; empty if there are none."""
    mine, theirs = _parse(source), _parse(target)
    if mine is None or theirs is None or mine == theirs:
        return ()
    zone = _zone(mine.base, theirs.base)
    return tuple(each for each in (zone, Silent.CUT if _narrows(mine, theirs) else None) if each is not None)


def _parse(text: str) -> _Type | None:
    match = _TYPE.fullmatch(text.strip().lower())
    if match is None:
        return None
    base = match["base"] + (match["rest"] or "")
    base = _ALIASES.get(base, base)
    base, _, digits = base.partition("(")
    numbers = tuple(int(number) for number in (match["numbers"] or digits.rstrip(")")).split(",") if number.strip())
    return _Type(_BOUNDS.get(base, base), numbers, bool(match["array"]))


def _zone(source: str, target: str) -> Silent | None:
    """Return what happens to the time zone, or to values without one."""
    if target not in (*_WITHOUT_ZONE, *_WITH_ZONE, "date"):
        return None
    if source == "timestamp with time zone":
        return Silent.SHOWN_IN_UTC if target != source else None
    if target in _WITH_ZONE:
        return Silent.TAKEN_AS_UTC if source in (*_WITHOUT_ZONE, "date", "interval") else None
    return Silent.OFFSET_DROPPED if source == "time with time zone" else None


def _narrows(source: _Type, target: _Type) -> bool:
    match target.base:
        case "date":
            return source.base.startswith("timestamp")
        case "time without time zone" | "time with time zone":
            return source.base.startswith("timestamp") or _fraction(source) > _fraction(target)
        case "timestamp without time zone" | "timestamp with time zone" | "interval":
            return _fraction(source) > _fraction(target)
        case "real":
            return source.base in ("double precision", "numeric", "integer", "bigint", "hugeint", "money")
        case "double precision":
            return source.base in ("numeric", "bigint", "hugeint", "money")
        case "numeric" | "money":
            return _scale(source) > _scale(target)
        case '"char"':
            return source.base != target.base
        case "name":
            return source.base in _TEXTS and (source.numbers or (_UNLIMITED,))[0] > _LONGEST_NAME
        case "character":
            return source.base in _TEXTS and source.base != target.base
        case "jsonb":
            return source.base in _TEXTS
    return False


def _fraction(found: _Type) -> int:
    """Return the number of fractional digits of seconds; 0 for a type without a time."""
    if not found.base.startswith(("time", "interval")):
        return 0
    return found.numbers[0] if found.numbers else 6


def _scale(found: _Type) -> int:
    """Return the number of digits that a number may have after the decimal point."""
    if found.base in _WHOLE:
        return 0
    if found.base == "money":
        return 2
    if found.base == "numeric" and found.numbers:
        return found.numbers[1] if len(found.numbers) > 1 else 0
    return _UNLIMITED if found.base in ("numeric", "real", "double precision") else 0
