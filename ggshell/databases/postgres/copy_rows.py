"""Images of inserted rows to COPY text, for thousands of rows at once.

The mirror of ``vectors.py``: columns are walked in lock-step, values move by one masked copy, and what stands between them
becomes tabs, newlines and ``\\N``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ggshell.record.fields import Bytes, Field

_TAB, _NEWLINE, _BACKSLASH, _N = 9, 10, 92, 78
_SPECIAL = np.zeros(256, dtype=bool)
_SPECIAL[[_TAB, _NEWLINE, 13, _BACKSLASH]] = True
_LETTER = np.arange(256, dtype=np.uint8)
_LETTER[[_TAB, _NEWLINE, 13]] = np.frombuffer(b"tnr", dtype=np.uint8)


def copy_text(raw: Bytes, fields: Sequence[Field]) -> bytes:
    """COPY's text format of the rows; ``fields`` stand in the order of the columns, each row's in ascending places.

    Rows must lie in ascending order in ``raw``, for one pass moves all values.
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
    """Mark where values begin and end; there is always something between two of them."""
    full = size > 0
    edges[place[full]] = 1
    edges[place[full] + size[full]] = -1


def _escaped(text: Bytes, inside: NDArray[np.bool_]) -> Bytes:
    """Put a backslash before the bytes of values that mean something to COPY."""
    special = np.flatnonzero(_SPECIAL[text] & inside)
    repeats = np.ones(len(text), dtype=np.int64)
    repeats[special] = 2
    result = np.repeat(text, repeats)
    at = special + np.arange(len(special))
    result[at] = _BACKSLASH
    result[at + 1] = _LETTER[text[special]]
    return result
