"""The files of an Iceberg table: rows read from data files by position, data files and position delete files written.

A position delete file lists rows that no longer count, each as the path of its data file and its position in it (format
version 2: https://iceberg.apache.org/spec/#position-delete-files).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import FileFormatFactory, schema_to_pyarrow
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema, sanitize_column_names
from pyiceberg.table.locations import load_location_provider
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.typedef import Record
from pyroaring import BitMap

from ggshell.connectors.lake.clustering import ROW_GROUP_ROWS, file_rows
from ggshell.connectors.lake.data_files import FIELD_ID, columns_by_id
from ggshell.connectors.lake.forms import KEY

_PATH_ID, _POSITION_ID = 2147483546, 2147483545
_DELETES = pa.schema(
    [
        pa.field("file_path", pa.string(), nullable=False, metadata={FIELD_ID: str(_PATH_ID).encode()}),
        pa.field("pos", pa.int64(), nullable=False, metadata={FIELD_ID: str(_POSITION_ID).encode()}),
    ]
)
Partition = tuple[int, Record]
"""A partition spec and the values of its fields."""


class WrittenFile(NamedTuple):
    """A new data file; ``order``: which row of the input each row is, if they are sorted."""

    file: DataFile
    order: NDArray[np.int64] | None = None


def partition_of(file: DataFile) -> Partition:
    return file.spec_id, file.partition


class TableFiles:
    """Reads and writes the files of one table as its metadata describes it."""

    def __init__(self, metadata: TableMetadata, io: FileIO) -> None:
        self._metadata = metadata
        self._io = io
        self._schema = metadata.schema()
        self._locations = load_location_provider(metadata.location, metadata.properties)
        self.arrow_schema = _arrow(self._schema)

    # Reading

    def keys(self, path: str) -> Iterator[pa.Array]:
        """The keys of a data file, in the order of its rows."""
        field = self._schema.find_field(KEY).field_id
        with self._opened(path) as file:
            name = columns_by_id(file.schema_arrow)[field]
            for group in range(file.num_row_groups):
                yield file.read_row_group(group, [name])[name].combine_chunks().cast(pa.string())

    def rows_at(self, path: str, positions: NDArray[np.int64]) -> pa.Table:
        """The rows at some positions of a data file, in the file's order. Only their row groups are read."""
        positions = np.sort(positions)
        found = []
        with self._opened(path) as file:
            for group, first, count in _row_groups(file):
                low, high = np.searchsorted(positions, [first, first + count])
                if low < high:
                    rows = file.read_row_group(group, self._wanted(file))
                    found.append(self._projected(rows.take(pa.array(positions[low:high] - first))))
        return pa.concat_tables(found) if found else self.arrow_schema.empty_table()

    def live_rows(self, path: str, dead: BitMap) -> Iterator[pa.Table]:
        """The rows of a data file that are not deleted, in parts."""
        with self._opened(path) as file:
            for group, first, count in _row_groups(file):
                rows = self._projected(file.read_row_group(group, self._wanted(file)))
                gone = dead & BitMap(range(first, first + count))
                if gone:
                    left = np.ones(count, bool)
                    left[np.asarray(gone.to_array(), np.int64) - first] = False
                    rows = rows.filter(pa.array(left))
                if rows.num_rows:
                    yield rows

    @contextmanager
    def _opened(self, path: str) -> Iterator[pq.ParquetFile]:
        with self._io.new_input(path).open() as stream, pq.ParquetFile(stream) as file:
            yield file

    def _wanted(self, file: pq.ParquetFile) -> list[str]:
        there = columns_by_id(file.schema_arrow)
        return [there[field.field_id] for field in self._schema.fields if field.field_id in there]

    def _projected(self, rows: pa.Table) -> pa.Table:
        """Rows in the table's present columns: found by their identity, widened, NULL where the file is older."""
        there = columns_by_id(rows.schema)
        columns = [
            rows[there[field.field_id]].cast(kind.type)
            if field.field_id in there
            else pa.chunked_array([pa.nulls(rows.num_rows, kind.type)])
            for field, kind in zip(self._schema.fields, self.arrow_schema, strict=True)
        ]
        return pa.table(columns, schema=self.arrow_schema)

    # Writing

    def write_rows(
        self, parts: Iterable[pa.Table], partition: Partition, rows_in_file: int, cluster: Sequence[str] = ()
    ) -> Iterator[WrittenFile]:
        """Write rows of one partition to data files, sorted by the columns ``cluster``."""
        schema = sanitize_column_names(self._schema)
        arrow = _arrow(schema, include_field_ids=True)
        names = self.arrow_schema.names
        fitting = (part.select(names).cast(self.arrow_schema) for part in parts)
        for rows in file_rows(fitting, rows_in_file, cluster):
            output = self._io.new_output(self._new_location("parquet", partition))
            model = FileFormatFactory.get(FileFormat.PARQUET)
            properties = {**self._metadata.properties, "write.parquet.row-group-limit": str(ROW_GROUP_ROWS)}
            with model.create_writer(output, schema, properties) as writer:
                for group in rows.groups:
                    writer.write(pa.table(group.columns, schema=arrow))
            facts = writer.result().to_serialized_dict()
            file = _described(output.location, len(output), DataFileContent.DATA, partition, **facts)
            yield WrittenFile(file, rows.order)

    def write_deletes(self, deletes: Mapping[str, BitMap], partition: Partition) -> DataFile:
        """Write a position delete file for data files of one partition."""
        paths = sorted(deletes)
        counts = [len(deletes[path]) for path in paths]
        path = pa.DictionaryArray.from_arrays(np.repeat(np.arange(len(paths), dtype=np.int32), counts), pa.array(paths))
        position = pa.array(np.concatenate([np.asarray(deletes[path].to_array(), np.int64) for path in paths]))
        output = self._io.new_output(self._new_location("parquet", partition, "-deletes"))
        with output.create() as stream:
            pq.write_table(
                pa.table([path.cast(pa.string()), position], schema=_DELETES),
                stream,
                compression="zstd",
                use_dictionary=["file_path"],
                column_encoding={"pos": "DELTA_BINARY_PACKED"},
            )
        low, high = min(min(each) for each in deletes.values()), max(max(each) for each in deletes.values())
        return _described(
            output.location,
            len(output),
            DataFileContent.POSITION_DELETES,
            partition,
            record_count=sum(counts),
            lower_bounds={_PATH_ID: paths[0].encode(), _POSITION_ID: low.to_bytes(8, "little")},
            upper_bounds={_PATH_ID: paths[-1].encode(), _POSITION_ID: high.to_bytes(8, "little")},
        )

    def _new_location(self, ending: str, partition: Partition, kind: str = "") -> str:
        folder = self._metadata.specs()[partition[0]].partition_to_path(partition[1], self._schema)
        return str(self._locations.new_data_location(f"{folder}{'/' if folder else ''}{uuid.uuid4()}{kind}.{ending}"))


def read_deletes(io: FileIO, path: str) -> dict[str, BitMap]:
    """The positions that a position delete file lists, by data file."""
    with io.new_input(path).open() as stream:
        rows = pq.read_table(stream, columns=["file_path", "pos"], read_dictionary=["file_path"])
    found: dict[str, BitMap] = {}
    for batch in rows.to_batches():
        files, positions = batch.column("file_path"), batch.column("pos").to_numpy()
        codes = files.indices.to_numpy()
        for code, file in enumerate(files.dictionary.to_pylist()):
            found.setdefault(file, BitMap()).update(BitMap(positions[codes == code].astype(np.uint32)))
    return found


def _described(path: str, size: int, content: DataFileContent, partition: Partition, **facts: object) -> DataFile:
    described = DataFile.from_args(
        content=content,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=partition[1],
        file_size_in_bytes=size,
        sort_order_id=None,
        equality_ids=None,
        key_metadata=None,
        **facts,
    )
    described.spec_id = partition[0]
    return described


def _arrow(schema: Schema, *, include_field_ids: bool = False) -> pa.Schema:
    """A schema in Arrow, without the large types, which not all functions of Arrow accept."""
    large = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
    found = schema_to_pyarrow(schema, include_field_ids=include_field_ids)
    return pa.schema([field.with_type(large.get(field.type, field.type)) for field in found])


def _row_groups(file: pq.ParquetFile) -> Iterator[tuple[int, int, int]]:
    """(number, position of the first row, rows) of the row groups of a file."""
    first = 0
    for group in range(file.num_row_groups):
        count = file.metadata.row_group(group).num_rows
        yield group, first, count
        first += count
