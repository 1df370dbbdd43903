"""Converts the row messages of pgoutput to data areas, thousands of rows at once.

The columns of all rows are processed together: a few numpy steps per column, regardless of the number of rows. The headers are
scattered, and the values of one length are copied together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ggshell.record.ragged import copy_pieces, everywhere

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

_T, _N = 0x74, 0x6E
_SHORT_HEAD = 8
_NULL_HEAD = 6


class Encoded(NamedTuple):
    """Data areas in one buffer. Rows with a value too long for this form have length -1.

    ``lacking`` marks the rows for which the log does not have every column, if that was requested.
    """

    buffer: Bytes
    start: Ints
    length: Ints
    lacking: NDArray[np.bool_] | None = None


class _Output(NamedTuple):
    """The output, and views of it as integers of 8, 4 and 2 bytes at any byte offset."""

    raw: memoryview
    eight: NDArray[np.integer]
    four: NDArray[np.integer]
    two: NDArray[np.integer]


class ColumnStep(NamedTuple):
    """One column of the rows that have it: the rows, the offset of each value, and its size (-1: NULL, -2: left
    out)."""

    column: int
    rows: Ints
    place: Ints
    size: Ints


def big32(raw: Bytes, place: Ints) -> Ints:
    """The big-endian 4-byte integers at some offsets."""
    return everywhere(raw, ">u4")[place].astype(np.int64)


def big16(raw: Bytes, place: Ints) -> Ints:
    return everywhere(raw, ">u2")[place].astype(np.int64)


def encode_tuples(
    raw: Bytes, first: Ints, keep: NDArray[np.bool_] | None, longest: int, *, ask_lacking: bool = False
) -> Encoded:
    """The images of the tuples that begin at ``first`` (at their column count).

    ``keep`` (rows x columns) selects the columns of the images (None: all). ``longest`` is the longest value of the
    short form. ``ask_lacking`` requests which rows lack a column.
    """
    steps, long_rows = _walk(raw, first, keep, longest)
    encoded = encode_steps(raw, steps, long_rows, len(first))
    return encoded._replace(lacking=_lacking(steps, len(first))) if ask_lacking else encoded


def encode_steps(raw: Bytes, steps: list[ColumnStep], long_rows: Ints, rows: int) -> Encoded:
    """The images of rows whose values were located, one step per column, in the order of the columns.

    ``long_rows`` have a value that is too long for the short form.
    """
    sizes = np.zeros(rows, dtype=np.int64)
    for step in steps:
        sizes[step.rows] += np.where(step.size >= 0, step.size + _SHORT_HEAD, np.where(step.size == -1, _NULL_HEAD, 0))
    sizes[long_rows] = 0
    start = np.cumsum(sizes) - sizes
    out = np.zeros(int(sizes.sum()), dtype=np.uint8)
    place = start.copy()
    bad = np.zeros(rows, dtype=bool)
    bad[long_rows] = True
    output = _Output(out.data, everywhere(out, "<u8"), everywhere(out, "<u4"), everywhere(out, "<u2"))
    for step in steps:
        _put(step, place, bad, output, raw)
    return Encoded(out, start, np.where(bad, -1, sizes))


def _lacking(steps: list[ColumnStep], rows: int) -> NDArray[np.bool_]:
    found = np.zeros(rows, dtype=bool)
    for step in steps:
        found[step.rows[step.size == -2]] = True
    return found


def _walk(raw: Bytes, first: Ints, keep: NDArray[np.bool_] | None, longest: int) -> tuple[list[ColumnStep], Ints]:
    counts = big16(raw, first)
    place = first + 2
    active = np.arange(len(first), dtype=np.int64)
    steps: list[ColumnStep] = []
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
        steps.append(ColumnStep(index, active, here + 5, size))
    return steps, np.concatenate(long_rows) if long_rows else np.empty(0, dtype=np.int64)


def _put(
    step: ColumnStep,
    place: Ints,
    bad: NDArray[np.bool_],
    out: _Output,
    raw: Bytes,
) -> None:
    """Write the headers and the values of one column."""
    rows, size, value = step.rows, step.size, step.place
    if bad.any() or (size == -2).any():
        good = (size > -2) & ~bad[rows]
        rows, size, value = rows[good], size[good], value[good]
    at = place[rows]
    width = size + _SHORT_HEAD
    null = size < 0
    if null.any():
        nowhere = at[null]
        out.four[nowhere] = step.column | 2 << 16
        out.two[nowhere + 4] = 0xFFFF
        width[null] = _NULL_HEAD
        some = ~null
        _values(step.column, at[some], size[some], value[some], out, raw)
    else:
        _values(step.column, at, size, value, out, raw)
    place[rows] = at + width


def _values(column: int, at: Ints, size: Ints, value: Ints, out: _Output, raw: Bytes) -> None:
    out.eight[at] = column | size + 4 << 16 | size << 48
    copy_pieces(out.raw, at + _SHORT_HEAD, raw.data, value, size)
