"""``frame.write.format("ggtrail")``: a frame to a trail, for fixtures and replays.

A trail has one writer, so the tasks put their rows beside the trail first (``.ea.staged-…``, Arrow files), and the job's end
writes them, task by task, in the order of the frame: sort it by ``csn, seqno, rba`` where it has CSNs.  Every task must reach
the trail's folder.  What fails leaves the trail as it was, but for whole transactions in files that were full already.

Options: ``megabytes`` of a file (500), ``definitions`` (a trail that knows the tables; without it all columns are text),
``rowsPerTransaction`` where there are no CSNs (1000), ``table`` and ``key`` for rows of a table's own columns.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import datasource as spark

from ggshell.clock import SystemClock
from ggshell.errors import UsageError
from ggshell.files import locked
from ggshell.record.definition import TableDefinition
from ggshell.spark import own_rows, paths
from ggshell.spark.layout import files_of
from ggshell.spark.rebuild import Definitions, FrameRow, Shape, rebuild, rows_of
from ggshell.spark.splits import metadata_records
from ggshell.trail.fileheader import Producer
from ggshell.trail.name import TrailName
from ggshell.trail.writer import TrailWriter
from ggshell.types import TableName

PRODUCER = Producer("SPARK", "Spark", "", "", "")


@dataclass
class Staged(spark.WriterCommitMessage):
    """What a task has put aside: its place in the frame, its file (empty without rows), the shapes of its tables."""

    part: int
    file: str
    shapes: dict[TableName, Shape] = field(default_factory=dict)
    own: TableDefinition | None = None


class TrailArrowWriter(spark.DataSourceArrowWriter):
    """Made where the job is planned, sent to its tasks, and asked to commit at its end."""

    def __init__(self, options: dict[str, str], *, overwrite: bool) -> None:
        path = options.get("path", "")
        if not path or paths.is_elsewhere(path):
            raise UsageError("a trail is written on a mounted file system", hint='.save("dirdat/ea")')
        self.options = options
        self.overwrite = overwrite
        self.trail = TrailName.parse(path.removeprefix("file://"), Path.cwd())
        self.staging = self.trail.folder / f".{self.trail.prefix}.staged-{uuid.uuid4().hex}"
        self.megabytes = _number(options, "megabytes", 500)
        self.per_transaction = _number(options, "rowspertransaction", 1000)
        self.table = own_rows.table_name(options.get("table", ""))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> spark.WriterCommitMessage:
        """A task's part."""
        context = TaskContext.get()
        part = context.partitionId() if context is not None else 0
        found = Staged(part, "")
        writer: pa.ipc.RecordBatchFileWriter | None = None
        try:
            for batch in iterator:
                ready = batch
                if self.table is not None:
                    ready, found.own = own_rows.as_trail(batch, self.table, self.options.get("key", ""))
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
        """Write what the tasks have put aside."""
        parts = sorted((each for each in messages if isinstance(each, Staged)), key=lambda each: each.part)
        try:
            self.trail.folder.mkdir(parents=True, exist_ok=True)
            if self.overwrite:
                self._remove()
            self._write(parts)
        finally:
            shutil.rmtree(self.staging, ignore_errors=True)

    def abort(self, messages: Sequence[spark.WriterCommitMessage | None]) -> None:
        """Nothing was written yet."""
        shutil.rmtree(self.staging, ignore_errors=True)

    def _remove(self) -> None:
        with locked(self.trail.folder / f".{self.trail.prefix}.lock", f"trail {self.trail}"):
            (self.trail.folder / f".{self.trail.prefix}.durable").unlink(missing_ok=True)
            for seqno in reversed(self.trail.sequences()):
                self.trail.file(seqno).unlink()

    def _write(self, parts: Sequence[Staged]) -> None:
        clock = SystemClock()
        definitions = Definitions(self._definitions(parts))
        size = self.megabytes << 20
        with closing(TrailWriter.open(self.trail, clock=clock, producer=PRODUCER, max_bytes=size)) as writer:
            rows = (row for part in parts if part.file for batch in _batches(part.file) for row in rows_of(batch))
            for batch in rebuild(
                rows, definitions, after=writer.last_csn, now=clock.now(), per_transaction=self.per_transaction
            ):
                writer.write(batch)
            writer.flush()

    def _definitions(self, parts: Sequence[Staged]) -> list[TableDefinition]:
        """Oldest first: those of the rows themselves, then those that a trail knows."""
        shapes: dict[TableName, Shape] = {}
        for part in parts:
            for name, shape in part.shapes.items():
                shapes.setdefault(name, Shape()).take_in(shape.columns, shape.identity)
        own = [part.own for part in parts if part.own is not None]
        known = self.options.get("definitions", "")
        if known:
            files = map(paths.local_copy, files_of({"path": known}))
            return [*own, *(definition for file in files for _, _, definition in metadata_records(file))]
        return [*(shape.definition(name) for name, shape in shapes.items()), *own]


def _take_in(shapes: dict[TableName, Shape], rows: Iterator[FrameRow]) -> None:
    for row in rows:
        shape = shapes.get(row.table)
        if shape is None:
            shape = shapes[row.table] = Shape()
        shape.take_in(row.columns, row.before)


def _batches(file: str) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(file) as source:
        reader = pa.ipc.open_file(source)
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)


def _number(options: dict[str, str], name: str, default: int) -> int:
    text = options.get(name, str(default))
    if not text.isdigit() or not int(text):
        raise UsageError(f"{name} is a number from 1 on, not {text}")
    return int(text)
