"""Parquet files of a lake: batches of the change log, and versions of a table's current state.

    <target>/log/batch=000000000007/owner=shop/table=orders/*.parquet     every change, once
    <target>/current/shop.orders/v=000000000007/*.parquet                 the rows after that batch
    <target>/current/shop.orders/v=000000000007/region=eu/*.parquet       the same with PARTITIONBY

A table's columns have the types that ``ggtrail`` uses (a time with a zone is an instant in UTC). ``_key`` identifies the rows
for the next batch. The commit names the valid version. The version before it is kept for readers that have already opened it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from ggshell.connectors.lake.clustering import sorted_by
from ggshell.connectors.lake.columns import with_filled
from ggshell.connectors.lake.forms import KEY, HeldTable, LakeBatch, TableChange
from ggshell.connectors.lake.forms.source_record import record_properties, source_record
from ggshell.connectors.lake.log_files import LogFile, LogLayout
from ggshell.connectors.lake.partitions import Values, partitioned
from ggshell.connectors.lake.store import LakeStore
from ggshell.connectors.lake.type_changes import is_wider
from ggshell.errors import StoreError
from ggshell.parameters.lake_tables import DEFAULT_LAYOUTS, LakeLayouts, TableLayout
from ggshell.query.trail_read import COLUMNS, chosen
from ggshell.types import TableName, TrailPosition


class ParquetTables:
    """The Parquet files in a folder. Data of a batch without a commit is overwritten."""

    def __init__(self, location: str, layouts: LakeLayouts = DEFAULT_LAYOUTS) -> None:
        self._store = LakeStore(location)
        self._layouts = layouts

    def reached(self, name: TableName | None) -> TrailPosition | None:
        return None

    def held(self, name: TableName, batch: LakeBatch) -> HeldTable | None:
        version = batch.versions.get(str(name))
        if version is None:
            return None
        files = self._dataset(name, version)
        said = source_record({name.decode(): value.decode() for name, value in (files.schema.metadata or {}).items()})
        return HeldTable(files.schema, partial(_rows, files), said.numbers, said.key)

    def fitting(self, kind: pa.DataType) -> pa.DataType:
        return kind

    def widens(self, old: pa.DataType, new: pa.DataType) -> bool:
        return is_wider(old, new)

    @property
    def renames(self) -> bool:
        return True

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
        schema = change.rows.schema.with_metadata(record_properties(change))
        kept = () if before is None or change.cleared else self._kept(change, before, schema)
        with VersionWriter(self._store, folder, schema, self._layouts.of(name)) as writer:
            for part in kept:
                writer.write(with_filled(pa.Table.from_batches([part], schema), change.filled))
            writer.write(change.rows.cast(schema))
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
        found = [self._store.child(path) for path in version_files(self._store, name, version)]
        paths = [place.path for place in found]
        return ds.dataset(paths, schema, "parquet", filesystem=found[0].system, partitioning=None)

    def _forget(self, name: TableName, kept: set[int | None]) -> None:
        """Remove all versions except this one and the one before it, which readers can still use."""
        for folder in self._store.names(f"current/{name}"):
            if folder.startswith("v=") and int(folder[2:]) not in kept:
                self._store.delete_folder(f"current/{name}/{folder}")


class VersionWriter:
    """Writes the rows of a version: files of the target size, in a folder for each partition.

    Columns of partitions are in the files too, so a reader needs no folder names. Derived ones are in the names only.
    """

    def __init__(self, store: LakeStore, folder: str, schema: pa.Schema, layout: TableLayout) -> None:
        self._store = store
        self._folder = folder
        self._schema = schema
        self._layout = layout
        self._open: dict[Values, _OpenFile] = {}
        self._files = ExitStack()
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def write(self, rows: pa.Table) -> None:
        for part in partitioned(rows, self._layout.partition):
            file = self._open.get(part.values)
            if file is None:
                file = self._open[part.values] = self._begin(part.values)
            file.writer.write_table(sorted_by(part.rows.select(self._schema.names), self._layout.cluster).rows)
            if file.sink.tell() >= self._layout.target_bytes:
                file.complete.close()
                del self._open[part.values]

    def _begin(self, values: Values) -> _OpenFile:
        below = "".join(f"/{_hive_name(name)}={_hive(text)}" for name, text in values)
        complete = self._files.enter_context(ExitStack())
        sink = complete.enter_context(self._store.writing(f"{self._folder}{below}/part-{self._number}.parquet"))
        self._number += 1
        codec = self._layout.compression.value
        writer = complete.enter_context(pq.ParquetWriter(sink, self._schema, compression=codec))
        return _OpenFile(sink, writer, complete)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.__exit__(kind, error, trace)
        if error is None and not self._number:
            with self._store.writing(f"{self._folder}/part-0.parquet") as sink:
                pq.write_table(self._schema.empty_table(), sink)


class _OpenFile(NamedTuple):
    sink: Any
    writer: pq.ParquetWriter
    complete: ExitStack


def _hive_name(column: str) -> str:
    """The name of a column in that of a folder. Readers skip folders that begin with ``_`` or ``.``, so these are escaped."""
    text = quote(column, safe="")
    return f"%{ord(text[0]):02X}{text[1:]}" if text[:1] in ("_", ".") else text


def _hive(text: str | None) -> str:
    return "__HIVE_DEFAULT_PARTITION__" if text is None else quote(text, safe="")


def version_folder(name: TableName, version: int) -> str:
    """The folder of a version of a table's current state, below the lake's location."""
    return f"current/{name}/v={version:012d}"


def version_files(store: LakeStore, name: TableName, version: int) -> list[str]:
    """The files of a version, below the lake's location. Raises StoreError if there are none: each version has one."""
    folder = version_folder(name, version)
    found = [f"{folder}/{path}" for path in store.files(folder) if path.endswith(".parquet")]
    if not found:
        raise StoreError(
            f"lake {store.location} lacks a file of its tables: {folder} contains no Parquet file",
            hint="restore the lake: it was moved or emptied, or another program has deleted files of it",
        )
    return found


def _rows(files: ds.Dataset, keys: pa.Array | None) -> pa.Table:
    """The rows of a version with some keys, or all rows."""
    return files.to_table(filter=None if keys is None else pc.field(KEY).isin(keys))
