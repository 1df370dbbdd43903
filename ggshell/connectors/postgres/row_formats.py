"""Many rows in the forms that one statement takes: array literals of columns, and COPY text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ggshell.record.fields import Bytes, Field, Value
from ggshell.record.ragged import copy_pieces


def array_literal(values: Sequence[Value]) -> bytes:
    """A ``text[]`` literal: every value quoted, NULL unquoted."""
    if None not in values:
        joined = b'","'.join(values)  # type: ignore[arg-type]
        if b"\\" not in joined and joined.count(b'"') == 2 * (len(values) - 1):
            return b'{"' + joined + b'"}'
    return b"{" + b",".join(map(_element, values)) + b"}"


def _element(value: Value) -> bytes:
    if value is None:
        return b"NULL"
    return b'"' + value.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


def runs_of_distinct(keys: Sequence[object]) -> list[tuple[int, int]]:
    """Split a sequence so that no part contains a key twice. Returns the start and end index of each part."""
    if len(set(keys)) == len(keys):
        return [(0, len(keys))]
    parts, first = [], 0
    seen: set[object] = set()
    for number, key in enumerate(keys):
        if key in seen:
            parts.append((first, number))
            first, seen = number, set()
        seen.add(key)
    parts.append((first, len(keys)))
    return parts


# COPY text from the images of inserted rows, thousands of rows at once.
#
# The reverse of ``vectors.py``: the columns of all rows are processed together, and the values of one length are copied
# together. What is special to COPY is found before tabs, newlines and ``\N`` are written between the values.


_TAB, _NEWLINE, _BACKSLASH, _N = 9, 10, 92, 78
_SPECIAL_BYTES = b"\t", b"\n", b"\r", b"\\"
_SPECIAL = np.zeros(256, dtype=bool)
_SPECIAL[list(b"".join(_SPECIAL_BYTES))] = True
_LETTER = np.arange(256, dtype=np.uint8)
_LETTER[list(b"\t\n\r")] = np.frombuffer(b"tnr", dtype=np.uint8)


def copy_text(raw: Bytes, fields: Sequence[Field]) -> bytes:
    """The rows in COPY's text format; ``fields`` are in column order."""
    widths = [np.where(field.size < 0, 2, field.size) + 1 for field in fields]
    total = np.sum(widths, axis=0)
    ends = np.cumsum(total)
    text = bytearray(int(ends[-1]))
    out = np.frombuffer(text, dtype=np.uint8)
    place = ends - total
    for field, width in zip(fields, widths, strict=True):
        copy_pieces(text, place, raw.data, field.place, np.maximum(field.size, 0))
        place = place + width
    special = np.flatnonzero(_SPECIAL[out]) if any(each in text for each in _SPECIAL_BYTES) else None
    place = ends - total
    for field, width in zip(fields, widths, strict=True):
        null = place[field.size < 0]
        out[null], out[null + 1] = _BACKSLASH, _N
        place = place + width
        out[place - 1] = _TAB
    out[ends - 1] = _NEWLINE
    return bytes(text) if special is None else _escaped(out, special)


def _escaped(text: Bytes, special: NDArray[np.int64]) -> bytes:
    """Insert a backslash before the bytes at some places, which are special to COPY."""
    repeats = np.ones(len(text), dtype=np.int64)
    repeats[special] = 2
    result = np.repeat(text, repeats)
    at = special + np.arange(len(special))
    result[at] = _BACKSLASH
    result[at + 1] = _LETTER[text[special]]
    return result.tobytes()
