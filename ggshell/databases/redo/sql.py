"""SQL_REDO and SQL_UNDO to columns and values.

LogMiner prints three statements, always in the same form; one scan of a compiled pattern takes such a one apart, and the
lengths of what it found must add up to the statement's, so nothing was passed over.  What is printed otherwise
(PRINT_PRETTY_SQL, hand-made) is read token by token.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from ggshell.databases.redo.literals import VALUE, Value, value_of
from ggshell.errors import CaptureError

Pairs = list[tuple[bytes, Value]]
ROWID = b"ROWID"
"""The name under which the row's address stands in a where clause."""

_NAME = rb'"(?:[^"]|"")*"'
_TABLE = _NAME + rb"\s*\.\s*" + _NAME
_NAME_LIST = rb"\(\s*((?:" + _NAME + rb"\s*,?\s*)+)\)"
_INSERT = re.compile(rb"\s*insert\s+into\s+" + _TABLE + rb"\s*" + _NAME_LIST + rb"\s*values\s*\(", re.IGNORECASE)
_UPDATE = re.compile(rb"\s*update\s+" + _TABLE + rb"(?:\s+[A-Za-z]\w*)?\s+set\s+", re.IGNORECASE)
_DELETE = re.compile(rb"\s*delete\s+from\s+" + _TABLE + rb"(?:\s+[A-Za-z]\w*)?\s+where\s+", re.IGNORECASE)
_VALUES_BEGIN = b") values ("
_NAMES = re.compile(_NAME)
_VALUES = re.compile(VALUE)
_COMPARISON = rb'(?:[A-Za-z]\w*\.)?(?:"((?:[^"]|"")*)"|(ROWID))\s*(?:=\s*(' + VALUE + rb")|(IS\s+NULL))"
_PAIR = re.compile(_COMPARISON, re.IGNORECASE)
_FAST_PAIR = re.compile(rb'("[^"]*"|ROWID)( = ' + VALUE + rb"| IS NULL)(, | and | where |;|$)")
_SEPARATOR = re.compile(rb"\s*(,|and\b|where\b|;|$)\s*", re.IGNORECASE)
_BETWEEN = re.compile(rb"\s*(,|\))\s*")
_END = re.compile(rb"\s*;?\s*")


class Statement(NamedTuple):
    """A statement's columns: those it sets (of an insert: all), and those it finds the row by, ROWID among them."""

    assigned: Pairs
    where: Pairs


def parse_insert(sql: bytes) -> Statement:
    """An insert.  Raises CaptureError for anything else."""
    head = insert_head(sql)
    if head is None:
        raise _unreadable(sql, 0)
    names, begin = head
    return Statement(list(zip(names, insert_values(sql, begin, len(names)), strict=True)), [])


def insert_head(sql: bytes) -> tuple[tuple[bytes, ...], int] | None:
    """An insert's columns, and where its values begin."""
    at = sql.find(_VALUES_BEGIN)
    head = _usual_head(sql[:at]) if at > 0 else None
    if head is not None:
        return head, at + len(_VALUES_BEGIN)
    match = _INSERT.match(sql)
    return (column_names(match[1]), match.end()) if match is not None else None


@lru_cache(maxsize=4096)
def _usual_head(head: bytes) -> tuple[bytes, ...] | None:
    """The columns in what stands before an insert's values; None when that is no whole head."""
    match = _INSERT.fullmatch(head + _VALUES_BEGIN)
    return column_names(match[1]) if match is not None else None


def column_names(text: bytes) -> tuple[bytes, ...]:
    """The names in a list of quoted ones."""
    return tuple(unquoted(name[1:-1]) for name in _NAMES.findall(text))


def unquoted(name: bytes) -> bytes:
    return name.replace(b'""', b'"') if b'"' in name else name


def insert_values(sql: bytes, place: int, count: int) -> list[Value]:
    """An insert's values, from where they begin.  Raises CaptureError when they are not ``count``, or cannot be read."""
    tokens = _VALUES.findall(sql, place)
    length = len(sql) - 2 if sql.endswith(b";") else len(sql) - 1
    if len(tokens) != count or place + sum(map(len, tokens)) + count - 1 != length:
        tokens = _insert_slowly(sql, place)
        if len(tokens) != count:
            raise _unreadable(sql, place)
    return [
        (token[1:-1] or None) if token[0] == 0x27 and token.find(b"'", 1) == len(token) - 1 else value_of(token)
        for token in tokens
    ]


def _insert_slowly(sql: bytes, place: int) -> list[bytes]:
    tokens: list[bytes] = []
    while True:
        match = _VALUES.match(sql, re.compile(rb"\s*").match(sql, place).end())  # type: ignore[union-attr]
        behind = _BETWEEN.match(sql, match.end()) if match is not None else None
        if match is None or behind is None:
            raise _unreadable(sql, place)
        tokens.append(match[0])
        place = behind.end()
        if behind[1] == b")":
            if _END.fullmatch(sql, place) is None:
                raise _unreadable(sql, place)
            return tokens


def parse_update(sql: bytes) -> Statement:
    """An update.  Raises CaptureError for anything else."""
    head = _UPDATE.match(sql)
    if head is None:
        raise _unreadable(sql, 0)
    return _pairs(sql, head.end(), where=False)


def parse_delete(sql: bytes) -> Statement:
    """A delete.  Raises CaptureError for anything else."""
    head = _DELETE.match(sql)
    if head is None:
        raise _unreadable(sql, 0)
    return _pairs(sql, head.end(), where=True)


def _pairs(sql: bytes, place: int, *, where: bool) -> Statement:
    """``"COLUMN" = value`` and ``"COLUMN" IS NULL`` from a place to the end; assigned ones first unless ``where``."""
    found = _FAST_PAIR.findall(sql, place)
    whole = place + sum([len(name) + len(value) + len(behind) for name, value, behind in found]) == len(sql)
    if not whole or not _in_order([behind for _, _, behind in found], where=where):
        return _pairs_slowly(sql, place, where=where)
    result = Statement([], [])
    side = result.where if where else result.assigned
    for name, value, behind in found:
        column = name[1:-1] if name[0] == 0x22 else ROWID
        if value == b" IS NULL":
            side.append((column, None))
        elif value[3] == 0x27 and value.find(b"'", 4) == len(value) - 1:
            side.append((column, value[4:-1] or None))
        else:
            side.append((column, value_of(value[3:])))
        if behind == b" where ":
            side = result.where
    return result


def _in_order(separators: list[bytes], *, where: bool) -> bool:
    """Commas to ``where``, then ``and`` to the end."""
    count = len(separators)
    first = 0
    if not where:
        if b" where " not in separators:
            return False
        first = separators.index(b" where ") + 1
    return separators[: first - 1].count(b", ") == max(0, first - 1) and (
        separators[first : count - 1].count(b" and ") == count - 1 - first
    )


def _pairs_slowly(sql: bytes, place: int, *, where: bool) -> Statement:
    result = Statement([], [])
    side = result.where if where else result.assigned
    while True:
        match = _PAIR.match(sql, place)
        behind = _SEPARATOR.match(sql, match.end()) if match is not None else None
        if match is None or behind is None:
            raise _unreadable(sql, place)
        column = unquoted(match[1]) if match[1] is not None else ROWID
        side.append((column, value_of(match[3]) if match[3] is not None else None))
        place, separator = behind.end(), behind[1].lower()
        if separator == b"where" and side is result.assigned:
            side = result.where
        elif separator in (b"", b";"):
            if place != len(sql) or side is result.assigned:
                raise _unreadable(sql, place)
            return result
        elif separator == b"where" or (separator == b",") != (side is result.assigned):
            raise _unreadable(sql, behind.start())


def _unreadable(sql: bytes, place: int) -> CaptureError:
    text = sql.decode("utf-8", "replace")
    return CaptureError(f"SQL_REDO cannot be read at byte {place}: {text[:200]}", code="GGS-00521")
