"""Batches of a trail into a lake, each exactly once: Spark's stream says what belongs to a batch, the commit whether it is
there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.errors import ApplyError
from ggshell.lake import tables
from ggshell.lake.commits import Commit, CommitLog
from ggshell.lake.effects import Change, effects
from ggshell.record import TableDefinition
from ggshell.spark.splits import metadata_records
from ggshell.trail import TrailName
from ggshell.trail.look import LookedFile
from ggshell.types import TableName, TrailPosition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Wanted = Callable[[TableName], bool]
Count = Callable[[TableName, int, int], None]
_CHANGES = ("rba", "seqno", "io_type", "before_after", "before", "columns")


class Last(NamedTuple):
    """The last record of a batch: its place and its transaction."""

    seqno: int
    rba: int
    csn: str
    xid: str
    commit_time: int


class LakeDelivery:
    """Writes batches.  Guards, each tested:

    1. a batch that is committed is not written again, whatever Spark remembers;
    2. a batch's data is complete before its commit, and an attempt without commit is written over by the next;
    3. a table without a key has a log and no current state, and a warning says so once (``told``).
    """

    def __init__(
        self, target: Path, trail: TrailName, log: CommitLog, wanted: Wanted, count: Count, told: Callable[[str], None]
    ) -> None:
        self.committed = log.latest()
        self._target = target
        self._trail = trail
        self._log = log
        self._wanted = wanted
        self._count = count
        self._told = told
        self._scanned: dict[int, int] = {}
        self._definitions: dict[TableName, TableDefinition] = {}
        self._keyless: set[TableName] = set()

    def write(self, spark: SparkSession, rows: DataFrame, batch: int) -> None:
        """Write a batch, unless it is there.  Raises ApplyError, DiskError."""
        done = self.committed
        if done is not None and batch <= done.batch:
            return
        rows = rows.persist()
        try:
            last = _last(rows)
            if last is None:
                return
            counts = self._counts(rows)
            chosen = [name for name, _, _ in counts if self._wanted(name)]
            versions = dict(done.tables) if done is not None else {}
            if chosen:
                names = [str(name) for name in chosen]
                kept = rows.where(rows["owner"].isNotNull() & _named(rows).isin(*dict.fromkeys(names)))
                tables.write_log(self._target, batch, kept)
                for name in dict.fromkeys(chosen):
                    self._table(spark, kept, name, versions, batch)
            position = self._behind(last)
            total = sum(number for name, _, number in counts if name in set(chosen))
            commit = Commit(batch, position, last.csn, last.xid, last.commit_time, total, versions)
            self._log.add(commit)
            self.committed = commit
            for name, io_type, number in counts:
                if name in set(chosen):
                    self._count(name, io_type, number)
        finally:
            rows.unpersist()

    def _table(
        self, spark: SparkSession, rows: DataFrame, name: TableName, versions: dict[str, int], batch: int
    ) -> None:
        definition = self._definition(name)
        if not definition.key:
            if name not in self._keyless:
                self._keyless.add(name)
                self._told(f"{name} has no key: its changes are in the log, and it has no current state.")
            return
        mine = rows.where(_named(rows) == str(name)).select(*_CHANGES).orderBy("seqno", "rba")
        key = [definition.columns[index].name for index in definition.key]
        found = effects(
            (
                Change(row["io_type"], dict(row["before"] or {}), dict(row["columns"] or row["before"] or {}))
                for row in mine.toLocalIterator()
                if row["before_after"] != "B" or row["io_type"] == 3
            ),
            key,
        )
        tables.merge(spark, self._target, definition, found, versions.get(str(name)), batch)
        versions[str(name)] = batch

    def _behind(self, last: Last) -> TrailPosition:
        """The place behind the batch's last record."""
        file, place = LookedFile(self._trail.file(last.seqno)), last.rba
        try:
            while (seen := file.at(place)) is not None and seen.size:
                place += seen.size
                if seen.record is None or not seen.record.continued:
                    break
            return TrailPosition(last.seqno, place)
        finally:
            file.close()

    def _counts(self, rows: DataFrame) -> list[tuple[TableName, int, int]]:
        """(table, operation, rows) of a batch."""
        found = rows.where("owner IS NOT NULL").groupBy("owner", "table", "io_type").count().collect()
        return [(TableName(row["owner"], row["table"]), row["io_type"], row["count"]) for row in found]

    def _definition(self, name: TableName) -> TableDefinition:
        """A table's newest definition; the trail's files are looked through once, as they grow."""
        for seqno in self._trail.sequences():
            path = self._trail.file(seqno)
            first, size = self._scanned.get(seqno, 0), path.stat().st_size
            if size > first:
                for _, _, definition in metadata_records(path, max(0, first - (1 << 16)), size):
                    self._definitions[definition.name] = definition
                self._scanned[seqno] = size
        try:
            return self._definitions[name]
        except KeyError:
            raise ApplyError(f"the trail has no definition of {name}") from None


def _named(rows: DataFrame) -> Any:
    from pyspark.sql.functions import concat, lit

    return concat(rows["owner"], lit("."), rows["table"])


def _last(rows: DataFrame) -> Last | None:
    found = rows.selectExpr(
        "max(struct(seqno, rba, csn, xid, unix_micros(commit_ts) AS commit_time)) AS last"
    ).collect()[0]["last"]
    return None if found is None else Last(found[0], found[1], found[2] or "", found[3] or "", found[4] or 0)
