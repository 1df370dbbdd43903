"""A process that delivers batches to a lake, as often as a test has it begin, and ends where the test says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakes import Lake

from ggshell.connectors.lake.commits import CommitLog, LakeCommit
from ggshell.connectors.lake.delivery import LakeDelivery
from ggshell.connectors.lake.forms import LakeTables, open_tables
from ggshell.types import TableName, TrailPosition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BEGIN = TrailPosition(0, 0)
WRITES = ("append", "merge")


class Ended(BaseException):
    """The process has ended here, as far as the test goes."""


def _end(*_: Any) -> None:
    raise Ended


class Ending:
    """Tables that let so many writes through; ``None``: all."""

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


class Uncommitted(CommitLog):
    """The process ends before it has committed."""

    def add(self, commit: LakeCommit) -> None:
        raise Ended


class Deliveries:
    """What a process does with batches, again and again from what the lake holds."""

    def __init__(self, lake: Lake, spark: SparkSession) -> None:
        self.lake = lake
        self.told: list[str] = []
        self.counted: dict[str, int] = {}
        self._spark = spark

    def rows(self, first: TrailPosition, last: TrailPosition) -> DataFrame:
        found = self._spark.read.format("ggtrail").load(str(self.lake.trail))
        return found.where(f"rba >= {first.rba} AND rba < {last.rba}")

    def batch(
        self, number: int, first: TrailPosition, last: TrailPosition, writes: int | None = None, commits: bool = True
    ) -> None:
        """A process begins, writes a batch, and ends; after so many writes, if a number is given, or before the commit."""
        tables: Any = Ending(open_tables(self.lake.target, "LAKE", self.told.append), writes)
        log = CommitLog(self.lake.target, "LAKE") if commits else Uncommitted(self.lake.target, "LAKE")
        delivery = LakeDelivery(tables, self.lake.trail, log, lambda _: True, self._count, self.told.append)
        delivery.write(self._spark, self.rows(first, last), number)

    def _count(self, table: TableName, _: int, number: int) -> None:
        self.counted[str(table)] = self.counted.get(str(table), 0) + number
