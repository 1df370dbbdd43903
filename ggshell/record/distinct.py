"""Find the distinct values in an array of small integers, without the sort that numpy's ``unique`` performs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def distinct(numbers: NDArray[np.uint8] | NDArray[np.uint16]) -> tuple[list[int], NDArray[np.uint16]]:
    """Return the distinct values in ascending order, and for each element the index of its value among them."""
    there = np.zeros(np.iinfo(numbers.dtype).max + 1, dtype=np.bool_)
    there[numbers] = True
    used = np.flatnonzero(there)
    places = np.zeros(len(there), dtype=np.uint16)
    places[used] = np.arange(len(used))
    return used.tolist(), places[numbers]
