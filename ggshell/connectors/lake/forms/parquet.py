"""Parquet files of a lake: batches of the change log, and versions of a table's current state.

    <target>/log/batch=000000000007/owner=shop/table=orders/*.parquet     every change, once
    <target>/current/shop.orders/v=000000000007/*.parquet                 the rows after that batch

A table's columns have the types that ``ggtrail`` uses (a time with a zone is an instant in UTC). ``_key`` identifies the rows
for the next batch. The commit names the valid version. The version before it is kept for readers that have already opened it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from ggshell.connectors.lake.forms import KEY, HeldTable, LakeBatch, TableChange
from ggshell.connectors.lake.log_files import LogFile, LogLayout
from ggshell.connectors.lake.rows import is_wider
from ggshell.connectors.lake.store import LakeStore
from ggshell.files import read_json
from ggshell.query.trail_read import COLUMNS, chosen
from ggshell.types import TableName, TrailPosition

_NUMBERS = b"ggshell.columns"
"""The key of the schema's metadata with the source's numbers of the columns."""


class ParquetTables:
    """The Parquet files in a folder. Data of a batch without a commit is overwritten."""

    def __init__(self, location: str) -> None:
        self._store = LakeStore(location)

    def reached(self, name: TableName | None) -> TrailPosition | None:
        return None

    def held(self, name: TableName, batch: LakeBatch) -> HeldTable | None:
        version = batch.versions.get(str(name))
        if version is None:
            return None
        files = self._dataset(name, version)
        numbers = read_json((files.schema.metadata or {}).get(_NUMBERS, b"{}"))
        return HeldTable(files.schema, partial(_rows, files), numbers)

    def fitting(self, kind: pa.DataType) -> pa.DataType:
        return kind

    def widens(self, old: pa.DataType, new: pa.DataType) -> bool:
        return is_wider(old, new)

    def log_layout(self, number: int) -> LogLayout:
        folder = f"log/batch={number:012d}"
        self._store.delete_folder(folder)
        schema = pa.schema([field for field in chosen(COLUMNS) if field.name not in ("owner", "table")])
        return LogLayout(self._store.location, folder, schema, hive=True)

    def append_log(self, files: Sequence[LogFile], batch: LakeBatch) -> None:
        """The files are in the log since they are written."""

    def apply(self, change: TableChange, batch: LakeBatch) -> None:
        """Write the next version of a table: the previous one without the replaced rows, and the new rows."""
        name = change.definition.name
        before = batch.versions.get(str(name))
        folder = version_folder(name, batch.number)
        self._store.delete_folder(folder)
        schema = change.rows.schema.with_metadata({_NUMBERS: json.dumps(dict(change.numbers)).encode()})
        kept = () if before is None or change.cleared else self._kept(change, before, schema)
        with (
            self._store.writing(f"{folder}/part-0.parquet") as sink,
            pq.ParquetWriter(sink, schema, compression="zstd") as writer,
        ):
            for part in kept:
                writer.write_batch(part)
            writer.write_table(change.rows.cast(schema))
        self._forget(name, {batch.number, before})

    def _kept(self, change: TableChange, before: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows of a version that a change keeps, in the columns that the table has after it."""
        names = {new: old for old, new in change.renamed}
        there = pa.schema([field.with_name(names.get(field.name, field.name)) for field in schema])
        files = self._dataset(change.definition.name, before, there)
        for part in files.to_batches(filter=~pc.field(KEY).isin(change.replaced)):
            yield pa.record_batch(part.columns, schema=schema)

    def _dataset(self, name: TableName, version: int, schema: pa.Schema | None = None) -> ds.Dataset:
        """The files of a version; ``schema``: the columns to read, if they are not those of the files."""
        place = self._store.child(version_folder(name, version))
        return ds.dataset(place.path, schema, "parquet", filesystem=place.system, partitioning=None)

    def _forget(self, name: TableName, kept: set[int | None]) -> None:
        """Remove all versions except this one and the one before it, which readers can still use."""
        for folder in self._store.names(f"current/{name}"):
            if folder.startswith("v=") and int(folder[2:]) not in kept:
                self._store.delete_folder(f"current/{name}/{folder}")


def version_folder(name: TableName, version: int) -> str:
    """The folder of a version of a table's current state, below the lake's location."""
    return f"current/{name}/v={version:012d}"


def _rows(files: ds.Dataset, keys: pa.Array | None) -> pa.Table:
    """The rows of a version with some keys, or all rows."""
    return files.to_table(filter=None if keys is None else pc.field(KEY).isin(keys))
