"""The data files of a Delta table: rows read by position, and new files. Partition columns are not in the files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import NamedTuple
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyroaring import BitMap

from ggshell.connectors.lake.clustering import FileRows, file_rows
from ggshell.connectors.lake.forms import KEY
from ggshell.connectors.lake.forms.delta_log import statistics
from ggshell.connectors.lake.forms.delta_state import Action, AddedFile
from ggshell.connectors.lake.partitions import Part, Values
from ggshell.connectors.lake.store import LakeStore
from ggshell.parameters.lake_tables import TableLayout

CHANGE = "_change_type"


class WrittenFile(NamedTuple):
    """A new file; ``order``: which row of the input each row is, if they are sorted."""

    added: AddedFile
    order: NDArray[np.int64] | None = None


class DeltaFiles:
    """Reads and writes the files of one table, in the columns of one of its versions."""

    def __init__(self, store: LakeStore, layout: TableLayout, schema: pa.Schema, partition: Sequence[str] = ()) -> None:
        """``partition``: the names of the columns by which the table is partitioned."""
        self._store = store
        self._layout = layout
        self._partition = frozenset(partition)
        self.schema = schema

    # Reading

    def keys(self, file: AddedFile) -> Iterator[pa.Array]:
        """The keys of a file, in the order of its rows."""
        with self._opened(file) as opened:
            for group in range(opened.num_row_groups):
                yield opened.read_row_group(group, [KEY])[KEY].combine_chunks().cast(pa.string())

    def rows_at(self, file: AddedFile, positions: BitMap) -> pa.Table:
        """The rows at some positions, in the order of the file. Only their row groups are read."""
        found, first = [self.schema.empty_table()], 0
        with self._opened(file) as opened:
            for group in range(opened.num_row_groups):
                count = opened.metadata.row_group(group).num_rows
                mine = positions & BitMap(range(first, first + count))
                if mine:
                    places = pa.array(np.asarray(mine.to_array(), np.int64) - first)
                    found.append(self._projected(opened.read_row_group(group).take(places), file))
                first += count
        return pa.concat_tables(found)

    def live_rows(self, file: AddedFile, dead: BitMap) -> Iterator[pa.Table]:
        """The rows that are not deleted, in parts."""
        with self._opened(file) as opened:
            first = 0
            for group in range(opened.num_row_groups):
                rows = self._projected(opened.read_row_group(group), file)
                gone = dead & BitMap(range(first, first + rows.num_rows))
                if gone:
                    left = np.ones(rows.num_rows, bool)
                    left[np.asarray(gone.to_array(), np.int64) - first] = False
                    rows = rows.filter(pa.array(left))
                first += opened.metadata.row_group(group).num_rows
                if rows.num_rows:
                    yield rows

    @contextmanager
    def _opened(self, file: AddedFile) -> Iterator[pq.ParquetFile]:
        place = self._store.child(file.file)
        with place.system.open_input_file(place.path) as stream, pq.ParquetFile(stream) as opened:
            yield opened

    def _projected(self, rows: pa.Table, file: AddedFile) -> pa.Table:
        """Rows in the table's columns: those of the partition from the log, NULL where the file is older."""
        values = dict(file.partition)
        columns = []
        for field in self.schema:
            if field.name in values:
                columns.append(pa.chunked_array([_constant(values[field.name], field.type, rows.num_rows)]))
            elif field.name in rows.column_names:
                columns.append(rows[field.name].cast(field.type))
            else:
                columns.append(pa.chunked_array([pa.nulls(rows.num_rows, field.type)]))
        return pa.table(columns, schema=self.schema)

    # Writing

    def write(self, parts: Iterable[pa.Table], values: Part, rows_in_file: int) -> Iterator[WrittenFile]:
        """Write the rows of one partition to data files. ``values``: the partition; its rows are not used."""
        for each in file_rows(parts, rows_in_file, self._layout.cluster):
            yield self._write(each, values)

    def _write(self, rows: FileRows, part: Part) -> WrittenFile:
        path = f"part-{uuid4()}.parquet"
        footer, size = self._write_file(path, rows.groups, self._own())
        return WrittenFile(AddedFile(path, part.values, size, statistics(footer)), rows.order)

    def _write_file(self, path: str, groups: Iterable[pa.Table], schema: pa.Schema) -> tuple[pq.FileMetaData, int]:
        footers: list[pq.FileMetaData] = []
        with self._store.writing(path) as sink:
            with pq.ParquetWriter(
                sink, schema, compression=self._layout.compression.value, metadata_collector=footers
            ) as writer:
                for group in groups:
                    writer.write_table(group.select(schema.names).cast(schema))
            size = sink.tell()
        data = BytesIO()
        footers[0].write_metadata_file(data)
        return pq.read_metadata(BytesIO(data.getvalue())), size

    def _own(self) -> pa.Schema:
        """The columns of a file."""
        return pa.schema([field for field in self.schema if field.name not in self._partition])

    def write_changes(self, changes: Iterable[tuple[Values, pa.Table]]) -> list[Action]:
        """Write rows of the change data feed, by partition and with their kind of change. Returns the actions."""
        by_partition: dict[Values, list[pa.Table]] = {}
        for values, rows in changes:
            if rows.num_rows:
                by_partition.setdefault(values, []).append(rows)
        return [self.write_change_file(values, rows) for values, rows in by_partition.items()]

    def write_change_file(self, values: Values, rows: Iterable[pa.Table]) -> Action:
        """Write rows of one partition to a file of the change data feed. Returns the action."""
        path = f"_change_data/cdc-{uuid4()}.parquet"
        _, size = self._write_file(path, rows, self._own().append(pa.field(CHANGE, pa.string())))
        return {"cdc": {"path": path, "partitionValues": dict(values), "size": size, "dataChange": False}}


def _constant(text: str | None, kind: pa.DataType, rows: int) -> pa.Array:
    """A column with the value of a partition. Delta does not distinguish an empty text from NULL there."""
    if not text:
        return pa.nulls(rows, kind)
    plain = pa.timestamp("us") if pa.types.is_timestamp(kind) else kind  # a time without a zone is in UTC
    return pa.repeat(pa.scalar(text, pa.string()), rows).cast(plain).cast(kind)
