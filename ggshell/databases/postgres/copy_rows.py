"""Images of inserted rows to COPY text, for thousands of rows at once.

The mirror of ``vectors.py``: columns are walked in lock-step, values move by one masked copy, and the bytes between them
become tabs, newlines and ``\\N``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ggshell.record.image import decode_image

_TAB, _NEWLINE = 9, 10
_SPECIAL = np.zeros(256, dtype=bool)
_SPECIAL[[8, 9, 10, 11, 12, 13, 92]] = True
_NULL = b"\\N"


def copy_text(
    buffer: bytes | bytearray | memoryview, start: NDArray[np.int64], length: NDArray[np.int64], columns: int
) -> bytes | None:
    """COPY text of full images; None when they are not all full and in column order, or a value needs escapes."""
    raw = np.frombuffer(buffer, dtype=np.uint8)
    place = start.copy()
    end = start + length
    values: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    for column in range(columns):
        if (place + 6 > end).any():
            return None
        index, size, null = _big(raw, place), _big(raw, place + 2), _big(raw, place + 4)
        if (index != column).any() or (size == 0xFFFF).any():
            return None
        inner = np.where(null == 0xFFFF, -1, size - 4)
        values.append((place + 8, inner))
        place = place + 4 + size
    if (place != end).any():
        return None
    return _lines(raw, values)


def _big(raw: NDArray[np.uint8], place: NDArray[np.int64]) -> NDArray[np.int64]:
    return raw[place].astype(np.int64) | raw[place + 1].astype(np.int64) << 8


def _lines(raw: NDArray[np.uint8], values: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]]) -> bytes | None:
    widths = [np.where(size < 0, 2, size) + 1 for _, size in values]
    total = np.sum(widths, axis=0)
    place = np.cumsum(total) - total
    out = np.full(int(total.sum()), _TAB, dtype=np.uint8)
    taken = np.zeros(len(raw) + 1, dtype=np.int8)
    given = np.zeros(len(out) + 1, dtype=np.int8)
    for (first, size), width in zip(values, widths, strict=True):
        full = size > 0
        taken[first[full]], given[place[full]] = 1, 1
        taken[first[full] + size[full]], given[place[full] + size[full]] = -1, -1
        null = place[size < 0]
        out[null], out[null + 1] = 0x5C, 0x4E
        place = place + width
    out[place - 1] = _NEWLINE
    moved = raw[np.cumsum(taken[:-1], dtype=np.int8).view(bool)]
    if _SPECIAL[moved].any():
        return None
    out[np.cumsum(given[:-1], dtype=np.int8).view(bool)] = moved
    return out.tobytes()


def copy_text_slowly(images: Sequence[bytes | memoryview], columns: Sequence[int]) -> bytes | None:
    """The same row by row, with escapes; None when a row lacks one of the columns."""
    lines = []
    for image in images:
        found = dict(decode_image(image))
        if any(column not in found for column in columns):
            return None
        lines.append(b"\t".join(_field(found[column]) for column in columns))
    return b"\n".join([*lines, b""])


def _field(value: bytes | None) -> bytes:
    if value is None:
        return _NULL
    if b"\\" in value:
        value = value.replace(b"\\", b"\\\\")
    return value.replace(b"\t", b"\\t").replace(b"\n", b"\\n").replace(b"\r", b"\\r")
