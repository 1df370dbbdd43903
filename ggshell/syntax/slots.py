"""Placeholders: what may stand for each, and what value it gives.  One table, by name; unknown names take any word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

_QUOTED = r"\"[^\"\n]*\"|'[^'\n]*'"
_PLAIN = r"(?!!)[^\s,;()]+"


class SlotType(NamedTuple):
    """A pattern, what its text becomes, and how messages call it."""

    pattern: str
    convert: Callable[[str], Any]
    called: str


def unquoted(text: str) -> str:
    """Text without the quotes around it."""
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text


def _names(text: str) -> tuple[str, ...]:
    return tuple(unquoted(part.strip()) for part in text[1:-1].split(",") if part.strip())


WORD = SlotType(f"{_QUOTED}|{_PLAIN}", unquoted, "a word")
NUMBER = SlotType(r"\d+", int, "a number")
GROUP = SlotType(r"[A-Za-z0-9_*?]+", str.upper, "a group name")
TABLE_PART = r"(?:\"[^\"\n]+\"|[^\s,;().!\"]+)"
TABLE = SlotType(rf"{TABLE_PART}(?:\.{TABLE_PART}){{0,2}}", str, "a table")
BODY = SlotType(r"\((?:[^()'\"]|'[^']*'|\"[^\"]*\"|\((?:[^()]|\([^()]*\))*\))*\)", str, "a list in parentheses")
NAMES = SlotType(r"\([^()]*\)", _names, "names in parentheses")
REST = SlotType(r"[^\n]+", str.strip, "text")
WHEN = SlotType(r"\d{4}-\d\d-\d\d(?:[ T]+\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?Z?)?", str, "a time (yyyy-mm-dd hh:mi:ss)")
LSN = SlotType(r"[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}|\d+", str, "a log position")
SECRET = SlotType(rf"{_QUOTED}|[^\s,;]+", unquoted, "a password")
LOGIN = SlotType(rf"{_QUOTED}|[^\s,;]+", unquoted, "a user or connection")
WILDCARD_LIST = SlotType(r"[A-Za-z0-9_*?]+", str.upper, "a group name")

SLOTS: dict[str, SlotType] = {
    "group_name": GROUP,
    "path_name": GROUP,
    "number": NUMBER,
    "n": NUMBER,
    "megabytes": NUMBER,
    "objective": SlotType(r"\d+(?:\.\d+)?\s*%?", lambda text: text.rstrip("% "), "a share in percent"),
    "limit_in_seconds": SlotType(r"\d+(?:\.\d+)?(?:\s*[sS]\b)?", lambda text: text.rstrip("sS "), "a time in seconds"),
    "seconds": NUMBER,
    "port": SlotType(r"\d+(?:-\d+)?", str, "a port"),
    "table": TABLE,
    "source_table": TABLE,
    "target_table": TABLE,
    "checkpoint_table": TABLE,
    "columns": NAMES,
    "body": BODY,
    "text": REST,
    "rest": REST,
    "when": WHEN,
    "csn": LSN,
    "lsn": LSN,
    "password": SECRET,
    "userid": LOGIN,
    "report": SlotType(r"[A-Za-z0-9_]+", str.upper, "a group, with the age of an older report behind it"),
}


def slot_type(name: str) -> SlotType:
    """What a placeholder takes."""
    return SLOTS.get(name, WORD)
