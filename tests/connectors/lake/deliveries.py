"""A process that delivers batches to a lake; a test starts it repeatedly and decides where it ends."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lakes import Lake

from ggshell.connectors.lake.commits import CommitLog, LakeCommit
from ggshell.connectors.lake.delivery import LakeDelivery
from ggshell.connectors.lake.forms import LakeTables, open_tables
from ggshell.connectors.lake.outages import errors_by_cause
from ggshell.connectors.lake.part_exchange import PartExchange
from ggshell.connectors.lake.slices import SlicePart, SliceTask, on_spark, parts_of
from ggshell.connectors.lake.target import index_cache
from ggshell.errors import ConnectionLostError
from ggshell.parameters.lake_tables import DEFAULT_LAYOUTS
from ggshell.query.splits import TrailSplit, splits_of
from ggshell.query.trail_read import SplitRead
from ggshell.trail.columnar import read_batches
from ggshell.types import Csn, TableName, TrailPosition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEGIN = TrailPosition(0, 0)
WRITES = ("append_log", "apply")


class ProcessEnded(BaseException):
    """The simulated process ends here."""


def _end(*_: Any) -> None:
    raise ProcessEnded


class FailingTables:
    """Tables that accept ``left`` writes and then end the process; ``None``: no limit."""

    def __init__(self, tables: LakeTables, left: int | None) -> None:
        self._tables = tables
        self._left = left

    def __getattr__(self, name: str) -> Any:
        if name not in WRITES or self._left is None:
            return getattr(self._tables, name)
        if self._left == 0:
            return _end
        self._left -= 1
        return getattr(self._tables, name)


class FailingCommitLog(CommitLog):
    """The process ends before the commit."""

    def add(self, commit: LakeCommit) -> None:
        raise ProcessEnded


class Deliveries:
    """Delivers batches as a process does that restarts from the state of the lake. Tasks run here, or in a Spark session."""

    def __init__(self, lake: Lake, spark: SparkSession | None = None, split_bytes: int = 200) -> None:
        self.lake = lake
        self.messages: list[str] = []
        self.counted: dict[str, int] = {}
        self.least: Csn | None = None
        self.layouts = DEFAULT_LAYOUTS
        self._spark = spark
        self._exchange = PartExchange(str(lake.home.root / "dirtmp" / "LAKE.parts") if spark is not None else "")
        self._exchange.open()
        self._split_bytes = split_bytes
        self._persistent: LakeDelivery | None = None

    def splits(self, first: TrailPosition, last: TrailPosition) -> list[TrailSplit]:
        path = self.lake.trail.file(0)
        between = first.rba > 0
        return splits_of(str(path), path, self._split_bytes, first=first.rba, last=last.rba, between=between)

    def batch(
        self, number: int, first: TrailPosition, last: TrailPosition, writes: int | None = None, commits: bool = True
    ) -> None:
        """Start a process that writes one batch and ends: after ``writes`` writes, if given, or before the commit."""
        delivery = self._delivery(writes, commits=commits)
        splits = self.splits(first, last)
        random.Random(number).shuffle(splits)  # Tasks end in any order.
        delivery.write(lambda task: self._run(splits, task), number)

    def persistent_batch(
        self, number: int, first: TrailPosition, last: TrailPosition, failed: Callable[[], None]
    ) -> int:
        """Write a batch in a process that goes on after it, and that tries again while the store does not answer.

        ``failed`` is called after each failure. Returns the number of failures.
        """
        splits, failures = self.splits(first, last), 0
        while True:
            try:
                with errors_by_cause(self.lake.target):
                    self._persistent = self._persistent or self._delivery()
                    self._persistent.write(lambda task: self._run(splits, task), number)
            except ConnectionLostError:
                failures += 1
                failed()
            else:
                return failures

    def _delivery(self, writes: int | None = None, *, commits: bool = True) -> LakeDelivery:
        cache = index_cache(self.lake.home, "LAKE")
        opened = open_tables(self.lake.target, "LAKE", cache, self.layouts)
        tables: Any = FailingTables(opened, writes)
        log = CommitLog(self.lake.target, "LAKE") if commits else FailingCommitLog(self.lake.target, "LAKE")
        return LakeDelivery(
            tables, log, lambda _: True, self._count, self.messages.append, None, self.least, self.layouts
        )

    def _run(self, splits: list[TrailSplit], task: SliceTask) -> list[SlicePart]:
        if self._spark is None:
            return run_here(splits, task)
        rows = [(pickle.dumps(split),) for split in splits]
        frame = self._spark.createDataFrame(rows, "split binary").repartition(len(splits))
        return on_spark(frame, task, self._exchange)

    def _count(self, table: TableName, _: int, number: int) -> None:
        self.counted[str(table)] = self.counted.get(str(table), 0) + number


def run_here(splits: list[TrailSplit], task: SliceTask) -> list[SlicePart]:
    """Run a task on splits in the form in which Spark runs it."""
    read = SplitRead()
    rows = [batch for split in splits for batch in task.rows(read.batches(split))]
    return parts_of([part for batch in rows for part in batch.column(0).to_pylist()])


def positions(lake: Lake, first: TrailPosition, last: TrailPosition) -> list[int]:
    """The trail positions of all rows in a range."""
    path = lake.trail.file(0)
    return [rba for batch in read_batches(path, first=first.rba, last=last.rba) for rba in batch.rba.tolist()]
