"""Placeholders: what may stand for each, and what value it gives.  One table, by name; unknown names take any word."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from ggshell.syntax.balanced import balanced_end, split_list, unclosed

_QUOTED = r"\"[^\"\n]*\"|'[^'\n]*'"
_PLAIN = r"(?!!(?:[\s;]|$))[^\s,;()]+"
_UNITS = r"SECONDS?|SECS?|MINUTES?|MINS?|HOURS?|HRS?|DAYS?|WEEKS?|[SMHD]"
PARENTHESISED, EXPRESSION = "()", "@()"
_HEAD = re.compile(r"@?\w*\s*(?=\()")


class SlotType(NamedTuple):
    """A pattern, what its text becomes, and how messages call it.

    ``()`` stands for what is balanced in parentheses, ``@()`` for that with a function's name before it, or for a word.
    """

    pattern: str
    convert: Callable[[str], Any]
    called: str

    def end(self, text: str, place: int) -> int:
        """Where a value that begins at a place ends, -1 when there is none."""
        if self.pattern == PARENTHESISED:
            return balanced_end(text, place)
        if self.pattern == EXPRESSION:
            head = _HEAD.match(text, place)
            return balanced_end(text, head.end()) if head else WORD.end(text, place)
        match = _compiled(self.pattern).match(text, place)
        return match.end() if match and match.end() > place else -1

    def broken(self, text: str, place: int) -> str:
        """What is wrong with a value that does begin at a place; empty when none does."""
        return unclosed(text, place) if self.pattern == PARENTHESISED else _open_quote(text, place)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def _open_quote(text: str, place: int) -> str:
    quote = text[place : place + 1]
    return "the quote is never closed" if quote in ("'", '"') and text.find(quote, place + 1) < 0 else ""


def unquoted(text: str) -> str:
    """Text without the quotes around it."""
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text


def _names(text: str) -> tuple[str, ...]:
    return tuple(unquoted(part) for part in split_list(text[1:-1]) if part)


def _sql_text(text: str) -> str:
    """Text without the quotes around it; within, that quote is doubled."""
    return text[1:-1].replace(text[0] * 2, text[0])


WORD = SlotType(f"{_QUOTED}|{_PLAIN}", unquoted, "a word")
NUMBER = SlotType(r"\d{1,40}(?![.\d])", int, "a number")
SIGNED = SlotType(r"[-+]?\d{1,40}(?![.\d])", int, "a number")
GROUP = SlotType(r"[A-Za-z0-9_*?]+", str.upper, "a group name")
TABLE_PART = r"(?:\"[^\"\n]+\"|[^\s,;().!\"']+)"
TABLE = SlotType(rf"{TABLE_PART}(?:\.{TABLE_PART}){{0,2}}", str, "a table")
NAME = SlotType(rf"{_QUOTED}|[^\s,;().!\"']+", unquoted, "a name")
BODY = SlotType(PARENTHESISED, str, "a list in parentheses")
NAMES = SlotType(PARENTHESISED, _names, "names in parentheses")
REST = SlotType(r"[^\n]+", str.strip, "text")
QUOTED = SlotType(_QUOTED, unquoted, "a quoted text")
SQL = SlotType(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"", _sql_text, "SQL in quotes")
FILE = SlotType(f"{_QUOTED}|{_PLAIN}", unquoted, "a file")
DIRECTORY = SlotType(f"{_QUOTED}|{_PLAIN}", unquoted, "a directory")
TRAIL = SlotType(f"{_QUOTED}|{_PLAIN}", unquoted, "a trail")
ALIAS = SlotType(f"{_QUOTED}|{_PLAIN}", unquoted, "an alias")
HOST = SlotType(rf"{_QUOTED}|\[[0-9A-Fa-f:]+\]|{_PLAIN}", unquoted, "a host")
SIZE = SlotType(r"\d+(?:\.\d+)?\s*(?:[KMGT]B?|B)?(?![\w.])", str, "a size (500MB, 1G)")
INTERVAL = SlotType(rf"\d+(?:\.\d+)?\s*(?:{_UNITS})?(?![\w.])", str, "an interval (20M, 4H, 600sec)")
PERCENT = SlotType(r"\d{1,3}(?:\.\d+)?\s*%?(?![\w.])", str, "a percentage")
_DATE = r"\d{4}-\d\d?-\d\d?"
_CLOCK = r"\d\d?:\d\d(?::\d\d(?:\.\d{1,9})?)?"
WHEN = SlotType(rf"{_DATE}(?:(?:[ T:]|\s+){_CLOCK}Z?)?(?![\w:])", str, "a time (yyyy-mm-dd hh:mi:ss)")
TIME = SlotType(rf"[\"']?{_DATE}(?:(?:[ T:]|\s+){_CLOCK}Z?)?[\"']?(?![\w:])|{_CLOCK}(?![\w:])", unquoted, WHEN.called)
_LOOSE_DATE, _LOOSE_CLOCK = r"(?:\d{4}|\d{2})[-/]\d\d?[-/]\d\d?", r"\d\d?(?::\d\d?(?::\d\d?(?:\.[\d.]{1,7})?)?)?Z?"
LOOSE_TIME = SlotType(
    rf"{_QUOTED}|(?:{_LOOSE_DATE}(?:(?:[T:]|\s+){_LOOSE_CLOCK})?|{_LOOSE_CLOCK})(?![\w:/-])", unquoted, WHEN.called
)
LSN = SlotType(
    r"(?:0x)?[0-9A-F]{1,8}/[0-9A-F]{1,8}(?!\w)|[0-9A-F]+(?::[0-9A-F]+){2}(?!\w)|\d+(?!\w)", str, "a log position"
)
CSN = SlotType(
    rf"{_QUOTED}|[0-9A-F]{{1,8}}/[0-9A-F]{{1,8}}(?!\w)|[0-9A-F]+(?:[:.,-][0-9A-F]+)*(?!\w)", unquoted, "a CSN"
)
SCN = SlotType(r"\d+(?:\.\d+)?(?!\w)", str, "an SCN")
TRANSACTION = SlotType(r"\w+(?:[.:/-]\w+)*", str, "a transaction's id")
SECRET = SlotType(rf"{_QUOTED}|[^\s,;]+", unquoted, "a password")
LOGIN = SlotType(rf"{_QUOTED}|[^\s,;]+", unquoted, "a user or connection")
MACRO = SlotType(r"[^\s\w;,()'\"]\w[\w$-]*", str, "a macro's name (#name)")

SLOTS: dict[str, SlotType] = {
    "group_name": GROUP,
    "path_name": GROUP,
    "process_name": GROUP,
    "report": SlotType(r"[A-Za-z0-9_]+", str.upper, "a group, with the age of an older report behind it"),
    "number": NUMBER,
    "n": NUMBER,
    "megabytes": NUMBER,
    "objective": SlotType(r"\d+(?:\.\d+)?\s*%?", lambda text: text.rstrip("% "), "a share in percent"),
    "limit_in_seconds": SlotType(r"\d+(?:\.\d+)?(?:\s*[sS]\b)?", lambda text: text.rstrip("sS "), "a time in seconds"),
    "seconds": NUMBER,
    "signed": SIGNED,
    "percent": PERCENT,
    "size": SIZE,
    "interval": INTERVAL,
    "port": SlotType(r"\d+(?:\s*-\s*\d+)?(?![\w.])", str, "a port"),
    "host": HOST,
    "file": FILE,
    "directory": DIRECTORY,
    "trail": TRAIL,
    "alias": ALIAS,
    "domain": SlotType(f"{_QUOTED}|{_PLAIN}", unquoted, "a domain"),
    "table": TABLE,
    "source_table": TABLE,
    "target_table": TABLE,
    "checkpoint_table": TABLE,
    "schema": SlotType(rf"{TABLE_PART}(?:\.{TABLE_PART})?", unquoted, "a schema"),
    "container": SlotType(TABLE_PART, unquoted, "a container"),
    "column": SlotType(TABLE_PART, str, "a column"),
    "columns": NAMES,
    "body": BODY,
    "expression": SlotType(EXPRESSION, str, "an expression"),
    "text": REST,
    "rest": REST,
    "command_text": REST,
    "quoted": QUOTED,
    "sql": SQL,
    "when": WHEN,
    "until": WHEN,
    "time": TIME,
    "time_string": LOOSE_TIME,
    "csn": CSN,
    "lsn": LSN,
    "scn": SCN,
    "transaction_id": TRANSACTION,
    "password": SECRET,
    "userid": LOGIN,
    "macro_name": MACRO,
}


def slot_type(name: str) -> SlotType:
    """What a placeholder takes."""
    return SLOTS.get(name, WORD)
