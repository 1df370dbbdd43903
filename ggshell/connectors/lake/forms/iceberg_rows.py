"""Replaces rows of an Iceberg table without rewriting its large files (merge-on-read).

A snapshot adds a file with the new rows and a position delete file that marks the earlier ones. Small files and files with
many deleted rows are rewritten instead (``file_plan``). Of each partition one delete file at most is open: it is replaced by
a longer one until it has ``SEALED_ROWS`` rows, so neither the number of delete files nor the cost of a write grows with the
number of writes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation
from pyiceberg.typedef import Record
from pyroaring import BitMap

from ggshell.connectors.lake import file_plan
from ggshell.connectors.lake.columns import with_filled
from ggshell.connectors.lake.file_plan import WriteRules
from ggshell.connectors.lake.forms.iceberg_files import Partition, TableFiles, partition_of
from ggshell.connectors.lake.forms.iceberg_snapshot import FileChange, FileChanges, LiveFiles, Snapshots
from ggshell.connectors.lake.key_index import KeyIndexes
from ggshell.parameters.lake_tables import DEFAULT_LAYOUT, TableLayout

SEALED_ROWS = 100_000
PARQUET_RATIO = 3
"""How much smaller rows are in Parquet than in Arrow, before a file of the table shows it."""


class RowChanges:
    """Finds and replaces rows of one table by key. ``cache``: a folder for the indexes of its files."""

    def __init__(
        self, io: FileIO, cache: Path, layout: TableLayout = DEFAULT_LAYOUT, rules: WriteRules | None = None
    ) -> None:
        """``rules``: those that follow from the layout, unless others are given."""
        self._io = io
        self._rules = rules or WriteRules(layout.deleted_share, layout.target_bytes // 4)
        self._layout = layout
        self._snapshots = Snapshots(io)
        self._indexes = KeyIndexes(cache)

    def rows(self, table: Table, keys: pa.Array) -> pa.Table:
        """The rows with these keys."""
        live, files = self._read(table.metadata)
        found = [files.arrow_schema.empty_table()]
        for path, positions in self._hits(live, files, keys).items():
            found.append(files.rows_at(path, np.asarray(positions.to_array(), np.int64)))
        return pa.concat_tables(found)

    def replace(
        self,
        transaction: Transaction,
        rows: pa.Table,
        replaced: pa.Array | None,
        properties: Mapping[str, str],
        filled: Mapping[str, pa.Scalar] = MappingProxyType({}),
    ) -> None:
        """Add rows, and delete those with the keys ``replaced`` (None: all earlier ones), in one snapshot.

        ``filled``: the values of added columns in the other earlier rows, which are then all rewritten.

        Raises one of ``CONFLICTS``, here or when the transaction ends, if the table has another snapshot meanwhile: refresh it
        and try again.
        """
        live, files = self._read(transaction.table_metadata)
        if replaced is None:
            change = self._all_new(transaction.table_metadata, files, live, rows)
        else:
            hits = self._hits(live, files, replaced)
            change = self._change(transaction.table_metadata, files, live, hits, rows, filled)
        if change.added or change.removed:
            FileChanges(transaction, live, change, Operation.OVERWRITE, properties).commit()

    def remove_all(self, transaction: Transaction, properties: Mapping[str, str]) -> None:
        """Delete all rows in a snapshot of its own: the partitions of their files are described by the present columns."""
        live, _ = self._read(transaction.table_metadata)
        if live.data:
            change = FileChange([], {*live.data, *live.deletes})
            FileChanges(transaction, live, change, Operation.DELETE, properties).commit()

    def _read(self, metadata: TableMetadata) -> tuple[LiveFiles, TableFiles]:
        live = self._snapshots.read(metadata)
        self._indexes.retain(live.data)
        return live, TableFiles(metadata, self._io)

    def _hits(self, live: LiveFiles, files: TableFiles, keys: pa.Array) -> dict[str, BitMap]:
        """The positions of live rows with these keys, by data file."""
        found = {
            path: BitMap(hits.positions.astype(np.uint32)) - live.dead_of(path)
            for path, hits in self._indexes.find(keys, live.data, files.keys).items()
        }
        return {path: positions for path, positions in found.items() if positions}

    def _change(
        self,
        metadata: TableMetadata,
        files: TableFiles,
        live: LiveFiles,
        hits: Mapping[str, BitMap],
        rows: pa.Table,
        filled: Mapping[str, pa.Scalar],
    ) -> FileChange:
        fresh = dict(_partitioned(metadata, rows)) if rows.num_rows else {}
        rewritten = set(live.data) if filled else self._rewritten(live, hits, rows, fresh)
        added: list[DataFile] = []
        old: dict[Partition, list[str]] = defaultdict(list)
        for path in sorted(rewritten):
            old[partition_of(live.data[path])].append(path)
        for partition in {**old, **fresh}:
            left = (with_filled(each, filled) for each in _left(files, live, hits, old.get(partition, [])))
            parts = chain(left, [fresh[partition]] if partition in fresh else [])
            added += self._written(files, parts, partition, self._rows_in_file(live, rows))
        marks, unmarked = open_deletes(live, {path: hits[path] for path in hits if path not in rewritten}, rewritten)
        added += [files.write_deletes(marked, partition) for partition, marked in marks.items()]
        return FileChange(added, rewritten | unmarked)

    def _rewritten(
        self, live: LiveFiles, hits: Mapping[str, BitMap], rows: pa.Table, fresh: Iterable[Partition]
    ) -> set[str]:
        return file_plan.files_to_rewrite(
            described_files(live),
            {path: len(positions) for path, positions in hits.items()},
            rows.nbytes // PARQUET_RATIO,
            self._rules,
            [repr(partition) for partition in fresh],
        )

    def _written(
        self, files: TableFiles, parts: Iterable[pa.Table], partition: Partition, rows_in_file: int
    ) -> Iterator[DataFile]:
        for each in files.write_rows(parts, partition, rows_in_file, self._layout.cluster):
            yield each.file

    def _all_new(self, metadata: TableMetadata, files: TableFiles, live: LiveFiles, rows: pa.Table) -> FileChange:
        fresh = _partitioned(metadata, rows) if rows.num_rows else ()
        added = (self._written(files, [part], partition, self._rows_in_file(live, rows)) for partition, part in fresh)
        return FileChange(list(chain.from_iterable(added)), {*live.data, *live.deletes})

    def _rows_in_file(self, live: LiveFiles, rows: pa.Table) -> int:
        size, count = rows.nbytes / PARQUET_RATIO, rows.num_rows
        for file in live.data.values():
            size, count = size + file.file_size_in_bytes, count + file.record_count
        return max(1, int(self._layout.target_bytes * count / max(1.0, size)))


def described_files(live: LiveFiles) -> list[file_plan.DataFile]:
    """The data files of a snapshot as plans of writes and compactions see them."""
    return [
        file_plan.DataFile(
            path, file.record_count, file.file_size_in_bytes, len(live.dead_of(path)), repr(partition_of(file))
        )
        for path, file in live.data.items()
    ]


def open_deletes(
    live: LiveFiles, hits: Mapping[str, BitMap], gone: set[str]
) -> tuple[dict[Partition, dict[str, BitMap]], set[str]]:
    """The delete files to write, by partition, and the paths of those that go: replaced ones, and ones without a live row.

    ``hits``: rows to mark; ``gone``: data files that are removed in the same snapshot.
    """
    marks: dict[Partition, dict[str, BitMap]] = defaultdict(dict)
    for path, positions in hits.items():
        marks[partition_of(live.data[path])][path] = positions
    removed = set()
    for path, marked in live.marked.items():
        alive = {file: positions for file, positions in marked.items() if file in live.data and file not in gone}
        partition = partition_of(live.deletes[path])
        if not alive:
            removed.add(path)
        elif partition in marks and live.deletes[path].record_count < SEALED_ROWS:
            removed.add(path)
            for file, positions in alive.items():
                marks[partition][file] = marks[partition].get(file, BitMap()) | positions
    return dict(marks), removed


def _left(files: TableFiles, live: LiveFiles, hits: Mapping[str, BitMap], paths: list[str]) -> Iterator[pa.Table]:
    """The rows that stay of files that are rewritten."""
    for path in paths:
        yield from files.live_rows(path, live.dead_of(path) | hits.get(path, BitMap()))


def _partitioned(metadata: TableMetadata, rows: pa.Table) -> Iterator[tuple[Partition, pa.Table]]:
    """Divide rows by partition. Each distinct value is transformed once."""
    spec = metadata.spec()
    if spec.is_unpartitioned():
        yield (spec.spec_id, Record()), rows
        return
    values, numbers = [], []
    for field in spec.fields:
        source = metadata.schema().find_field(field.source_id)
        encoded = rows[source.name].combine_chunks().dictionary_encode(null_encoding="encode")
        transform = field.transform.transform(source.field_type)
        values.append([transform(each) for each in _internal(encoded.dictionary)])
        distinct = {each: number for number, each in enumerate(dict.fromkeys(values[-1]))}
        codes = np.array([distinct[each] for each in values[-1]], np.int64)
        numbers.append(codes[encoded.indices.to_numpy(zero_copy_only=False)])
        values[-1] = list(distinct)
    groups, place = np.unique(np.stack(numbers, 1), axis=0, return_inverse=True)
    for number, codes in enumerate(groups):
        record = Record(*(values[field][code] for field, code in enumerate(codes.tolist())))
        yield (spec.spec_id, record), rows.filter(pa.array(place.reshape(-1) == number))


def _internal(values: pa.Array) -> list[Any]:
    """Values as Iceberg's transforms take them: dates and times as numbers since 1970."""
    if pa.types.is_date(values.type):
        return values.cast(pa.int32()).to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_timestamp(values.type):
        return values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64()).to_pylist()  # type: ignore[no-any-return]
    return values.to_pylist()  # type: ignore[no-any-return]
