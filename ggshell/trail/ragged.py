"""Many pieces of bytes to many places at once: what lies between a loop of slices and one copy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_WORTH = 8
"""From so many pieces of one length on, they go together."""

Buffer = bytes | bytearray | memoryview


def items(buffer: Buffer, size: int) -> NDArray[np.void]:
    """The buffer's pieces of one size, beginning at each byte; they overlap, so nothing is copied."""
    return np.ndarray((max(0, len(buffer) - size + 1),), dtype=f"V{size}", buffer=buffer, strides=(1,))


def copy_pieces(
    out: bytearray, to: NDArray[np.int64], source: Buffer, start: NDArray[np.int64], length: NDArray[np.int64]
) -> None:
    """Copy ``source[start : start + length]`` to ``out[to : to + length]``, for each element of the three arrays."""
    sizes, inverse, counts = np.unique(length, return_inverse=True, return_counts=True)
    for number in np.flatnonzero((counts >= _WORTH) & (sizes > 0)).tolist():
        size, rows = int(sizes[number]), np.flatnonzero(inverse == number)
        items(out, size)[to[rows]] = items(source, size)[start[rows]]
    single = np.flatnonzero(counts[inverse] < _WORTH)
    view, origin = memoryview(out), memoryview(source)
    for place, first, size in zip(to[single].tolist(), start[single].tolist(), length[single].tolist(), strict=True):
        view[place : place + size] = origin[first : first + size]
