"""The checksums of many records, found to fit in a call for many.

Bytes with their own CRC-32 behind them have always the same CRC-32, so that of a whole good record (which has only its trailer
behind its checksum) is known from its length alone.  Put into the next record's first bytes by XOR, it makes the sum begin
anew there: then the sum of many records in a row is that of the last one, if and only if their bytes fit.  Where they do
not, looking at each tells which.
"""

from __future__ import annotations

import zlib
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ggshell.trail import layout

_FEW: Final = 32
"""So few records are looked at one by one at once."""
_TOGETHER: Final = 1 << 18
"""Bytes of records that are summed together: what the processor holds near."""
_RESIDUE: Final = zlib.crc32(bytes(4))
"""Of any bytes and their own sum; here of none, whose sum is 0."""


def _sums_by_length() -> NDArray[np.uint32]:
    """The CRC-32 of a good record, by its length: sums of bytes of one number are linear, so that two halves give all."""
    trailers = [
        layout.TOKEN.pack(layout.TRAILER, 1, total) for half in (1, 256) for total in range(0, 256 * half, half)
    ]
    found = np.array([zlib.crc32(trailer, _RESIDUE) for trailer in trailers], dtype=np.uint32)
    low, high = found[:256], found[256:]
    sums: NDArray[np.uint32] = low[None, :] ^ high[:, None] ^ low[0]
    return sums.ravel()


_SUMS: Final = _sums_by_length()


def first_unfit(chunk: bytes, edges: NDArray[np.int64]) -> int | None:
    """The first record whose bytes do not fit its checksum; None when all do.

    ``edges``: the places of records that follow one another, and the place behind the last.
    """
    cuts = [0, len(edges) - 1]
    if len(edges) > _FEW:
        between = np.searchsorted(edges, np.arange(_TOGETHER, int(edges[-1]), _TOGETHER))
        cuts = np.unique(np.concatenate((cuts, between))).tolist()
    for first, last in pairwise(cuts):
        some = edges[first : last + 1]
        if len(some) <= _FEW or not _fit_together(chunk, some):
            unfit = _first_of(chunk, some.tolist())
            if unfit is not None:
                return first + unfit
    return None


def _fit_together(chunk: bytes, edges: NDArray[np.int64]) -> bool:
    begin = int(edges[0])
    records = bytearray(memoryview(chunk)[begin : int(edges[-1])])
    sums = _SUMS[np.diff(edges)]
    openings = np.ndarray((len(records) - 3,), dtype="<u4", buffer=records, strides=(1,))
    openings[edges[1:-1] - begin] ^= sums[:-1]
    return zlib.crc32(records) == int(sums[-1])


def _first_of(chunk: bytes, places: list[int]) -> int | None:
    view, crc, rest = memoryview(chunk), zlib.crc32, layout.UNSEALED
    for row, (low, high) in enumerate(pairwise(places)):
        if crc(view[low : high - rest]) != int.from_bytes(view[high - rest : high - rest + 4], "little"):
            return row
    return None
