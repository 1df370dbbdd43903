"""Questions in two halves: the first asked of each slice of what is large by itself, the second of all the answers.

A slice of Parquet files is a span of time, so whatever belongs together by its time is in one; that of a trail is a split,
which holds whole transactions.  No row has to travel before it is counted: each slice is DuckDB's, on one core, in a task of
Spark, which shares them out and puts the counts together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from ggshell.clock import from_datetime
from ggshell.spark.layout import SPLIT_BYTES, plan
from ggshell.spark.local import LocalEngine, unreadable_parquet
from ggshell.spark.views import ParquetView, Part, TrailView

if TYPE_CHECKING:
    import pyarrow.parquet as pq

SLICE_ROWS: Final = 1_000_000
TIMES_READ: Final = 2
"""So many times as many rows as there are may be looked at by all slices together."""


class _Group(NamedTuple):
    """A row group of a file: the least and the greatest time in it (None where the file does not say), and its rows."""

    file: str
    low: int | None
    high: int | None
    rows: int

    def may_have(self, low: int | None, high: int | None) -> bool:
        """Whether rows of a span can be in it."""
        starts_before = self.low is None or high is None or self.low < high
        return starts_before and (self.high is None or low is None or self.high >= low)


def sliced(part: Part, rows: int = SLICE_ROWS) -> list[Part]:
    """The first half of a question for each slice of its view, about so many rows each; all in one where nothing slices it.

    Files that are not in the order of that time are sliced less, so that none is read too often.
    """
    view = part.view
    if isinstance(view, TrailView):
        splits = plan(view.files, SPLIT_BYTES, up_to_cut=True)
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
    """From one cut to the next, and the row groups that may have rows there."""

    low: int | None
    high: int | None
    groups: list[_Group]


def _spans(groups: Sequence[_Group], rows: int) -> list[_Times]:
    return [
        _Times(low, high, [group for group in groups if group.may_have(low, high)])
        for low, high in pairwise([None, *_cuts(groups, rows), None])
    ]


def _cuts(groups: Sequence[_Group], rows: int) -> list[int]:
    """Times, each with about so many rows since the one before it; row groups are taken to begin one behind the other."""
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
    import pyarrow.parquet as pq  # here: a small question needs none of it

    try:
        return pq.ParquetFile(file)
    except (OSError, pa.ArrowException) as error:
        raise unreadable_parquet(file, error) from error


def _microseconds(value: Any) -> int | None:
    if not isinstance(value, datetime):
        return None
    return from_datetime(value if value.tzinfo is not None else value.replace(tzinfo=UTC))


def in_task(parts: Sequence[Part], schema: pa.Schema) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task of Spark does with numbers of slices: it gives their answers."""

    def count(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        engine = LocalEngine(threads=1)
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from answered(engine, parts[number], schema).to_batches()

    return count


def answered(engine: LocalEngine, part: Part, schema: pa.Schema) -> pa.Table:
    """The first half's answer about one view."""
    return engine.ask(part.sql, [part.view]).cast(schema)
