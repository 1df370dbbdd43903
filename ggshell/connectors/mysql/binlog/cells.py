"""Cells: the text of one column in many rows, as places in a buffer; and the images of rows that are made of them.

Values are moved by windows: a copy takes 8, 16, 32 or 64 bytes from the place of a value, however short it is. The bytes
after the value are overwritten by the column after it, or are in the gap after the row. So a column costs the same few array
operations for any number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ggshell.record.image import LONGEST_SHORT
from ggshell.record.ragged import copy_pieces, everywhere, items

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]

WINDOW: Final = 64
"""The largest window, in bytes. Every buffer of cells has this many bytes after its last value."""
_WINDOWS: Final = (8, 16, 32, 64)
_SHORT_HEAD, _LONG_HEAD, _NULL_HEAD = 8, 10, 6


class Cells(NamedTuple):
    """The text of a column: ``buffer[place : place + length]`` for each row."""

    buffer: Bytes
    place: Ints
    length: Ints

    @classmethod
    def of(cls, values: Sequence[bytes]) -> Cells:
        """Cells of separate values."""
        length = np.fromiter(map(len, values), dtype=np.int64, count=len(values))
        return cls(padded(b"".join(values)), np.cumsum(length) - length, length)

    @classmethod
    def table(cls, values: Sequence[bytes], index: NDArray[np.integer]) -> Cells:
        """Cells of which many have the same value: ``values[index]``."""
        known = cls.of(values)
        return cls(known.buffer, known.place[index], known.length[index])

    def values(self) -> list[bytes]:
        data = self.buffer.tobytes()
        return [data[at : at + size] for at, size in zip(self.place.tolist(), self.length.tolist(), strict=True)]


def padded(data: bytes) -> Bytes:
    """The bytes as an array, with room for a window after them."""
    return np.frombuffer(data + bytes(WINDOW), dtype=np.uint8)


def matrix(rows: int, width: int) -> tuple[Bytes, Bytes]:
    """An uninitialized buffer for ``rows`` values of one width: the whole buffer, and a view with one row per value."""
    buffer = np.empty(rows * width + WINDOW, dtype=np.uint8)
    return buffer, buffer[: rows * width].reshape(rows, width)


class Step(NamedTuple):
    """One column of the images: its index, the rows that have a value (None: all) with their cells, and the NULL rows."""

    column: int
    rows: Ints | None
    cells: Cells
    nulls: Ints | None = None


class Images(NamedTuple):
    """Data areas in one buffer; there are gaps between them."""

    buffer: Bytes
    start: Ints
    length: Ints


def assemble(steps: Sequence[Step], rows: int, before: Sequence[Step] = ()) -> Images:
    """Write the images of rows. With ``before``, each data area has two images: these columns, then ``steps``."""
    prefix = 0
    sizes = np.zeros(rows, dtype=np.int64)
    first = _sizes(before, rows)
    if before:
        prefix = 6 if int(first.max(initial=0)) >= 0xFFFF else 2
    sizes = prefix + first + _sizes(steps, rows)
    ends = np.cumsum(sizes + WINDOW)
    start = ends - sizes - WINDOW
    out = np.empty(int(ends[-1]) if rows else WINDOW, dtype=np.uint8)
    place = start + prefix
    for step in (*before, *steps):
        _write(out, place, step)
    if prefix == 2:
        everywhere(out, "<u2")[start] = first
    elif prefix:
        everywhere(out, "<u2")[start] = 0xFFFF
        everywhere(out, "<u4")[start + 2] = first
    return Images(out, start, sizes)


def _sizes(steps: Sequence[Step], rows: int) -> Ints:
    sizes = np.zeros(rows, dtype=np.int64)
    for step in steps:
        length = step.cells.length
        size = length + np.where(length > LONGEST_SHORT, _LONG_HEAD, _SHORT_HEAD)
        if step.rows is None:
            sizes += size
        else:
            sizes[step.rows] += size
        if step.nulls is not None:
            sizes[step.nulls] += _NULL_HEAD
    return sizes


def _write(out: Bytes, place: Ints, step: Step) -> None:
    """Write one column at the rows' places, and move the places."""
    length = step.cells.length
    at = place if step.rows is None else place[step.rows]
    long = length > LONGEST_SHORT
    head: int | Ints = _SHORT_HEAD
    if long.any():
        head = np.where(long, _LONG_HEAD, _SHORT_HEAD)
        short = ~long
        everywhere(out, "<u8")[at[short]] = step.column | length[short] + 4 << 16 | length[short] << 48
        everywhere(out, "<u8")[at[long]] = step.column | 0xFFFF << 16 | length[long] << 48
        everywhere(out, "<u4")[at[long] + 6] = length[long]
    elif len(at):
        everywhere(out, "<u8")[at] = step.column | length + 4 << 16 | length << 48
    _copy(out, at + head, step.cells)
    if step.rows is None:
        place += length + head
    else:
        place[step.rows] = at + head + length
    if step.nulls is not None and len(step.nulls):
        nowhere = place[step.nulls]
        everywhere(out, "<u4")[nowhere] = step.column | 2 << 16
        everywhere(out, "<u2")[nowhere + 4] = 0xFFFF
        place[step.nulls] = nowhere + _NULL_HEAD


def _copy(out: Bytes, to: Ints, cells: Cells) -> None:
    buffer, place, length = cells
    longest = int(length.max(initial=0))
    if longest > WINDOW:
        long = length > WINDOW
        # Whole values: a window would not do.
        copy_pieces(out.data, to[long], buffer.data, place[long], length[long])
        short = ~long
        to, place, length = to[short], place[short], length[short]
        longest = int(length.max(initial=0))
    if longest:
        size = next(size for size in _WINDOWS if size >= longest)
        if size == 8:
            everywhere(out, "<u8")[to] = everywhere(buffer, "<u8")[place]
        else:
            items(out.data, size)[to] = items(buffer.data, size)[place]
