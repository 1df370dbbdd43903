"""COPY's text to data areas, for thousands of rows at once: what an initial load reads, as a log's inserts would have it.

The mirror of ``copy_rows.py``.  COPY's text is what the types' own output functions give, as pgoutput's is, so that a row
that was loaded and the same row from the log have the same bytes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ggshell.databases.postgres.vectors import Bytes, Encoded, Ints, Step, encode_steps
from ggshell.record.image import LONGEST_SHORT, encode_image

_TAB, _NEWLINE, _BACKSLASH, _N = 9, 10, 92, 78
_MEANT = np.arange(256, dtype=np.uint8)
_MEANT[np.frombuffer(b"bfnrtv", dtype=np.uint8)] = np.frombuffer(b"\b\f\n\r\t\v", dtype=np.uint8)


def images_of_copy(text: bytes, columns: int) -> Encoded:
    """The images of whole lines of ``columns`` values each (one at least): every row has its place and length."""
    raw = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero((raw == _TAB) | (raw == _NEWLINE))
    places = np.concatenate((np.zeros(1, dtype=np.int64), ends[:-1] + 1))
    null = _nulls(raw, places, ends)
    if (raw == _BACKSLASH).any():
        raw, places, ends = _unescaped(raw, places, ends, null)
    sizes = np.where(null, -1, ends - places)
    place, size = places.reshape(-1, columns), sizes.reshape(-1, columns)
    rows = np.arange(len(place), dtype=np.int64)
    steps = [Step(index, rows, place[:, index], size[:, index]) for index in range(columns)]
    long_rows = np.flatnonzero((size > LONGEST_SHORT).any(axis=1))
    encoded = encode_steps(raw, steps, long_rows, len(rows))
    return _with_long(encoded, raw, place, size, long_rows) if len(long_rows) else encoded


def _nulls(raw: Bytes, places: Ints, ends: Ints) -> NDArray[np.bool_]:
    """Which values are ``\\N``, which no value's text can be: its backslash would be doubled."""
    found: NDArray[np.bool_] = ends - places == 2
    where = np.flatnonzero(found)
    found[where] = (raw[places[where]] == _BACKSLASH) & (raw[places[where] + 1] == _N)
    return found


def _unescaped(raw: Bytes, places: Ints, ends: Ints, null: NDArray[np.bool_]) -> tuple[Bytes, Ints, Ints]:
    """The text without its escapes: of a run of backslashes every other one gives the byte behind it its meaning."""
    slash = raw == _BACKSLASH
    slash[places[null]] = False
    place = np.arange(len(raw), dtype=np.int64)
    before = np.maximum.accumulate(np.where(slash, -1, place))  # the last byte that is none
    leads = slash & ((place - before) % 2 == 1)
    behind = np.flatnonzero(leads) + 1
    meant = raw.copy()
    meant[behind] = _MEANT[raw[behind]]
    gone = np.cumsum(leads)
    return meant[~leads], places - np.where(places > 0, gone[places - 1], 0), ends - gone[ends]


def _with_long(encoded: Encoded, raw: Bytes, place: Ints, size: Ints, long_rows: Ints) -> Encoded:
    """Rows with a very long value, one by one behind the others."""
    buffer, start, length = [encoded.buffer.tobytes()], encoded.start.copy(), encoded.length.copy()
    end = len(encoded.buffer)
    for row in long_rows.tolist():
        pairs = zip(place[row].tolist(), size[row].tolist(), strict=True)
        image = encode_image(
            (index, None if count < 0 else raw[first : first + count].tobytes())
            for index, (first, count) in enumerate(pairs)
        )
        start[row], length[row] = end, len(image)
        buffer.append(image)
        end += len(image)
    return Encoded(np.frombuffer(b"".join(buffer), dtype=np.uint8), start, length)
