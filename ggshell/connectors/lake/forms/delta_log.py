"""The log of a Delta lake: data files that Spark's tasks have written are committed without reading them again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from math import isfinite
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from ggshell.connectors.lake.forms.delta_state import Action, AddedFile, log_text
from ggshell.connectors.lake.log_files import LogFile, LogLayout

PARTITIONS = ("owner", "table")
_EXACT_DIGITS: Final = 15
"""Decimal digits that every floating-point number keeps."""
_LONGEST: Final = 256
"""Letters of the longest text that is a bound."""


def delta_layout(location: str, columns: pa.Schema) -> LogLayout:
    """Where tasks write files of the log, and their columns: the partitions are not in the files."""
    schema = pa.schema([field for field in columns if field.name not in PARTITIONS])
    return LogLayout(location, "log", schema, f"-{uuid4()}")


def added_files(files: Sequence[LogFile], now: int) -> list[Action]:
    """The actions that add data files to the log. ``now``: milliseconds."""
    found = []
    for file in files:
        values = (("owner", file.table.owner), ("table", file.table.name))
        path = file.path.removeprefix("log/")
        found.append(AddedFile(path, values, file.size, statistics(file.metadata)).added(now))
    return found


def statistics(footer: pq.FileMetaData) -> str:
    """Delta's statistics of a file, from its Parquet footer: rows, and the bounds and NULLs of columns that are not nested."""
    low: dict[str, object] = {}
    high: dict[str, object] = {}
    nulls: dict[str, int] = {}
    for number in range(footer.num_columns):
        name = footer.schema.column(number).path
        chunks = [footer.row_group(group).column(number).statistics for group in range(footer.num_row_groups)]
        if "." in name or not all(chunk is not None and chunk.has_null_count for chunk in chunks):
            continue
        nulls[name] = sum(chunk.null_count for chunk in chunks)
        bounds = [chunk for chunk in chunks if chunk.has_min_max]
        if len(bounds) == len(chunks):
            least, most = (_plain(one(_bound(each, high=one is max) for each in bounds)) for one in (min, max))
            if least is not None and most is not None:
                low[name], high[name] = least, most
    found = {"numRecords": footer.num_rows, "minValues": low, "maxValues": high, "nullCount": nulls}
    return log_text(found)


def _bound(chunk: pq.Statistics, *, high: bool) -> Any:
    return chunk.max if high else chunk.min


def _plain(value: object) -> object:
    """A bound as Delta writes it; None if it has no exact form there. Times with a zone are in UTC."""
    match value:
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        case datetime():
            return value.isoformat(timespec="microseconds")
        case date():
            return value.isoformat()
        case Decimal():
            return float(value) if len(value.as_tuple().digits) <= _EXACT_DIGITS else None
        case float():
            return value if isfinite(value) else None
        case str():
            return value if len(value) <= _LONGEST else None
        case bool() | bytes():
            return None
        case _:
            return value
