"""COMPARECOLS and RESOLVECONFLICT, read and frozen: which columns must be as they were, and who wins when they are not."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from ggshell.errors import StatementError
from ggshell.syntax.balanced import split_list


class Conflict(StrEnum):
    """What may be wrong with the target's row."""

    INSERT_EXISTS = "INSERTROWEXISTS"
    UPDATE_EXISTS = "UPDATEROWEXISTS"
    UPDATE_MISSING = "UPDATEROWMISSING"
    DELETE_EXISTS = "DELETEROWEXISTS"
    DELETE_MISSING = "DELETEROWMISSING"


class Method(StrEnum):
    """How it is resolved."""

    OVERWRITE = "OVERWRITE"
    IGNORE = "IGNORE"
    DISCARD = "DISCARD"
    MAX = "USEMAX"
    MAX_EQUAL = "USEMAXEQ"
    MIN = "USEMIN"
    MIN_EQUAL = "USEMINEQ"
    DELTA = "USEDELTA"


class Extent(StrEnum):
    """Which columns COMPARECOLS compares."""

    ALL = "ALL"
    KEY = "KEY"
    INCLUDING = "KEYINCLUDING"
    EXCLUDING = "ALLEXCLUDING"


@dataclass(frozen=True, slots=True)
class Compared:
    """COMPARECOLS for one operation (UPDATE, DELETE)."""

    operation: str
    extent: Extent
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Resolution:
    """A method for a group of columns; ``columns`` is empty for DEFAULT, ``by`` the column that USEMAX and its like ask."""

    method: Method
    by: str = ""
    columns: tuple[str, ...] = ()


Resolutions = dict[Conflict, tuple[Resolution, ...]]
_METHOD = re.compile(r"(?i)(\w+)\s*(?:\(\s*([^)]*?)\s*\))?")
_COMPARED = re.compile(r"(?is)\s*ON\s+(UPDATE|DELETE)\s+(ALLEXCLUDING|KEYINCLUDING|ALL|KEY)\s*(?:\(([^)]*)\))?\s*")


def read_compared(body: str, place: str) -> tuple[Compared, ...]:
    """COMPARECOLS.  Raises StatementError."""
    found: list[Compared] = []
    for part in split_list(body.strip()[1:-1]):
        match = _COMPARED.fullmatch(part)
        if match is None or (match[3] is None) is (match[2].upper() in ("ALLEXCLUDING", "KEYINCLUDING")):
            raise _wrong("COMPARECOLS", part, place, "for example COMPARECOLS (ON UPDATE ALL, ON DELETE KEY)")
        found.append(Compared(match[1].upper(), Extent(match[2].upper()), _names(match[3] or "")))
    return tuple(found)


def read_resolution(body: str, place: str) -> tuple[Conflict, tuple[Resolution, ...]]:
    """One RESOLVECONFLICT.  Raises StatementError."""
    first, *groups = split_list(body.strip()[1:-1])
    if first.strip().upper() not in set(Conflict) or not groups:
        hint = f"one of {', '.join(Conflict)}, and behind it (DEFAULT, method)"
        raise _wrong("RESOLVECONFLICT", first, place, hint)
    return Conflict(first.strip().upper()), tuple(_group(group, place) for group in groups)


def _group(text: str, place: str) -> Resolution:
    parts = [part.strip() for part in split_list(text.strip()[1:-1])] if text.strip().startswith("(") else []
    match = _METHOD.fullmatch(parts[1]) if len(parts) in (2, 3) else None
    if match is None or match[1].upper() not in set(Method):
        raise _wrong("RESOLVECONFLICT", text, place, f"(name, method [, COLS (columns)]); methods: {', '.join(Method)}")
    method, by = Method(match[1].upper()), (match[2] or "").strip('"')
    if bool(by) is not method.name.startswith(("MAX", "MIN")):
        raise _wrong("RESOLVECONFLICT", parts[1], place, "USEMAX, USEMIN and their like name a column, others do not")
    columns: tuple[str, ...] = ()
    if len(parts) == 3:
        listed = re.fullmatch(r"(?is)COLS\s*\((.*)\)", parts[2])
        if listed is None:
            raise _wrong("RESOLVECONFLICT", parts[2], place, "COLS (columns)")
        columns = _names(listed[1])
    if bool(columns) is (parts[0].upper() == "DEFAULT"):
        raise _wrong("RESOLVECONFLICT", text, place, "DEFAULT has no COLS, every other name has")
    return Resolution(method, by, columns)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip().strip('"') for name in text.split(",") if name.strip())


def _wrong(clause: str, text: str, place: str, hint: str) -> StatementError:
    return StatementError(f"{clause} cannot be read: {text.strip()}", where=place, hint=hint, page=clause.lower())
