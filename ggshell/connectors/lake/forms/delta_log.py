"""The log of a Delta lake: data files that Spark's tasks have written are committed without reading them again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from ggshell.connectors.lake.log_files import LogFile, LogLayout

PARTITIONS = ("owner", "table")


def delta_layout(location: str, columns: pa.Schema) -> LogLayout:
    """Where tasks write files of the log, and their columns: the partitions are not in the files."""
    schema = pa.schema([field for field in columns if field.name not in PARTITIONS])
    return LogLayout(location, "log", schema, f"-{uuid4()}")


def append_files(
    table: DeltaTable, files: Sequence[LogFile], columns: pa.Schema, commit: CommitProperties, time: datetime
) -> None:
    """Add data files to the log in one commit."""
    actions: list[AddAction | RemoveAction] = [
        AddAction(
            path=file.path.removeprefix("log/"),
            size=file.size,
            partition_values={"owner": file.table.owner, "table": file.table.name},
            modification_time=int(time.timestamp() * 1000),
            data_change=True,
            stats=statistics(file.metadata),
        )
        for file in files
    ]
    table.create_write_transaction(actions, "append", columns, list(PARTITIONS), commit_properties=commit)


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
            low[name] = _plain(min(chunk.min for chunk in bounds))
            high[name] = _plain(max(chunk.max for chunk in bounds))
    found = {"numRecords": footer.num_rows, "minValues": low, "maxValues": high, "nullCount": nulls}
    return json.dumps(found)


def _plain(value: object) -> object:
    """A bound as Delta writes it; times have milliseconds, and readers know that bounds can be truncated."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return value
