"""Parquet files of a lake: batches of the change log, and versions of a table's current state.

    <target>/log/batch=000000000007/owner=shop/table=orders/*.parquet     every change, once
    <target>/current/shop.orders/v=000000000007/*.parquet                 the rows after that batch

A table's columns have the types that ``ggtrail`` uses (a time with a zone is an instant in UTC). ``_key`` identifies the rows
for the next batch. The commit names the valid version. The version before it is kept for readers that have already opened it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from ggshell.connectors.lake.forms import KEY, HeldTable, LakeBatch, TableChange
from ggshell.types import TableName, TrailPosition


class ParquetTables:
    """The Parquet files in a folder. Data of a batch without a commit is overwritten."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def reached(self, name: TableName | None) -> TrailPosition | None:
        return None

    def held(self, name: TableName, batch: LakeBatch) -> HeldTable | None:
        version = batch.versions.get(str(name))
        if version is None:
            return None
        folder = version_folder(self._folder, str(name), version)
        files = ds.dataset(folder, format="parquet", partitioning=None)
        return HeldTable(files.schema, partial(_rows, files))

    def fitting(self, kind: pa.DataType) -> pa.DataType:
        return kind

    def append_log(self, rows: pa.Table, batch: LakeBatch) -> None:
        folder = self._folder / "log" / f"batch={batch.number:012d}"
        shutil.rmtree(folder, ignore_errors=True)
        ds.write_dataset(rows, folder, format="parquet", partitioning=["owner", "table"], partitioning_flavor="hive")

    def apply(self, change: TableChange, batch: LakeBatch) -> None:
        """Write the next version of a table: the previous one without the replaced rows, and the new rows."""
        name = str(change.definition.name)
        before = batch.versions.get(name)
        folder = version_folder(self._folder, name, batch.number)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        kept = () if before is None or change.cleared else self._kept(change, before)
        with pq.ParquetWriter(folder / "part-0.parquet", change.rows.schema) as writer:
            for part in kept:
                writer.write_batch(part)
            writer.write_table(change.rows)
        _forget(self._folder, name, batch.number, before)

    def _kept(self, change: TableChange, before: int) -> Iterator[pa.RecordBatch]:
        """The rows of a version that a change keeps, in the columns that the table has after it."""
        version = ds.dataset(
            version_folder(self._folder, str(change.definition.name), before),
            change.rows.schema,
            format="parquet",
            partitioning=None,
        )
        yield from version.to_batches(filter=~pc.field(KEY).isin(change.replaced))


def version_folder(folder: Path, name: str, version: int) -> Path:
    """The folder of a version of a table's current state."""
    return folder / "current" / name / f"v={version:012d}"


def _rows(files: ds.Dataset, keys: pa.Array | None) -> pa.Table:
    """The rows of a version with some keys, or all rows."""
    return files.to_table(filter=None if keys is None else pc.field(KEY).isin(keys))


def _forget(root: Path, name: str, version: int, before: int | None) -> None:
    """Remove all versions except this one and the one before it, which readers can still use."""
    kept = {version_folder(root, name, each) for each in (version, before) if each is not None}
    for folder in (root / "current" / name).glob("v=*"):
        if folder not in kept:
            shutil.rmtree(folder, ignore_errors=True)
