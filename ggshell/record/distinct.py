"""Which small numbers there are among many: without sorting them, as numpy's ``unique`` does."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def distinct(numbers: NDArray[np.uint8] | NDArray[np.uint16]) -> tuple[list[int], NDArray[np.uint16]]:
    """The numbers that there are, in order, and for each of all its place among them."""
    there = np.zeros(np.iinfo(numbers.dtype).max + 1, dtype=np.bool_)
    there[numbers] = True
    used = np.flatnonzero(there)
    places = np.zeros(len(there), dtype=np.uint16)
    places[used] = np.arange(len(used))
    return used.tolist(), places[numbers]
