"""Copy many byte ranges of different lengths between buffers with array operations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_WORTH = 8
"""With at least this many pieces of one length, they are copied in one operation."""

_MANY = 1 << 12
"""If all lengths are below this, they are grouped by counting; otherwise by sorting."""

Buffer = bytes | bytearray | memoryview


def items(buffer: Buffer, size: int) -> NDArray[np.void]:
    """Return a view of the buffer's pieces of one size that begin at each byte; they overlap, and nothing is copied."""
    return np.ndarray((max(0, len(buffer) - size + 1),), dtype=f"V{size}", buffer=buffer, strides=(1,))


def everywhere(raw: NDArray[np.uint8], kind: str) -> NDArray[np.integer]:
    """A view whose element n is the integer that begins at byte n, aligned or not: one gather or scatter per field."""
    size = np.dtype(kind).itemsize
    return np.ndarray((max(0, len(raw) - size + 1),), dtype=kind, buffer=raw.data, strides=(1,))


def shorts(buffer: Buffer | NDArray[np.uint8]) -> NDArray[np.uint16]:
    """Return a view of the little-endian 2-byte numbers that begin at each byte."""
    return np.ndarray((max(0, len(buffer) - 1),), dtype="<u2", buffer=buffer, strides=(1,))


def longs(buffer: Buffer | NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Return a view of the little-endian 4-byte numbers that begin at each byte."""
    return np.ndarray((max(0, len(buffer) - 3),), dtype="<u4", buffer=buffer, strides=(1,))


def copy_pieces(
    out: bytearray | memoryview,
    to: NDArray[np.int64],
    source: Buffer,
    start: NDArray[np.int64],
    length: NDArray[np.int64],
) -> None:
    """Copy ``source[start : start + length]`` to ``out[to : to + length]``, for each element of the three arrays."""
    if not len(length):
        return
    if int(length.max()) < _MANY:
        counts = np.bincount(length)  # small lengths: counting is faster than sorting
        sizes, each = np.flatnonzero(counts), counts[length]
        counts = counts[sizes]
    else:
        sizes, inverse, counts = np.unique(length, return_inverse=True, return_counts=True)
        each = counts[inverse]
    for size in sizes[(counts >= _WORTH) & (sizes > 0)].tolist():
        rows = slice(None) if len(sizes) == 1 else np.flatnonzero(length == size)
        items(out, size)[to[rows]] = items(source, size)[start[rows]]
    single = np.flatnonzero(each < _WORTH)
    view, origin = memoryview(out), memoryview(source)
    for place, first, size in zip(to[single].tolist(), start[single].tolist(), length[single].tolist(), strict=True):
        view[place : place + size] = origin[first : first + size]
