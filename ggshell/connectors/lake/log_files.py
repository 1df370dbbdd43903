"""The data files of a lake's log, written by Spark's tasks: one for each table and slice of a trail."""

from __future__ import annotations

import re
from contextlib import ExitStack
from io import BytesIO
from types import TracebackType
from typing import Any, Final, NamedTuple, Self
from urllib.parse import quote
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq

from ggshell.connectors.lake.store import LakeStore
from ggshell.types import TableName

_REPEATED: Final = [
    *(
        "trail",
        "seqno",
        "csn",
        "xid",
        "commit_ts",
        "io_time",
        "op",
        "io_type",
        "before_after",
        "trans_ind",
        "owner",
        "table",
    ),
    *(f"{name}.key_value.key" for name in ("columns", "before", "tokens")),
]
"""The columns whose values repeat. A dictionary of the others would cost more than it saves."""


class LogLayout(NamedTuple):
    """Where and how the files of the log are written.

    ``folder``: below ``location``; ``schema``: of a file, with the field ids of the form if it has some; ``run``: a text that
    no other attempt has, if a file that exists must not be replaced; ``hive``: readers take owner and table from the path.
    """

    location: str
    folder: str
    schema: pa.Schema
    run: str = ""
    hive: bool = False
    compression: str = "zstd"


class LogFile(NamedTuple):
    """A complete data file: its path below the lake's location, its table, rows, bytes and Parquet footer (statistics)."""

    path: str
    table: TableName
    rows: int
    size: int
    footer: bytes

    @property
    def metadata(self) -> pq.FileMetaData:
        return pq.read_metadata(BytesIO(self.footer))


class LogWriter:
    """Writes the rows of one slice. The files exist after the block, if it ends without an error."""

    def __init__(self, layout: LogLayout, slice_name: str) -> None:
        self.files: list[LogFile] = []
        self._layout = layout
        self._name = f"{slice_name}{layout.run}.parquet"
        self._store = LakeStore(layout.location)
        self._open: dict[TableName, _OpenFile] = {}
        self._uploads = ExitStack()

    def __enter__(self) -> Self:
        return self

    def write(self, table: TableName, rows: pa.RecordBatch) -> None:
        """Append rows of one table; they have all columns of the log."""
        schema = self._layout.schema
        arrays = [_as(rows.column(field.name), field.type) for field in schema]
        if table not in self._open:
            self._open[table] = self._begin(table)
        self._open[table].writer.write_batch(pa.record_batch(arrays, schema=schema))

    def _begin(self, table: TableName) -> _OpenFile:
        path = f"{self._layout.folder}/{_table_folder(table, hive=self._layout.hive)}/{self._name}"
        sink = self._uploads.enter_context(self._store.writing(path))
        footers: list[pq.FileMetaData] = []
        writer = pq.ParquetWriter(
            sink,
            self._layout.schema,
            compression=self._layout.compression,
            use_dictionary=_REPEATED,
            metadata_collector=footers,
        )
        return _OpenFile(path, sink, writer, footers)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self.files = [each.complete(table) for table, each in self._open.items()]
        except BaseException as failure:
            self._uploads.__exit__(type(failure), failure, failure.__traceback__)
            raise
        self._uploads.__exit__(kind, error, trace)


class _OpenFile(NamedTuple):
    path: str
    sink: Any
    writer: pq.ParquetWriter
    footers: list[pq.FileMetaData]

    def complete(self, table: TableName) -> LogFile:
        self.writer.close()
        footer = BytesIO()
        self.footers[0].write_metadata_file(footer)
        return LogFile(self.path, table, self.footers[0].num_rows, self.sink.tell(), footer.getvalue())


def _table_folder(table: TableName, *, hive: bool) -> str:
    """The folder of a table's files in the log. Other forms than Hive's do not read it, so it has plain letters only."""
    if hive:
        return f"owner={quote(table.owner, safe='')}/table={quote(table.name, safe='')}"
    plain = re.sub(r"[^A-Za-z0-9_]", "_", f"{table.owner}.{table.name}")
    return f"{plain}-{crc32(str(table).encode()):08x}"


def _as(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The column in another type of the same values: signed numbers, or a map whose fields have ids."""
    return column if column.type.equals(kind, check_metadata=True) else column.cast(kind)
