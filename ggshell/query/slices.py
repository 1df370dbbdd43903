"""Queries in two halves: the first runs on each slice of large input, the second on all results.

A slice of Parquet files is a time range, so rows that belong together by time are in the same slice. A slice of a trail is a
split. No row is moved before it is counted: DuckDB processes each slice on one core in a
Spark task, and Spark distributes the tasks and combines the counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from ggshell.clock import from_datetime
from ggshell.query.local import LocalEngine, answered, unreadable_parquet
from ggshell.query.trail_read import SPLIT_BYTES, TrailView, plan
from ggshell.query.views import FirstHalf, ParquetView

if TYPE_CHECKING:
    import pyarrow.parquet as pq

SLICE_ROWS: Final = 1_000_000
TIMES_READ: Final = 2
"""All slices together can read at most this many times the number of rows."""


class _Group(NamedTuple):
    """A row group of a file: its minimum and maximum time (None if the file does not have them), and its number of rows."""

    file: str
    low: int | None
    high: int | None
    rows: int

    def may_have(self, low: int | None, high: int | None) -> bool:
        """Whether it can contain rows of a time range."""
        starts_before = self.low is None or high is None or self.low < high
        return starts_before and (self.high is None or low is None or self.high >= low)


def sliced(part: FirstHalf, rows: int = SLICE_ROWS) -> list[FirstHalf]:
    """The first half of a query for each slice of its view, about ``rows`` rows each.

    A view that cannot be sliced is a single slice.

    Files that are not sorted by this time get fewer slices, so that no file is read too often.
    """
    view = part.view
    if isinstance(view, TrailView):
        splits = plan(view.files, SPLIT_BYTES, up_to_cut=True, on_damage=view.on_damage)
        return [part._replace(view=replace(view, split=split)) for split in splits]
    if not isinstance(view, ParquetView) or view.span is None:
        return [part]
    groups = [group for file in view.files for group in _groups(file, view.span.column)]
    every = sum(group.rows for group in groups)
    spans = _spans(groups, rows)
    while len(spans) > 1 and sum(group.rows for span in spans for group in span.groups) > every * TIMES_READ:
        rows *= 2
        spans = _spans(groups, rows)
    slices = []
    for each in spans:
        files = tuple(dict.fromkeys(group.file for group in each.groups))
        if files:
            span = view.span._replace(low=each.low, high=each.high)
            slices.append(part._replace(view=replace(view, files=files, span=span)))
    return slices or [part]


class _Times(NamedTuple):
    """The time between two cuts, and the row groups that can contain rows of it."""

    low: int | None
    high: int | None
    groups: list[_Group]


def _spans(groups: Sequence[_Group], rows: int) -> list[_Times]:
    return [
        _Times(low, high, [group for group in groups if group.may_have(low, high)])
        for low, high in pairwise([None, *_cuts(groups, rows), None])
    ]


def _cuts(groups: Sequence[_Group], rows: int) -> list[int]:
    """Times that cut the row groups into about ``rows`` rows each, assuming that the groups follow each other in time."""
    cuts, gathered = list[int](), 0
    for group in sorted((each for each in groups if each.low is not None), key=lambda each: each.low or 0):
        if gathered >= rows and group.low is not None and (not cuts or group.low > cuts[-1]):
            cuts.append(group.low)
            gathered = 0
        gathered += group.rows
    return cuts


def _groups(file: str, column: str) -> Iterator[_Group]:
    with _opened(file) as opened:
        metadata = opened.metadata
        place = opened.schema_arrow.get_field_index(column)
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            known = group.column(place).statistics if place >= 0 else None
            low = high = None
            if known is not None and known.has_min_max:
                low, high = _microseconds(known.min), _microseconds(known.max)
            yield _Group(file, low, high, group.num_rows)


def _opened(file: str) -> pq.ParquetFile:
    import pyarrow.parquet as pq  # imported here: a small query does not need it

    try:
        return pq.ParquetFile(file)
    except (OSError, pa.ArrowException) as error:
        raise unreadable_parquet(file, error) from error


def _microseconds(value: Any) -> int | None:
    if not isinstance(value, datetime):
        return None
    return from_datetime(value if value.tzinfo is not None else value.replace(tzinfo=UTC))


def in_task(
    parts: Sequence[FirstHalf], schema: pa.Schema
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for a Spark task: it receives slice numbers and returns the results of these slices."""

    def count(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        engine = LocalEngine(threads=1)
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from answered(engine, parts[number], schema).to_batches()

    return count
