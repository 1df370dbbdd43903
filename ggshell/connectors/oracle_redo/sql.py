"""Parses SQL_REDO and SQL_UNDO to columns and values.

LogMiner prints three statements, always in the same form. One scan of a compiled pattern splits such a statement, and
the lengths of the matches must add up to the length of the statement, so nothing was skipped. Any other form
(PRINT_PRETTY_SQL, written manually) is parsed token by token.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from ggshell.connectors.oracle_redo.literals import VALUE, Value, any_value, skipped, value_end, value_of
from ggshell.errors import CaptureError

Pairs = list[tuple[bytes, Value]]
ROWID = b"ROWID"
"""The name of the row's address in a where clause."""

_NAME = rb'"(?:[^"]|"")*"'
_TABLE = _NAME + rb"\s*\.\s*" + _NAME
_NAME_LIST = rb"\(\s*((?:" + _NAME + rb"\s*,?\s*)+)\)"
_INSERT = re.compile(rb"\s*insert\s+into\s+" + _TABLE + rb"\s*" + _NAME_LIST + rb"\s*values\s*\(", re.IGNORECASE)
_UPDATE = re.compile(rb"\s*update\s+" + _TABLE + rb"(?:\s+[A-Za-z]\w*)?\s+set\s+", re.IGNORECASE)
_DELETE = re.compile(rb"\s*delete\s+from\s+" + _TABLE + rb"(?:\s+(?!where\b)[A-Za-z]\w*)?\s+where\s+", re.IGNORECASE)
_DELETE_ALL = re.compile(rb"\s*delete\s+from\s+" + _TABLE + rb"(?:\s+[A-Za-z]\w*)?\s*;\s*", re.IGNORECASE)
_VALUES_BEGIN = b") values ("
_NAMES = re.compile(_NAME)
_VALUES = re.compile(VALUE)
_COLUMN = re.compile(rb'(?:[A-Za-z]\w*\.)?(?:"((?:[^"]|"")*)"|(ROWID))\s*(?:(=)|IS\s+NULL)', re.IGNORECASE)
_FAST_PAIR = re.compile(rb'("[^"]*"|ROWID)( = ' + VALUE + rb"| IS NULL)(, | and | where |;|$)")
_SEPARATOR = re.compile(rb"\s*(,|and\b|where\b|;|$)\s*", re.IGNORECASE)
_AND = re.compile(rb"\s+and\s+", re.IGNORECASE)
_SPACE = re.compile(rb"\s*")
_BETWEEN = re.compile(rb"\s*(,|\))\s*")
_END = re.compile(rb"\s*;?\s*")


class RedoStatement(NamedTuple):
    """The columns of a statement: those that it sets (of an insert, all), and those that find the row, with ROWID."""

    assigned: Pairs
    where: Pairs


def parse_insert(sql: bytes) -> RedoStatement:
    """Parse an insert. Raises CaptureError for anything else."""
    head = insert_head(sql)
    if head is None:
        raise _unreadable(sql, 0)
    names, begin = head
    return RedoStatement(list(zip(names, insert_values(sql, begin, len(names)), strict=True)), [])


def insert_head(sql: bytes) -> tuple[tuple[bytes, ...], int] | None:
    """The columns of an insert, and the offset at which its values begin."""
    at = sql.find(_VALUES_BEGIN)
    head = _usual_head(sql[:at]) if at > 0 else None
    if head is not None:
        return head, at + len(_VALUES_BEGIN)
    match = _INSERT.match(sql)
    return (column_names(match[1]), match.end()) if match is not None else None


@lru_cache(maxsize=4096)
def _usual_head(head: bytes) -> tuple[bytes, ...] | None:
    """The columns in the text before an insert's values. None if the text is not a complete head."""
    match = _INSERT.fullmatch(head + _VALUES_BEGIN)
    return column_names(match[1]) if match is not None else None


def column_names(text: bytes) -> tuple[bytes, ...]:
    """The names in a list of quoted names."""
    return tuple(unquoted(name[1:-1]) for name in _NAMES.findall(text))


def unquoted(name: bytes) -> bytes:
    return name.replace(b'""', b'"') if b'"' in name else name


def insert_values(sql: bytes, place: int, count: int) -> list[Value]:
    """The values of an insert, from an offset on. Raises CaptureError if they are not ``count`` or cannot be read."""
    tokens = _VALUES.findall(sql, place)
    length = len(sql) - 2 if sql.endswith(b";") else len(sql) - 1
    if len(tokens) != count or place + sum(map(len, tokens)) + count - 1 != length:
        tokens = _insert_slowly(sql, place)
        if len(tokens) != count:
            raise _unreadable(sql, place)
        return [any_value(token) for token in tokens]
    return [
        (token[1:-1] or None) if token[0] == 0x27 and token.find(b"'", 1) == len(token) - 1 else value_of(token)
        for token in tokens
    ]


def _insert_slowly(sql: bytes, place: int) -> list[bytes]:
    tokens: list[bytes] = []
    while True:
        place = skipped(_SPACE, sql, place)
        end = value_end(sql, place)
        after = _BETWEEN.match(sql, end) if end >= 0 else None
        if after is None:
            raise _unreadable(sql, place)
        tokens.append(sql[place:end])
        place = after.end()
        if after[1] == b")":
            if _END.fullmatch(sql, place) is None:
                raise _unreadable(sql, place)
            return tokens


def parse_update(sql: bytes) -> RedoStatement:
    """Parse an update. Without a where clause it has no conditions. Raises CaptureError for anything else."""
    head = _UPDATE.match(sql)
    if head is None:
        raise _unreadable(sql, 0)
    return _pairs(sql, head.end(), where=False)


def parse_delete(sql: bytes) -> RedoStatement:
    """Parse a delete. Without a where clause it has no conditions. Raises CaptureError for anything else."""
    if _DELETE_ALL.fullmatch(sql):
        return RedoStatement([], [])
    head = _DELETE.match(sql)
    if head is None:
        raise _unreadable(sql, 0)
    return _pairs(sql, head.end(), where=True)


def _pairs(sql: bytes, place: int, *, where: bool) -> RedoStatement:
    """Parse ``"COLUMN" = value`` and ``"COLUMN" IS NULL`` from an offset on, first as assignments unless ``where``."""
    found = _FAST_PAIR.findall(sql, place)
    whole = place + sum([len(name) + len(value) + len(behind) for name, value, behind in found]) == len(sql)
    if not whole or not _in_order([behind for _, _, behind in found], where=where):
        return _pairs_slowly(sql, place, where=where)
    result = RedoStatement([], [])
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
    """Whether the separators are commas up to ``where``, then ``and`` to the end."""
    count = len(separators)
    first = 0
    if not where:
        if b" where " not in separators:
            return False
        first = separators.index(b" where ") + 1
    return separators[: first - 1].count(b", ") == max(0, first - 1) and (
        separators[first : count - 1].count(b" and ") == count - 1 - first
    )


def _pairs_slowly(sql: bytes, place: int, *, where: bool) -> RedoStatement:
    result = RedoStatement([], [])
    side = result.where if where else result.assigned
    while True:
        place = _pair_slowly(sql, place, side)
        after = _SEPARATOR.match(sql, place)
        if after is None:
            raise _unreadable(sql, place)
        place, separator = after.end(), after[1].lower()
        if separator == b"where" and side is result.assigned:
            side = result.where
        elif separator in (b"", b";"):
            if place != len(sql) or (side is result.assigned and not separator):  # it may have been truncated
                raise _unreadable(sql, place)
            return result
        elif separator == b"where" or (separator == b",") != (side is result.assigned):
            raise _unreadable(sql, after.start())


def _pair_slowly(sql: bytes, place: int, side: Pairs) -> int:
    """Parse one ``"COLUMN" = value`` or ``"COLUMN" IS NULL``. Returns the offset after it."""
    match = _COLUMN.match(sql, place)
    if match is None:
        raise _unreadable(sql, place)
    column = unquoted(match[1]) if match[1] is not None else ROWID
    if match[3] is None:
        side.append((column, None))
        return match.end()
    place = skipped(_SPACE, sql, match.end())
    end = value_end(sql, place)
    if end < 0:
        raise _unreadable(sql, place)
    side.append((column, any_value(sql[place:end])))
    return end


def parse_conditions(sql: bytes, place: int) -> tuple[Pairs, int]:
    """Parse comparisons joined by ``and``. Returns them and the offset after them. Raises CaptureError otherwise."""
    found: Pairs = []
    while True:
        place = _pair_slowly(sql, place, found)
        after = _AND.match(sql, place)
        if after is None:
            return found, place
        place = after.end()


def _unreadable(sql: bytes, place: int) -> CaptureError:
    text = sql.decode("utf-8", "replace")
    return CaptureError(f"SQL_REDO cannot be read at byte {place}: {text[:200]}", code="GGS-00521")
