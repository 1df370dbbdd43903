"""``frame.write.format("ggtrail")``: writes a frame to a trail, for fixtures and replays.

A trail has one writer, so the tasks first store their rows next to the trail (``.ea.staged-…``, Arrow files). The job's
commit then writes them, task by task, in the order of the frame: sort it by ``csn, seqno, rba`` if it has CSNs. Every task
must be able to reach the trail's folder. A failure leaves the trail as it was, except for whole transactions in files that
were already full.

Options: ``megabytes`` per file (500), ``definitions`` (a trail that defines the tables; without it all columns are text),
``rowsPerTransaction`` for frames without CSNs (1000), ``table`` and ``key`` for rows with a table's own columns.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import datasource as spark

from ggshell.clock import SystemClock
from ggshell.errors import UsageError
from ggshell.object_stores import is_elsewhere
from ggshell.query import values
from ggshell.query.rebuild import FrameRow, RowDefinitions, SeenColumns, rebuild, rows_of
from ggshell.query.splits import metadata_records
from ggshell.query.trail_read import files_of
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.operation import IoType
from ggshell.store_paths import path_of
from ggshell.trail.fileheader import Producer
from ggshell.trail.name import TrailName
from ggshell.trail.removing import remove_from
from ggshell.trail.writer import TrailWriter
from ggshell.types import TableName

PRODUCER = Producer("SPARK", "Spark", "", "", "")


@dataclass
class Staged(spark.WriterCommitMessage):
    """The output of a task: its index in the frame, its file (empty without rows), the shapes of its tables."""

    part: int
    file: str
    shapes: dict[TableName, SeenColumns] = field(default_factory=dict)
    own: TableDefinition | None = None


class TrailArrowWriter(spark.DataSourceArrowWriter):
    """Created where the job is planned, sent to its tasks, and asked to commit at the end."""

    def __init__(self, options: dict[str, str], *, overwrite: bool) -> None:
        path = options.get("path", "")
        if not path or is_elsewhere(path):
            raise UsageError("a trail can only be written to a mounted file system", hint='.save("dirdat/ea")')
        self.options = options
        self.overwrite = overwrite
        self.trail = TrailName.parse(path.removeprefix("file://"), Path.cwd())
        self.staging = self.trail.folder / f".{self.trail.prefix}.staged-{uuid.uuid4().hex}"
        self.megabytes = _number(options, "megabytes", 500)
        self.per_transaction = _number(options, "rowspertransaction", 1000)
        self.table = table_name(options.get("table", ""))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> spark.WriterCommitMessage:
        """Store the rows of one task."""
        context = TaskContext.get()
        part = context.partitionId() if context is not None else 0
        found = Staged(part, "")
        writer: pa.ipc.RecordBatchFileWriter | None = None
        try:
            for batch in iterator:
                ready = batch
                if self.table is not None:
                    ready, found.own = as_trail(batch, self.table, self.options.get("key", ""))
                else:
                    _take_in(found.shapes, rows_of(batch))
                if writer is None:
                    self.staging.mkdir(parents=True, exist_ok=True)
                    attempt = context.taskAttemptId() if context is not None else 0
                    found.file = str(self.staging / f"{part}-{attempt}.arrow")
                    writer = pa.ipc.new_file(found.file, ready.schema)
                writer.write_batch(ready)
        finally:
            if writer is not None:
                writer.close()
        return found

    def commit(self, messages: Sequence[spark.WriterCommitMessage | None]) -> None:
        """Write what the tasks have stored."""
        parts = sorted((each for each in messages if isinstance(each, Staged)), key=lambda each: each.part)
        try:
            self.trail.folder.mkdir(parents=True, exist_ok=True)
            if self.overwrite:
                remove_from(self.trail, 0)
            self._write(parts)
        finally:
            shutil.rmtree(self.staging, ignore_errors=True)

    def abort(self, messages: Sequence[spark.WriterCommitMessage | None]) -> None:
        """Remove the stored rows; nothing was written to the trail yet."""
        shutil.rmtree(self.staging, ignore_errors=True)

    def _write(self, parts: Sequence[Staged]) -> None:
        clock = SystemClock()
        definitions = RowDefinitions(self._definitions(parts))
        size = self.megabytes << 20
        with closing(TrailWriter.open(self.trail, clock=clock, producer=PRODUCER, max_bytes=size)) as writer:
            rows = (row for part in parts if part.file for batch in _batches(part.file) for row in rows_of(batch))
            for batch in rebuild(
                rows, definitions, after=writer.last_csn, now=clock.now(), per_transaction=self.per_transaction
            ):
                writer.write(batch)
            writer.flush()

    def _definitions(self, parts: Sequence[Staged]) -> list[TableDefinition]:
        """The definitions, oldest first: those of the rows themselves, and those of the trail in option ``definitions``."""
        shapes: dict[TableName, SeenColumns] = {}
        for part in parts:
            for name, shape in part.shapes.items():
                shapes.setdefault(name, SeenColumns()).take_in(shape.columns, shape.identity)
        own = [part.own for part in parts if part.own is not None]
        known = self.options.get("definitions", "")
        if known:
            files = map(path_of, files_of({"path": known}))
            return [*own, *(definition for file in files for _, _, definition in metadata_records(file))]
        return [*(shape.definition(name) for name, shape in shapes.items()), *own]


def _take_in(shapes: dict[TableName, SeenColumns], rows: Iterator[FrameRow]) -> None:
    for row in rows:
        if row.io_type == IoType.DDL:  # its columns are those of its record, not of the table
            continue
        shape = shapes.get(row.table)
        if shape is None:
            shape = shapes[row.table] = SeenColumns()
        shape.take_in(row.columns, row.before)


def _batches(file: str) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(file) as source:
        reader = pa.ipc.open_file(source)
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)


def _number(options: dict[str, str], name: str, default: int) -> int:
    text = options.get(name, str(default))
    if not text.isdigit() or not int(text):
        raise UsageError(f"{name} must be a number of at least 1, not {text}")
    return int(text)


TRAILS: Final = ("op", "csn", "xid", "commit_ts")
_TEXTS: Final = pa.map_(pa.string(), pa.string())


def table_name(text: str) -> TableName | None:
    """The name in option ``table``; None without the option. Raises UsageError."""
    if not text:
        return None
    try:
        return TableName.parse(text)
    except ValueError as error:
        raise UsageError(str(error)) from None


def as_trail(batch: pa.RecordBatch, table: TableName, key: str) -> tuple[pa.RecordBatch, TableDefinition]:
    """The rows with the trail's columns, and a table definition derived from the frame's types.

    ``key``: column names separated by commas. Raises UsageError for an unknown key column, and for a type that no source
    has.
    """
    names = batch.schema.names
    front = [name for name in TRAILS if name in names[: len(TRAILS)]]
    own = [name for name in names if name not in front]
    definition = _definition(batch.schema, table, own, key)
    arrays = {name: batch.column(names.index(name)) for name in front}
    if "op" not in front:
        arrays["op"] = pa.repeat("Insert", batch.num_rows)
    arrays["owner"] = pa.repeat(table.owner, batch.num_rows)
    arrays["table"] = pa.repeat(table.name, batch.num_rows)
    arrays["columns"] = _maps([values.texts(batch.column(names.index(name))) for name in own], own, batch.num_rows)
    return pa.record_batch(list(arrays.values()), names=list(arrays)), definition


def _definition(schema: pa.Schema, table: TableName, own: list[str], key: str) -> TableDefinition:
    columns = tuple(Column(name, *values.source_type(schema.field(name).type, name)) for name in own)
    wanted = [name.strip() for name in key.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in own]
    if unknown:
        raise UsageError(f"the frame has no column {', '.join(unknown)} that the key of {table} names")
    return TableDefinition(table, columns, tuple(own.index(name) for name in wanted))


def _maps(columns: list[pa.Array], names: list[str], count: int) -> pa.Array:
    """One map per row, from columns of texts."""
    width = len(names)
    keys = pa.array(names * count, pa.string())
    together = pa.concat_arrays(columns) if columns else pa.array([], pa.string())
    order = pa.array([column * count + row for row in range(count) for column in range(width)], pa.int64())
    offsets = pa.array(range(0, width * count + 1, width) if width else [0] * (count + 1), pa.int32())
    return pa.MapArray.from_arrays(offsets, keys, together.take(order)).cast(_TEXTS)
