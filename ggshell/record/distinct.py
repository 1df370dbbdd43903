"""Find the distinct values in an array of small integers, without the sort that numpy's ``unique`` performs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def distinct(numbers: NDArray[np.uint8] | NDArray[np.uint16]) -> tuple[list[int], NDArray[np.uint16]]:
    """Return the distinct values in ascending order, and for each element the index of its value among them."""
    counts = np.bincount(numbers)
    used = np.flatnonzero(counts)
    if len(used) == 1:
        return used.tolist(), np.zeros(len(numbers), dtype=np.uint16)
    places = np.zeros(len(counts), dtype=np.uint16)
    places[used] = np.arange(len(used))
    return used.tolist(), places[numbers]
