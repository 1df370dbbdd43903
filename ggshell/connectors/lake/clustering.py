"""The rows of data files: in row groups of equal size, and sorted if their table is clustered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

ROW_GROUP_ROWS = 1 << 16
"""Rows that are read to get one of them. Smaller groups compress worse, larger ones make single rows expensive."""


class FileRows(NamedTuple):
    """The rows of one file, in row groups. ``order``: which row of the input each row is, if they are sorted."""

    groups: Iterator[pa.Table]
    order: NDArray[np.int64] | None = None


def file_rows(parts: Iterable[pa.Table], rows_in_file: int, cluster: Sequence[str] = ()) -> Iterator[FileRows]:
    """Divide rows into files. The groups of a file must be read before the next file.

    In memory are the rows of one row group, or, if they are sorted, of one file.
    """
    if cluster:
        for rows in groups_of(parts, rows_in_file):
            sorted_rows = sorted_by(rows, cluster)
            yield FileRows(groups_of([sorted_rows.rows], ROW_GROUP_ROWS), sorted_rows.order)
        return
    groups = groups_of(parts, min(ROW_GROUP_ROWS, rows_in_file))
    waiting = [next(groups, None)]
    while waiting[0] is not None:
        yield FileRows(_until(groups, waiting, rows_in_file))


def _until(groups: Iterator[pa.Table], waiting: list[pa.Table | None], rows_in_file: int) -> Iterator[pa.Table]:
    """The groups of one file; ``waiting`` has the next one afterwards."""
    written = 0
    while waiting[0] is not None and (not written or written + waiting[0].num_rows <= rows_in_file):
        yield waiting[0]
        written += waiting[0].num_rows
        waiting[0] = next(groups, None)


class SortedRows(NamedTuple):
    """Rows in order; ``order``: which row of the input each one is."""

    rows: pa.Table
    order: NDArray[np.int64]


def sorted_by(rows: pa.Table, cluster: Sequence[str]) -> SortedRows:
    """Sort rows by columns. A column that the table does not have is left out."""
    keys = [(name, "ascending") for name in cluster if name in rows.column_names]
    if not keys:
        return SortedRows(rows, np.arange(rows.num_rows))
    order = pc.sort_indices(rows.select([name for name, _ in keys]), keys)
    return SortedRows(rows.take(order), order.to_numpy().astype(np.int64))


def groups_of(parts: Iterable[pa.Table], most: int) -> Iterator[pa.Table]:
    """The same rows in tables of equal size."""
    waiting: list[pa.Table] = []
    rows = 0
    for part in parts:
        start = 0
        while start < part.num_rows:
            taken = part.slice(start, most - rows)
            start += taken.num_rows
            waiting.append(taken)
            rows += taken.num_rows
            if rows == most:
                yield pa.concat_tables(waiting)
                waiting, rows = [], 0
    if waiting:
        yield pa.concat_tables(waiting)
