"""COMPARECOLS and RESOLVECONFLICT, read and frozen: which columns are compared, and which side wins a conflict."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from ggshell.errors import StatementError
from ggshell.language.values import split_list


class Conflict(StrEnum):
    """A kind of conflict with the target's row."""

    INSERT_EXISTS = "INSERTROWEXISTS"
    UPDATE_EXISTS = "UPDATEROWEXISTS"
    UPDATE_MISSING = "UPDATEROWMISSING"
    DELETE_EXISTS = "DELETEROWEXISTS"
    DELETE_MISSING = "DELETEROWMISSING"


class Method(StrEnum):
    """How a conflict is resolved."""

    OVERWRITE = "OVERWRITE"
    IGNORE = "IGNORE"
    DISCARD = "DISCARD"
    MAX = "USEMAX"
    MAX_EQUAL = "USEMAXEQ"
    MIN = "USEMIN"
    MIN_EQUAL = "USEMINEQ"
    DELTA = "USEDELTA"


BY_COLUMN = frozenset({Method.MAX, Method.MAX_EQUAL, Method.MIN, Method.MIN_EQUAL})
"""The methods that compare a resolution column."""
_OF_ROWS = frozenset({Method.OVERWRITE, Method.IGNORE, Method.DISCARD})
METHODS: Mapping[Conflict, frozenset[Method]] = MappingProxyType(
    {
        Conflict.INSERT_EXISTS: _OF_ROWS | BY_COLUMN,
        Conflict.UPDATE_EXISTS: _OF_ROWS | BY_COLUMN | {Method.DELTA},
        Conflict.UPDATE_MISSING: _OF_ROWS,
        Conflict.DELETE_EXISTS: _OF_ROWS,
        Conflict.DELETE_MISSING: _OF_ROWS - {Method.OVERWRITE},
    }
)
"""The methods that each conflict allows. A missing row has no value to compare; a delete has no columns to set."""
BY_GROUPS = frozenset({Conflict.INSERT_EXISTS, Conflict.UPDATE_EXISTS})
"""The conflicts that are resolved per group of columns. The others concern whole rows."""


class ComparedExtent(StrEnum):
    """Which columns COMPARECOLS compares."""

    ALL = "ALL"
    KEY = "KEY"
    INCLUDING = "KEYINCLUDING"
    EXCLUDING = "ALLEXCLUDING"


@dataclass(frozen=True, slots=True)
class Compared:
    """COMPARECOLS for one operation (UPDATE, DELETE)."""

    operation: str
    extent: ComparedExtent
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Resolution:
    """A method for a group of columns.

    ``columns`` is empty for DEFAULT; ``by`` is the column that USEMAX and similar compare.
    """

    method: Method
    by: str = ""
    columns: tuple[str, ...] = ()


Resolutions = dict[Conflict, tuple[Resolution, ...]]
AllResolutions = tuple[tuple[Conflict, tuple[Resolution, ...]], ...]
_DETECTED_BY: Mapping[Conflict, str] = MappingProxyType(
    {Conflict.UPDATE_EXISTS: "UPDATE", Conflict.DELETE_EXISTS: "DELETE"}
)
"""The conflicts that only COMPARECOLS detects, with the operation that it compares."""
_METHOD = re.compile(r"(?i)(\w+)\s*(?:\(\s*([^)]*?)\s*\))?")
_COMPARED = re.compile(r"(?is)\s*ON\s+(UPDATE|DELETE)\s+(ALLEXCLUDING|KEYINCLUDING|ALL|KEY)\s*(?:\(([^)]*)\))?\s*")


def read_compared(body: str, place: str) -> tuple[Compared, ...]:
    """COMPARECOLS. Raises StatementError."""
    found: list[Compared] = []
    for part in split_list(body.strip()[1:-1]):
        match = _COMPARED.fullmatch(part)
        if match is None or (match[3] is None) is (match[2].upper() in ("ALLEXCLUDING", "KEYINCLUDING")):
            raise _wrong("COMPARECOLS", part, place, "for example COMPARECOLS (ON UPDATE ALL, ON DELETE KEY)")
        found.append(Compared(match[1].upper(), ComparedExtent(match[2].upper()), _names(match[3] or "")))
    return tuple(found)


def read_resolutions(bodies: Sequence[str], compared: Sequence[Compared], place: str) -> AllResolutions:
    """Every RESOLVECONFLICT of a MAP, checked against its COMPARECOLS. Raises StatementError."""
    found = tuple(read_resolution(body, place) for body in bodies)
    conflicts = [conflict for conflict, _ in found]
    for conflict, groups in found:
        if conflicts.count(conflict) > 1:
            raise _error(f"RESOLVECONFLICT names {conflict} twice", place, "write all its column groups in one")
        operation = _DETECTED_BY.get(conflict)
        extents = {each.extent for each in compared if each.operation == operation}
        # Without a comparison every delete finds its row, which is what OVERWRITE asks for.
        plain = conflict is Conflict.DELETE_EXISTS and groups[0].method is Method.OVERWRITE
        if operation and not plain and not extents - {ComparedExtent.KEY}:
            text = f"RESOLVECONFLICT ({conflict}, …) never applies: no column besides the key is compared"
            raise _error(text, place, f"add COMPARECOLS (ON {operation} ALL)")
    return found


def read_resolution(body: str, place: str) -> tuple[Conflict, tuple[Resolution, ...]]:
    """One RESOLVECONFLICT. Raises StatementError."""
    first, *groups = split_list(body.strip()[1:-1])
    if first.strip().upper() not in set(Conflict) or not groups:
        hint = f"write one of {', '.join(Conflict)}, then (DEFAULT, method)"
        raise _wrong("RESOLVECONFLICT", first, place, hint)
    conflict = Conflict(first.strip().upper())
    found = tuple(_group(group, place) for group in groups)
    _require_fit(conflict, found, place)
    return conflict, found


def _require_fit(conflict: Conflict, groups: Sequence[Resolution], place: str) -> None:
    """Raise StatementError for a method that the conflict does not allow, and for a column in two groups."""
    allowed = METHODS[conflict]
    for group in groups:
        if group.method not in allowed:
            hint = f"use one of {', '.join(method for method in Method if method in allowed)}"
            raise _error(f"{conflict} cannot be resolved with {group.method}", place, hint, code="OGG-01901")
        if group.columns and conflict not in BY_GROUPS:
            text = f"{conflict} resolves whole rows: COLS is not valid"
            raise _error(text, place, "write (DEFAULT, method)", code="OGG-01901")
    names = [name.lower() for group in groups for name in group.columns or ("DEFAULT",)]
    for name in names:
        if names.count(name) > 1:
            what = name if name == "DEFAULT" else f"column {name}"
            raise _error(f"RESOLVECONFLICT ({conflict}, …) names {what} twice", place, "name it once")


def _group(text: str, place: str) -> Resolution:
    parts = [part.strip() for part in split_list(text.strip()[1:-1])] if text.strip().startswith("(") else []
    match = _METHOD.fullmatch(parts[1]) if len(parts) in (2, 3) else None
    if match is None or match[1].upper() not in set(Method):
        raise _wrong("RESOLVECONFLICT", text, place, f"(name, method [, COLS (columns)]); methods: {', '.join(Method)}")
    method, by = Method(match[1].upper()), (match[2] or "").strip('"')
    if bool(by) is not (method in BY_COLUMN):
        hint = "USEMAX, USEMAXEQ, USEMIN and USEMINEQ name a column in parentheses, the other methods do not"
        raise _wrong("RESOLVECONFLICT", parts[1], place, hint, code="OGG-01906" if not by else None)
    columns: tuple[str, ...] = ()
    if len(parts) == 3:
        listed = re.fullmatch(r"(?is)COLS\s*\((.*)\)", parts[2])
        if listed is None:
            raise _wrong("RESOLVECONFLICT", parts[2], place, "COLS (columns)")
        columns = _names(listed[1])
    if bool(columns) is (parts[0].upper() == "DEFAULT"):
        hint = "DEFAULT takes no COLS; every other name requires COLS (columns)"
        raise _wrong("RESOLVECONFLICT", text, place, hint)
    return Resolution(method, by, columns)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip().strip('"') for name in text.split(",") if name.strip())


def _wrong(clause: str, text: str, place: str, hint: str, code: str | None = None) -> StatementError:
    return StatementError(
        f"{clause} is not valid: {text.strip()}", where=place, hint=hint, page=clause.lower(), code=code
    )


def _error(text: str, place: str, hint: str, code: str | None = None) -> StatementError:
    return StatementError(text, where=place, hint=hint, page="resolveconflict", code=code)
