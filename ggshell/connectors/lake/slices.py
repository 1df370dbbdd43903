"""What one task of a batch does with its slice of a trail: write the rows of the log, and reduce the rest to net effects.

A task runs in one of Spark's Python processes. It reads its part of the trail itself; only the parts that it returns pass
through Java.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ggshell.connectors.lake.extra_columns import with_extras
from ggshell.connectors.lake.history import VersionChanges
from ggshell.connectors.lake.log_files import LogFile, LogLayout, LogWriter
from ggshell.connectors.lake.net_effects import (
    Changes,
    ColumnTexts,
    NetEffects,
    between_truncates,
    net_effects,
    of_one_shape,
)
from ggshell.connectors.lake.part_exchange import THROUGH_SPARK, PartExchange
from ggshell.connectors.lake.table_keys import joined_key
from ggshell.errors import ApplyError, GgsError
from ggshell.parameters.lake_tables import DEFAULT_LAYOUTS, Deletes, LakeLayouts
from ggshell.query.splits import TrailSplit
from ggshell.query.trail_read import COLUMNS, HomeKeys, chosen, fitted
from ggshell.record.change import ChangeBatch
from ggshell.record.ddl import creates_table, decode_ddl
from ggshell.record.definition import TableDefinition
from ggshell.record.operation import TWO_IMAGES, IoType
from ggshell.store_paths import path_of
from ggshell.trail.arrow import ArrowRows, ColumnValues
from ggshell.trail.columnar import RowFilter, read_batches
from ggshell.trail.inspection import InspectedFile
from ggshell.types import Csn, TableName, TrailPosition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

REDUCED_BYTES = 64 << 20
"""The bytes of a trail after which the changes so far are reduced, which limits the memory of a task."""
_LOGGED = chosen(COLUMNS)


class Last(NamedTuple):
    """The last record of a slice: the position after it, and its transaction."""

    position: TrailPosition
    csn: str
    xid: str
    commit_time: int


class SlicePart(NamedTuple):
    """What a task returns; ``order`` sorts the parts of a batch.

    ``counts``: (table, operation) -> rows, of all tables of the trail that are wanted; ``effects``: of the tables with a key,
    one for each key that a table had; ``versions``: the changes of tables with HISTORY.
    """

    order: tuple[int, int, int]
    effects: dict[TableName, list[NetEffects]]
    files: list[LogFile]
    counts: dict[tuple[TableName, int], int]
    last: Last | None
    versions: dict[TableName, list[VersionChanges]]


class SliceTask(NamedTuple):
    """A task. ``log``: None if the log is not written; ``reached``: positions before which a table (None: the log) has all;
    ``least``: the CSN of the first transaction that is delivered; ``exchange``: how the parts are returned."""

    wanted: Callable[[TableName], bool]
    keys: HomeKeys | None
    log: LogLayout | None
    reached: Mapping[TableName | None, TrailPosition]
    only: frozenset[TableName] | None = None
    least: Csn | None = None
    layouts: LakeLayouts = DEFAULT_LAYOUTS
    exchange: PartExchange = THROUGH_SPARK

    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Spark's form of a task: splits in, parts out, each as one binary value."""
        for batch in batches:
            for data in batch.column(0).to_pylist():
                for part in self._parts(pickle.loads(data)):  # noqa: S301 - written by this program's data source
                    yield pa.record_batch([pa.array([self.exchange.sent(part)], pa.binary())], names=["part"])

    def _parts(self, split: TrailSplit) -> Iterator[SlicePart | GgsError]:
        """The parts of a split; an error of this program is returned, because Java would keep only its text."""
        try:
            yield from self.run(split)
        except GgsError as error:
            yield error

    def run(self, split: TrailSplit) -> Iterator[SlicePart]:
        """Process a split. Raises TrailError, ApplyError, and the errors of the lake's store."""
        seqno, number = _seqno(split), 0
        reduction = _Reduction(self, split)
        with LogWriter(self.log, f"{seqno:09d}-{split.first}") if self.log is not None else nullcontext() as log:
            for batch in read_slice(split, self.keys, self.least):
                reduction.add(batch, log)
                if reduction.size >= REDUCED_BYTES:
                    yield SlicePart((seqno, split.first, number), reduction.taken(), [], {}, None, reduction.versions())
                    number += 1
        files = log.files if log is not None else []
        last = reduction.last(split)
        effects, versions = reduction.taken(), reduction.versions()
        yield SlicePart((seqno, split.first, number), effects, files, reduction.counts, last, versions)


def on_spark(splits: DataFrame, task: SliceTask, exchange: PartExchange = THROUGH_SPARK) -> list[SlicePart]:
    """Run a task on the splits of a batch, in one job. Raises the error of a task."""
    task = task._replace(exchange=exchange)
    return parts_of(splits.mapInArrow(task.rows, "part binary").toArrow().column(0).to_pylist(), exchange)


def parts_of(data: Iterable[bytes], exchange: PartExchange = THROUGH_SPARK) -> list[SlicePart]:
    """The parts that tasks have returned. Raises the error of a task."""
    found = [exchange.received(each) for each in data]  # all of them, so that no file of a part stays
    for part in found:
        if isinstance(part, GgsError):
            raise part
    return found


def _seqno(split: TrailSplit) -> int:
    return int(split.file.rpartition("/")[2][2:])


def _trail(split: TrailSplit) -> str:
    """The trail of a split's file: its folder and its two letters."""
    folder, _, name = split.file.rpartition("/")
    return f"{folder}/{name[:2]}"


def read_slice(split: TrailSplit, keys: HomeKeys | None, least: Csn | None) -> Iterator[ChangeBatch]:
    """The changes of a split, from a CSN on. Raises TrailError."""
    path = path_of(split.file)
    return read_batches(
        path, RowFilter(first_csn=least), first=split.first, last=split.last, keys=keys, known=split.known(path)
    )


class _Reduction:
    """Collects the changes of a slice by table."""

    def __init__(self, task: SliceTask, split: TrailSplit) -> None:
        self.counts: dict[tuple[TableName, int], int] = {}
        self.size = 0
        self._task = task
        self._file, self._trail = split.file, _trail(split)
        self._changes: dict[TableName, list[Changes]] = {}
        self._versions: dict[TableName, list[VersionChanges]] = {}
        self._last: ChangeBatch | None = None

    def add(self, batch: ChangeBatch, log: LogWriter | None) -> None:
        self._last = batch
        self.size += int(batch.length.sum())
        rows = ArrowRows(batch, self._trail, self._file)
        every: pa.RecordBatch | None = None
        for name, numbers in self._tables(batch).items():
            mine = np.isin(batch.table, numbers)
            self._count(name, batch.io_type[mine])
            mine &= batch.io_type != int(IoType.SEQUENCE_OP)
            self._collect(rows, name, mine & self._is_fresh(batch, name))
            logged = mine & self._is_fresh(batch, None)
            if log is not None and logged.any():
                every = every or fitted(rows.record_batch(COLUMNS), _LOGGED)
                log.write(name, every if logged.all() else every.filter(pa.array(logged)))

    def _tables(self, batch: ChangeBatch) -> dict[TableName, list[int]]:
        """The indexes of the wanted tables in a batch; a table can have several definitions."""
        found: dict[TableName, list[int]] = {}
        for number, definition in enumerate(batch.tables):
            name = definition.name
            if name.owner and self._task.wanted(name) and (self._task.only is None or name in self._task.only):
                found.setdefault(name, []).append(number)
        return found

    def _count(self, name: TableName, io_types: NDArray[np.uint8]) -> None:
        for io_type, count in enumerate(np.bincount(io_types).tolist()):
            if count:
                self.counts[name, io_type] = self.counts.get((name, io_type), 0) + count

    def _is_fresh(self, batch: ChangeBatch, name: TableName | None) -> NDArray[np.bool_]:
        """Which rows a table (None: the log) does not have yet."""
        reached = self._task.reached.get(name)
        if reached is None or batch.seqno > reached.seqno:
            return np.ones(len(batch), np.bool_)
        fresh: NDArray[np.bool_] = batch.rba >= (reached.rba if batch.seqno == reached.seqno else 1 << 62)
        return fresh

    def _collect(self, rows: ArrowRows, name: TableName, mine: NDArray[np.bool_]) -> None:
        """Collect the changes of a table, one part for each run of rows with the same definition."""
        batch = rows.batch
        statements = np.flatnonzero(mine & (batch.io_type == int(IoType.DDL)))
        mine = mine.copy()
        mine[[row for row in statements if not creates_table(decode_ddl(batch.data(int(row))))]] = False
        if batch.befores is not None:
            mine &= ~batch.befores
        chosen = np.flatnonzero(mine)
        numbers = batch.table[chosen]
        for run in np.split(chosen, np.flatnonzero(numbers[1:] != numbers[:-1]) + 1):
            if len(run):
                number = int(batch.table[run[0]])
                self._keep(rows, name, number, run)

    def _keep(self, rows: ArrowRows, name: TableName, number: int, chosen: NDArray[np.int64]) -> None:
        definition, layout = rows.batch.tables[number], self._task.layouts.of(name)
        if int(rows.batch.io_type[chosen[0]]) == int(IoType.DDL):
            changes, chosen = _emptied(definition), chosen[:1]
        elif not definition.columns:
            changes, chosen = _emptied(definition), chosen[-1:]
        elif not definition.key:
            self._changes.setdefault(name, []).append(_keyless(definition))
            return
        else:
            changes = with_extras(_changes(rows, number, chosen), rows, chosen, layout)
        if layout.deletes is not Deletes.CLOSED:
            self._changes.setdefault(name, []).append(changes)
            return
        facts = rows.record_batch(["commit_ts", "csn"]).take(pa.array(chosen))
        times = facts.column(0).cast(pa.int64()).to_numpy()
        self._versions.setdefault(name, []).append(VersionChanges(changes, times, facts.column(1)))

    def taken(self) -> dict[TableName, list[NetEffects]]:
        """The net effects of the changes so far, which are then forgotten."""
        layouts = self._task.layouts
        found = {
            name: _net(parts, keeps_deleted=layouts.of(name).deletes is Deletes.MARKED)
            for name, parts in self._changes.items()
        }
        self._changes, self.size = {}, 0
        return found

    def versions(self) -> dict[TableName, list[VersionChanges]]:
        """The changes of tables with HISTORY so far, which are then forgotten."""
        found, self._versions = self._versions, {}
        return found

    def last(self, split: TrailSplit) -> Last | None:
        """The last record of all; the slice ends there. None if it has no rows."""
        if self._last is None:
            return None
        header, seqno = self._last.pieces[-1].header, _seqno(split)
        position = TrailPosition(seqno, _place_after(split, int(self._last.rba[-1])))
        return Last(position, str(header.csn), header.xid, header.commit_time)


def _changes(rows: ArrowRows, number: int, chosen: NDArray[np.int64]) -> Changes:
    """The changes of a table in some rows, all with the same definition."""
    definition = rows.batch.tables[number]
    io_type = rows.batch.io_type[chosen]
    after = rows.images_of(number, chosen)
    new = _key_texts(definition, after, io_type)
    old = new
    moves = np.flatnonzero(np.isin(io_type, list(TWO_IMAGES)))
    if len(moves):
        before = rows.images_of(number, chosen[moves], before=True)
        complete = np.all([before[index].given for index in definition.key], axis=0)
        old_keys = joined_key([before[index].texts for index in definition.key])
        places = np.full(len(chosen), -1)
        places[moves[complete]] = np.flatnonzero(complete)
        old = pc.if_else(pa.array(places >= 0), old_keys.take(pa.array(places, mask=places < 0)), new)
    columns = tuple(ColumnTexts(column, *values) for column, values in zip(definition.columns, after, strict=True))
    return Changes(definition, io_type, old, new, columns)


def _key_texts(definition: TableDefinition, values: list[ColumnValues], io_type: NDArray[np.uint8]) -> pa.Array:
    """The keys of rows. Raises ApplyError for a row without its complete key."""
    for index in definition.key:
        if not (values[index].given | (io_type == int(IoType.PURGE_DATA))).all():
            name = definition.columns[index].name
            raise ApplyError(f"a record of {definition.name} does not contain {name}, which identifies its row")
    return joined_key([values[index].texts for index in definition.key])


def _keyless(definition: TableDefinition) -> Changes:
    """No changes, of a table that has no key."""
    return Changes(definition, np.zeros(0, np.uint8), pa.array([], pa.string()), pa.array([], pa.string()), ())


def _emptied(definition: TableDefinition) -> Changes:
    """What the creation of a table means for one of the same name that the lake has: its rows are those of another table.

    Also what a TRUNCATE means that the source's log has without the columns of the table.
    """
    none = pa.array([""], pa.string())
    return Changes(definition, np.array([int(IoType.PURGE_DATA)], np.uint8), none, none, ())


def _net(parts: list[Changes], *, keeps_deleted: bool) -> list[NetEffects]:
    """The net effects of changes, one for each key; parts with the same definition are reduced together.

    ``keeps_deleted``: the table has SOFTDELETES, so the effects before a TRUNCATE remain.
    """
    found = list[NetEffects]()
    while parts:
        count = next((at for at, part in enumerate(parts) if part.definition != parts[0].definition), len(parts))
        joined = joined_changes(parts[:count])
        found += map(net_effects, between_truncates(joined) if keeps_deleted else [joined])
        parts = parts[count:]
    return of_one_shape(found, keeps_deleted=keeps_deleted)


def joined_changes(parts: list[Changes]) -> Changes:
    """Changes with the same definition, one after the other."""
    if len(parts) == 1:
        return parts[0]
    columns = tuple(
        ColumnTexts(
            same[0].column, pa.concat_arrays([each.texts for each in same]), np.concatenate([e.given for e in same])
        )
        for same in zip(*(part.columns for part in parts), strict=True)
    )
    return Changes(
        parts[0].definition,
        np.concatenate([part.io_type for part in parts]),
        pa.concat_arrays([part.old for part in parts]),
        pa.concat_arrays([part.new for part in parts]),
        columns,
    )


def _place_after(split: TrailSplit, rba: int) -> int:
    """The position after a record and its fragments."""
    file, place = InspectedFile(path_of(split.file)), rba
    try:
        while (seen := file.at(place)) is not None and seen.size:
            place += seen.size
            if seen.record is None or not seen.record.continued:
                break
        return place
    finally:
        file.close()
