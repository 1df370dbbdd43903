"""Partial updates of JSON values: what changes at which path of the former value.

MySQL logs them instead of whole values with ``binlog_row_value_options = PARTIAL_JSON``. A change is an operation, a path with
its length and, unless it removes, a value in the binary form with its length. Source: ``sql-common/json_diff.h`` of MySQL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple

from ggshell.connectors.mysql.binlog.events import DAMAGED, packed_text
from ggshell.connectors.mysql.binlog.json_binary import Document, json_document
from ggshell.errors import CaptureError
from ggshell.files import read_json

_LEG: Final = re.compile(r'\[(\d+)\]|\[last(?:-(\d+))?\]|\.("(?:[^"\\]|\\.)*")|\.([^.\[\]"\s]+)')


class Operation(IntEnum):
    """What a change does at its path."""

    REPLACE = 0
    INSERT = 1
    REMOVE = 2


class Change(NamedTuple):
    """One change. ``path``: the names of members and the indexes of elements, from the root on.

    A negative index counts from the end: -1 is the last element.
    """

    operation: Operation
    path: tuple[str | int, ...]
    value: Document = "null"


def changed_document(document: Document, diffs: bytes) -> Document:
    """Return a value after the changes of a partial update, which are made in place.

    Raises CaptureError if they do not fit the value.
    """
    for change in changes(diffs):
        try:
            document = _changed(document, change)
        except (KeyError, IndexError, TypeError, ValueError):
            raise CaptureError(
                f"a partial update of a JSON value in the binary log does not fit the former value, at {change.path}",
                code=DAMAGED,
            ) from None
    return document


def changes(data: bytes) -> Iterator[Change]:
    """Read the changes of one value."""
    place = 0
    while place < len(data):
        if data[place] not in Operation._value2member_map_:
            raise CaptureError(f"a change {data[place]} of a JSON value in the binary log", code=DAMAGED)
        operation = Operation(data[place])
        text, place = packed_text(data, place + 1)
        value: Document = "null"
        if operation is not Operation.REMOVE:
            raw, place = packed_text(data, place)
            value = json_document(raw)
        yield Change(operation, path_of(text.decode("utf-8", "replace")), value)


def path_of(text: str) -> tuple[str | int, ...]:
    """Read a path: ``$.name[3]."other name"[last-1]``. Raises CaptureError if it is not one."""
    legs: list[str | int] = []
    place = 1
    while text[:1] == "$" and place < len(text):
        match = _LEG.match(text, place)
        if match is None:
            break
        place = match.end()
        legs.append(_leg(match))
    if text[:1] != "$" or place < len(text):
        raise CaptureError(f"{text!r} in the binary log is not a valid path of JSON", code=DAMAGED)
    return tuple(legs)


def _leg(match: re.Match[str]) -> str | int:
    index, from_end, quoted, name = match.groups()
    if index or not (quoted or name):
        return int(index) if index else -1 - int(from_end or 0)
    return str(read_json(quoted)) if quoted else str(name)


def _changed(document: Document, change: Change) -> Document:
    if not change.path:
        if change.operation is not Operation.REPLACE:
            raise ValueError(change.operation)
        return change.value
    parent = document
    for leg in change.path[:-1]:
        parent = _member(parent, leg)
    last = change.path[-1]
    if isinstance(parent, list) and isinstance(last, int):
        _change_array(parent, last, change)
    elif isinstance(parent, dict) and isinstance(last, str):
        _change_object(parent, last, change)
    else:
        raise TypeError(last)
    return document


def _member(parent: Document, leg: str | int) -> Document:
    if isinstance(parent, list) and isinstance(leg, int):
        return parent[leg]
    if isinstance(parent, dict) and isinstance(leg, str):
        return parent[leg]
    raise TypeError(leg)


def _change_array(parent: list[Document], index: int, change: Change) -> None:
    if change.operation is Operation.INSERT:
        parent.insert(index, change.value)
    elif change.operation is Operation.REPLACE:
        parent[index] = change.value
    else:
        del parent[index]


def _change_object(parent: dict[str, Document], name: str, change: Change) -> None:
    if (name in parent) is (change.operation is Operation.INSERT):
        raise KeyError(name)
    if change.operation is Operation.REMOVE:
        del parent[name]
        return
    parent[name] = change.value
    if change.operation is Operation.INSERT:
        # MySQL keeps members by the length of their names, then by their bytes.
        members = sorted(parent.items(), key=lambda member: (len(member[0].encode()), member[0].encode()))
        parent.clear()
        parent.update(members)
