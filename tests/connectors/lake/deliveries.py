"""A process that delivers batches to a lake; a test starts it repeatedly and decides where it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakes import Lake

from ggshell.connectors.lake.commits import CommitLog, LakeCommit
from ggshell.connectors.lake.delivery import LakeDelivery
from ggshell.connectors.lake.forms import LakeTables, open_tables
from ggshell.connectors.lake.target import index_cache
from ggshell.types import TableName, TrailPosition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
    """Delivers batches as a process does that restarts from the state of the lake."""

    def __init__(self, lake: Lake, spark: SparkSession) -> None:
        self.lake = lake
        self.messages: list[str] = []
        self.counted: dict[str, int] = {}
        self._spark = spark

    def rows(self, first: TrailPosition, last: TrailPosition) -> DataFrame:
        found = self._spark.read.format("ggtrail").load(str(self.lake.trail))
        return found.where(f"rba >= {first.rba} AND rba < {last.rba}")

    def batch(
        self, number: int, first: TrailPosition, last: TrailPosition, writes: int | None = None, commits: bool = True
    ) -> None:
        """Start a process that writes one batch and ends: after ``writes`` writes, if given, or before the commit."""
        tables: Any = FailingTables(open_tables(self.lake.target, "LAKE", index_cache(self.lake.home, "LAKE")), writes)
        log = CommitLog(self.lake.target, "LAKE") if commits else FailingCommitLog(self.lake.target, "LAKE")
        delivery = LakeDelivery(tables, self.lake.trail, log, lambda _: True, self._count, self.messages.append)
        delivery.write(self.rows(first, last), number)

    def _count(self, table: TableName, _: int, number: int) -> None:
        self.counted[str(table)] = self.counted.get(str(table), 0) + number
