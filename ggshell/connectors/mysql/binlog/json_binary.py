"""MySQL's binary JSON: its values, and their text as the server prints it: ``{"a": 1, "b": [true, null]}``.

Source: MySQL's internals manual and its documentation of the format in ``sql/json_binary.h`` (offsets count from the start
of the object or array that contains them).
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable
from typing import Final, Union

import numpy as np

from ggshell.connectors.mysql.binlog.cells import padded
from ggshell.connectors.mysql.binlog.events import DAMAGED
from ggshell.connectors.mysql.binlog.moments import datetime_text, time_text
from ggshell.connectors.mysql.binlog.numbers import decimal_cells, double_text
from ggshell.errors import CaptureError

_LITERALS: Final = {0: "null", 1: "true", 2: "false"}
_DECIMAL, _TIME, _DATE, _DATETIME, _TIMESTAMP = 246, 11, 10, 12, 7
_NUMBERS: Final = {5: "<h", 6: "<H", 7: "<i", 8: "<I", 9: "<q", 10: "<Q"}
_INLINE_SMALL: Final = frozenset({4, 5, 6})
_INLINE_LARGE: Final = frozenset({4, 5, 6, 7, 8})
_OPAQUE, _STRING, _DOUBLE, _LITERAL = 15, 12, 11, 4
_DEEPEST: Final = 100
_TEXT_MARK: Final = b"\xff"
"""The first byte of a document whose text follows; MySQL has no type with this number."""

Document = Union[str, list["Document"], dict[str, "Document"]]  # noqa: UP007 - the alias names itself
"""A value: the text of a scalar, the elements of an array, or the members of an object in MySQL's order."""


def json_text(data: bytes) -> bytes:
    """Return the text of a document; an empty value is ``null``. Raises CaptureError if it is damaged."""
    if data[:1] == _TEXT_MARK:
        return data[1:]
    return _text(json_document(data)).encode()


def document_as_text(document: Document) -> bytes:
    """A value in the form of a column of the log, of which ``json_text`` returns the text."""
    return _TEXT_MARK + _text(document).encode()


def json_document(data: bytes) -> Document:
    """Return the value; that of no bytes is ``null``. Raises CaptureError if it is damaged."""
    if not data:
        return "null"
    try:
        return _value(data[0], data, 1, 0)
    except (struct.error, IndexError, UnicodeDecodeError, KeyError) as error:
        raise CaptureError(f"a JSON value in the binary log is damaged: {error}", code=DAMAGED) from error


def _text(document: Document) -> str:
    if isinstance(document, str):
        return document
    if isinstance(document, list):
        return "[" + ", ".join(map(_text, document)) + "]"
    return "{" + ", ".join(f"{_quoted(key)}: {_text(value)}" for key, value in document.items()) + "}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _value(kind: int, data: bytes, place: int, depth: int) -> Document:
    if depth > _DEEPEST:
        raise CaptureError("a JSON value in the binary log is nested too deeply", code=DAMAGED)
    if kind <= 3:
        return _container(data, place, depth, is_object=kind in (0, 1), large=kind in (1, 3))
    if kind == _LITERAL:
        return _LITERALS[data[place]]
    if kind in _NUMBERS:
        return str(struct.unpack_from(_NUMBERS[kind], data, place)[0])
    if kind == _DOUBLE:
        text = double_text(struct.unpack_from("<d", data, place)[0])
        return text if set(text) & set(".e") else f"{text}.0"
    if kind == _STRING:
        size, first = _length(data, place)
        return _quoted(data[first : first + size].decode())
    if kind == _OPAQUE:
        size, first = _length(data, place + 1)
        return _opaque(data[place], data[first : first + size])
    raise CaptureError(f"a JSON value of type {kind} in the binary log", code=DAMAGED)


def _container(data: bytes, start: int, depth: int, *, is_object: bool, large: bool) -> Document:
    """An object or an array: the count, the size, the entries of the keys, those of the values, keys and values.

    ``start``: where it begins, from which its offsets count.
    """
    form, width = ("<I", 4) if large else ("<H", 2)
    number: Callable[[int], int] = lambda place: struct.unpack_from(form, data, place)[0]  # noqa: E731
    count, place = number(start), start + 2 * width
    keys: list[str] = []
    if is_object:
        for _ in range(count):
            first, size = start + number(place), struct.unpack_from("<H", data, place + width)[0]
            keys.append(data[first : first + size].decode())
            place += width + 2
    values: list[Document] = []
    inline = _INLINE_LARGE if large else _INLINE_SMALL
    for _ in range(count):
        kind = data[place]
        at = place + 1 if kind in inline else start + number(place + 1)
        values.append(_value(kind, data, at, depth + 1))
        place += 1 + width
    return dict(zip(keys, values, strict=True)) if is_object else values


def _length(data: bytes, place: int) -> tuple[int, int]:
    """A length in groups of seven bits, and the place after it."""
    size = shift = 0
    while True:
        byte = data[place]
        size |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if not byte & 0x80:
            return size, place


def _opaque(kind: int, value: bytes) -> str:
    """A value of a type that JSON does not have: numbers as they are, times as text, others in base 64."""
    if kind == _DECIMAL:
        place = np.array([2], dtype=np.int64)
        return decimal_cells(padded(value), place, value[0], value[1]).values()[0].decode()
    if kind in (_DATE, _DATETIME, _TIMESTAMP, _TIME):
        packed = int.from_bytes(value[:8], "little", signed=True)
        text = time_text(packed) if kind == _TIME else datetime_text(packed, date=kind == _DATE)
        return f'"{text}"'
    return f'"base64:type{kind}:{base64.b64encode(value).decode()}"'
