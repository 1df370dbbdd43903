"""Delivers batches of a trail to a lake, each exactly once.

Spark's stream defines the contents of a batch; the commit shows whether it is stored.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.connectors.lake.commits import CommitLog, LakeCommit
from ggshell.connectors.lake.effects import RecordChange, effects
from ggshell.connectors.lake.forms import LakeBatch, LakeTables
from ggshell.connectors.lake.rows import log_rows, table_change
from ggshell.errors import ApplyError
from ggshell.query.splits import metadata_records
from ggshell.record.definition import TableDefinition
from ggshell.record.operation import IoType
from ggshell.trail.inspection import InspectedFile
from ggshell.trail.name import TrailName
from ggshell.types import TableName, TrailPosition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Wanted = Callable[[TableName], bool]
Count = Callable[[TableName, int, int], None]
_CHANGES = ("rba", "seqno", "io_type", "before_after", "before", "columns")
MOST_ROWS = 1000
"""The number of rows that are converted to Python objects at a time."""


class Last(NamedTuple):
    """The last record of a batch: its position and its transaction."""

    seqno: int
    rba: int
    csn: str
    xid: str
    commit_time: int


class LakeDelivery:
    """Writes batches, with these guarantees, each of them tested:

    1. A committed batch is not written again, whatever Spark's state says.
    2. A batch's data is complete before its commit. An attempt without a commit is overwritten by the next one, or, if a table
       itself records the position that it has reached, continued after that position.
    3. A table without a key has a log and no current state, and a warning says so once (``told``).
    """

    def __init__(
        self,
        tables: LakeTables,
        trail: TrailName,
        log: CommitLog,
        wanted: Wanted,
        count: Count,
        told: Callable[[str], None],
    ) -> None:
        self.committed = log.latest()
        self._tables = tables
        self._trail = trail
        self._log = log
        self._wanted = wanted
        self._count = count
        self._told = told
        self._scanned: dict[int, int] = {}
        self._definitions: dict[TableName, TableDefinition] = {}
        self._keyless: set[TableName] = set()

    def write(self, rows: DataFrame, number: int) -> None:
        """Write a batch unless it is already committed. Raises ApplyError, DiskError."""
        done = self.committed
        if done is not None and number <= done.batch:
            return
        if done is not None:
            self._log.require_there(done)
        rows = rows.persist()
        try:
            last = _last(rows)
            if last is None:
                return
            counts = [each for each in self._counts(rows) if self._wanted(each[0]) and self._is_of_table(*each)]
            versions = dict(done.tables) if done is not None else {}
            batch = LakeBatch(number, self._behind(last), dict(versions))
            self._write_tables(rows, counts, batch, versions)
            total = sum(count for _, _, count in counts)
            commit = LakeCommit(number, batch.position, last.csn, last.xid, last.commit_time, total, versions)
            # The commit must not survive without its data files. No form syncs them, and only the form knows their
            # names.
            os.sync()
            if done is not None:
                self._log.require_there(done)
            self._log.add(commit)
            self.committed = commit
            for name, io_type, count in counts:
                self._count(name, io_type, count)
        finally:
            rows.unpersist()

    def _write_tables(
        self,
        rows: DataFrame,
        counts: Sequence[tuple[TableName, int, int]],
        batch: LakeBatch,
        versions: dict[str, int],
    ) -> None:
        """Write the log, then the current state of each table. DDL statements are only in the log."""
        names = sorted({name for name, _, _ in counts})
        if not names:
            return
        kept = rows.where(rows["owner"].isNotNull() & _named(rows).isin(*map(_joined, names)))
        fresh = self._fresh(kept, None)
        if fresh is kept or not fresh.isEmpty():
            self._tables.append_log(log_rows(fresh), batch)
        rows_only = kept.where(kept["io_type"] != int(IoType.DDL))
        for name in sorted({name for name, io_type, _ in counts if io_type != IoType.DDL}):
            definition = self._definition(name)
            if definition.key:
                mine = self._fresh(rows_only.where(_named(rows_only) == _joined(name)), name)
                self._merge(mine, definition, batch, versions)
            elif name not in self._keyless:
                self._keyless.add(name)
                self._told(f"{name} has no key: the lake contains its changes in the log, but not its current state.")

    def _fresh(self, rows: DataFrame, name: TableName | None) -> DataFrame:
        """The rows that a table (None: the log) does not have yet. All rows, unless a crash left it ahead of the commits."""
        reached = self._tables.reached(name)
        if reached is None or (self.committed is not None and reached <= self.committed.position):
            return rows
        seqno, rba = reached
        return rows.where((rows["seqno"] > seqno) | ((rows["seqno"] == seqno) & (rows["rba"] >= rba)))

    def _merge(self, rows: DataFrame, definition: TableDefinition, batch: LakeBatch, versions: dict[str, int]) -> None:
        key = [definition.columns[index].name for index in definition.key]
        found = effects(
            (
                RecordChange(row["io_type"], dict(row["before"] or ()), dict(row["columns"] or row["before"] or ()))
                for row in _in_order(rows)
                if row["before_after"] != "B" or row["io_type"] == 3
            ),
            key,
        )
        if found.by_key or found.cleared:
            held = self._tables.held(definition.name, batch)
            change = table_change(definition, found, held, self._tables.fitting)
            if change.changed:
                self._told(f"Rewriting {definition.name}: the type of {', '.join(change.changed)} has changed.")
            self._tables.apply(change, batch)
            versions[str(definition.name)] = batch.number

    def _behind(self, last: Last) -> TrailPosition:
        """The position after the last record of a batch."""
        file, place = InspectedFile(self._trail.file(last.seqno)), last.rba
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

    def _is_of_table(self, name: TableName, io_type: int, _: int) -> bool:
        """Whether an operation is on a table, so that a lake takes it; report a sequence once."""
        if io_type == IoType.SEQUENCE_OP and name not in self._keyless:
            self._keyless.add(name)
            self._told(f"{name} is a sequence: its values are not applied to a lake.")
        return io_type != IoType.SEQUENCE_OP

    def _definition(self, name: TableName) -> TableDefinition:
        """The newest definition of a table. The trail's files are scanned once, as they grow."""
        for seqno in self._trail.sequences():
            path = self._trail.file(seqno)
            first, size = self._scanned.get(seqno, 0), path.stat().st_size
            if size > first:
                for _, _, definition in metadata_records(path, max(0, first - (1 << 16)), size):
                    if definition.columns:  # a DDL statement has the name of its object and no columns
                        self._definitions[definition.name] = definition
                self._scanned[seqno] = size
        try:
            return self._definitions[name]
        except KeyError:
            raise ApplyError(f"the trail has no definition of {name}") from None


def _in_order(rows: DataFrame) -> Iterator[dict[str, Any]]:
    """Changes in the trail's order. ``toLocalIterator`` is not used, because Java keeps what it returned (Spark 4.3)."""
    for batch in rows.select(*_CHANGES).orderBy("seqno", "rba").toArrow().to_batches(MOST_ROWS):
        yield from batch.to_pylist()


def _named(rows: DataFrame) -> Any:
    """Owner and table as one value, in the database's spelling."""
    from pyspark.sql.functions import concat, lit

    return concat(rows["owner"], lit("\0"), rows["table"])


def _joined(name: TableName) -> str:
    return f"{name.owner}\0{name.name}"


def _last(rows: DataFrame) -> Last | None:
    found = rows.selectExpr(
        "max(struct(seqno, rba, csn, xid, unix_micros(commit_ts) AS commit_time)) AS last"
    ).collect()[0]["last"]
    return None if found is None else Last(found[0], found[1], found[2] or "", found[3] or "", found[4] or 0)
