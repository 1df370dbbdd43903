"""Row messages of pgoutput to data areas, for thousands of rows at once.

The columns of all rows are walked in lock-step: one numpy step a column, whatever the number of rows.  Then headers are
scattered and values moved by one masked copy, since they stand in the same order on both sides.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

_T, _N = 0x74, 0x6E
_SHORT_HEAD = 8
_NULL_HEAD = 6


class Encoded(NamedTuple):
    """Data areas in one buffer; rows with a value too long for this form have length -1."""

    buffer: Bytes
    start: Ints
    length: Ints


class _Step(NamedTuple):
    """One column of the rows that have it: which rows, where the value lies, how long (-1: NULL, -2: left out)."""

    column: int
    rows: Ints
    place: Ints
    size: Ints


def big32(raw: Bytes, place: Ints) -> Ints:
    """Big-endian 4-byte integers at places."""
    four: Ints = raw[place[:, None] + np.arange(4)].view(">u4").ravel().astype(np.int64)
    return four


def big16(raw: Bytes, place: Ints) -> Ints:
    return raw[place].astype(np.int64) << 8 | raw[place + 1]


def encode_tuples(raw: Bytes, first: Ints, keep: NDArray[np.bool_] | None, longest: int) -> Encoded:
    """The images of the tuples that begin at ``first`` (at their column count).

    ``keep``: rows x columns, which columns go into the image (None: all).  ``longest``: the longest value of the short form.
    """
    steps, long_rows = _walk(raw, first, keep, longest)
    rows = len(first)
    sizes = np.zeros(rows, dtype=np.int64)
    for step in steps:
        sizes[step.rows] += np.where(step.size >= 0, step.size + _SHORT_HEAD, np.where(step.size == -1, _NULL_HEAD, 0))
    sizes[long_rows] = 0
    start = np.cumsum(sizes) - sizes
    out = np.zeros(int(sizes.sum()), dtype=np.uint8)
    source_edges = np.zeros(len(raw) + 1, dtype=np.int8)
    target_edges = np.zeros(len(out) + 1, dtype=np.int8)
    place = start.copy()
    bad = np.zeros(rows, dtype=bool)
    bad[long_rows] = True
    for step in steps:
        _put(step, place, bad, out, source_edges, target_edges)
    taken = np.cumsum(source_edges[:-1], dtype=np.int8).view(bool)
    given = np.cumsum(target_edges[:-1], dtype=np.int8).view(bool)
    out[given] = raw[taken]
    return Encoded(out, start, np.where(bad, -1, sizes))


def _walk(raw: Bytes, first: Ints, keep: NDArray[np.bool_] | None, longest: int) -> tuple[list[_Step], Ints]:
    counts = big16(raw, first)
    place = first + 2
    active = np.arange(len(first), dtype=np.int64)
    steps: list[_Step] = []
    long_rows: list[Ints] = []
    limit = len(raw) - 5
    for index in range(int(counts.max(initial=0))):
        chosen = counts[active] > index
        if not chosen.all():
            active = active[chosen]
        here = place[active]
        kind = raw[here]
        text = kind == _T
        size = np.where(text, big32(raw, np.minimum(here + 1, limit)), np.where(kind == _N, -1, -2))
        place[active] = here + 1 + np.where(text, size + 4, 0)
        if keep is not None:
            size = np.where(keep[active, index], size, -2)
        if (size > longest).any():
            long_rows.append(active[size > longest])
        steps.append(_Step(index, active, here + 5, size))
    return steps, np.concatenate(long_rows) if long_rows else np.empty(0, dtype=np.int64)


def _put(
    step: _Step,
    place: Ints,
    bad: NDArray[np.bool_],
    out: Bytes,
    source_edges: NDArray[np.int8],
    target_edges: NDArray[np.int8],
) -> None:
    """Write one column's heads, and mark where its values come from and go to."""
    good = (step.size > -2) & ~bad[step.rows]
    rows, size, value = step.rows[good], step.size[good], step.place[good]
    at = place[rows]
    null = size < 0
    _put16(out, at, np.full(len(at), step.column))
    _put16(out, at + 2, np.where(null, 2, size + 4))
    _put16(out, at + 4, np.where(null, 0xFFFF, 0))
    some = ~null
    _put16(out, at[some] + 6, size[some])
    full = size > 0
    source_edges[value[full]] = 1
    source_edges[value[full] + size[full]] = -1
    target_edges[at[full] + _SHORT_HEAD] = 1
    target_edges[at[full] + _SHORT_HEAD + size[full]] = -1
    place[rows] = at + np.where(null, _NULL_HEAD, size + _SHORT_HEAD)


def _put16(out: Bytes, place: Ints, value: NDArray[np.integer]) -> None:
    out[place] = value & 0xFF
    out[place + 1] = value >> 8
