"""Many rows in the forms that one statement takes: array literals of columns, and COPY text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ggshell.record.fields import Bytes, Field, Value


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
# The reverse of ``vectors.py``: the columns of all rows are processed together, values are moved by one masked copy,
# and the bytes between them become tabs, newlines and ``\N``.


_TAB, _NEWLINE, _BACKSLASH, _N = 9, 10, 92, 78
_SPECIAL = np.zeros(256, dtype=bool)
_SPECIAL[[_TAB, _NEWLINE, 13, _BACKSLASH]] = True
_LETTER = np.arange(256, dtype=np.uint8)
_LETTER[[_TAB, _NEWLINE, 13]] = np.frombuffer(b"tnr", dtype=np.uint8)


def copy_text(raw: Bytes, fields: Sequence[Field]) -> bytes:
    """The rows in COPY's text format. ``fields`` are in column order, with the offsets of each row ascending.

    Rows must be in ascending order in ``raw``, because all values are moved in one pass.
    """
    low, last = int(fields[0].place[0]), fields[-1]
    high = int(last.place[-1]) + max(int(last.size[-1]), 0)
    raw = raw[low:high]
    widths = [np.where(field.size < 0, 2, field.size) + 1 for field in fields]
    total = np.sum(widths, axis=0)
    place = np.cumsum(total) - total
    out = np.full(int(total.sum()), _TAB, dtype=np.uint8)
    taken = np.zeros(len(raw) + 1, dtype=np.int8)
    given = np.zeros(len(out) + 1, dtype=np.int8)
    for field, width in zip(fields, widths, strict=True):
        null = field.size < 0
        _edges(taken, field.place - low, field.size)
        _edges(given, place, field.size)
        if null.any():
            here = place[null]
            out[here], out[here + 1] = _BACKSLASH, _N
        place = place + width
    out[place - 1] = _NEWLINE
    moved = raw[np.cumsum(taken[:-1], dtype=np.int8).view(bool)]
    inside = np.cumsum(given[:-1], dtype=np.int8).view(bool)
    out[inside] = moved
    if _SPECIAL[moved].any():
        out = _escaped(out, inside)
    return out.tobytes()


def _edges(edges: NDArray[np.int8], place: NDArray[np.int64], size: NDArray[np.int64]) -> None:
    """Mark where values begin and end. There is always at least one byte between two values."""
    full = size > 0
    edges[place[full]] = 1
    edges[place[full] + size[full]] = -1


def _escaped(text: Bytes, inside: NDArray[np.bool_]) -> Bytes:
    """Insert a backslash before bytes of values that are special to COPY."""
    special = np.flatnonzero(_SPECIAL[text] & inside)
    repeats = np.ones(len(text), dtype=np.int64)
    repeats[special] = 2
    result = np.repeat(text, repeats)
    at = special + np.arange(len(special))
    result[at] = _BACKSLASH
    result[at + 1] = _LETTER[text[special]]
    return result
