"""The data source ``ggtrail``: trails for Spark, as a batch or as a stream. ``write`` has the other direction.

Spark creates these objects in its own processes, so their contents must be picklable. ``pushFilters`` only narrows what is
read; every condition is also returned to Spark.

A batch of a stream contains whole transactions only: it ends where a transaction begins, or at the durable end. Spark keeps
the offsets (``{"seqno": 3, "rba": 4711}``) in its checkpoint and requests the same ranges again after a crash. The bytes of
a trail before its durable end never change, so a batch that is read again is identical.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource as spark
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from ggshell.clock import SystemClock
from ggshell.errors import NotFoundError, UsageError
from ggshell.object_stores import is_elsewhere
from ggshell.quantities import read_size
from ggshell.query import paths
from ggshell.query.batch_timing import BatchTiming
from ggshell.query.pushdown import Condition, conditions_from, wanted_by
from ggshell.query.splits import TrailSplit, splits_of
from ggshell.query.trail_read import SPLIT_BYTES, SplitRead, TrailRead, files_of, plan, read_of
from ggshell.query.worker_memory import keep_modules
from ggshell.record.operation import TransInd
from ggshell.trail.boundaries import boundary_after
from ggshell.trail.columnar import OnDamage, RowFilter
from ggshell.trail.inspection import InspectedFile
from ggshell.trail.name import TrailName
from ggshell.trail.reach import require_reachable
from ggshell.trail.reader import VisibleEnd
from ggshell.types import TrailPosition

NAME = "ggtrail"
keep_modules()
_COMPARISONS = {
    spark.EqualTo: "=",
    spark.EqualNullSafe: "=",
    spark.In: "in",
    spark.GreaterThan: ">",
    spark.GreaterThanOrEqual: ">=",
    spark.LessThan: "<",
    spark.LessThanOrEqual: "<=",
}


class TrailPartition(spark.InputPartition):
    """A split, for one task."""

    def __init__(self, split: TrailSplit) -> None:
        super().__init__(split)


class TrailSource(spark.DataSource):
    """``spark.read.format("ggtrail")``; ``ggshell.query`` documents its options."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return read_of(self.options).ddl

    def reader(self, schema: StructType) -> TrailBatchReader:
        return TrailBatchReader(dict(self.options), read_of(self.options).only(schema.fieldNames()))

    def streamReader(self, schema: StructType) -> Any:  # noqa: N802 - Spark's name

        return TrailStreamReader(dict(self.options), read_of(self.options).only(schema.fieldNames()))

    def writer(self, schema: StructType, overwrite: bool) -> Any:
        from ggshell.query.write import TrailArrowWriter

        return TrailArrowWriter(dict(self.options), overwrite=overwrite)


class TrailBatchReader(spark.DataSourceReader):
    """Reads the part of the files that is durable now, one split per task."""

    def __init__(self, options: dict[str, str], trail_read: TrailRead | SplitRead) -> None:
        self.options = options
        self.trail_read = trail_read
        self.known = conditions_from(options.get("conditions", ""))
        self.wanted: RowFilter = wanted_by(self.known)

    def pushFilters(self, filters: list[spark.Filter]) -> Iterable[spark.Filter]:  # noqa: N802 - Spark's name
        """Use filters only if option ``pushdown`` promises that the query scans the frame once.

        Spark 4.3 keeps one reader for all scans of a frame, and the filters of the last scan apply to all of them.
        """
        once = self.options.get("pushdown", "false").lower() == "true"
        if once and not self.trail_read.table:  # with a table, conditions refer to its own columns
            self.wanted = wanted_by([*self.known, *conditions_of(filters)])
        return filters

    def partitions(self) -> list[spark.InputPartition]:
        size = read_size(self.options.get("splitbytes", str(SPLIT_BYTES)))
        up_to_cut = self.options.get("uptocut", "false").lower() == "true"
        on_damage = self.trail_read.on_damage
        splits = plan(files_of(self.options), size, up_to_cut=up_to_cut, on_damage=on_damage)
        return [TrailPartition(split) for split in splits]

    def read(self, partition: spark.InputPartition) -> Iterator[pa.RecordBatch]:
        return self.trail_read.batches(partition.value, self.wanted)


def conditions_of(filters: Iterable[Any]) -> list[Condition]:
    """Spark's conditions that compare whole columns of the trail with values."""
    found = []
    for each in filters:
        comparison = _COMPARISONS.get(type(each))
        if comparison is None or len(each.attribute) != 1 or each.value is None:
            continue
        value = tuple(each.value) if comparison == "in" else each.value
        found.append(Condition(each.attribute[0], comparison, value))
    return found


class TrailStreamReader(spark.DataSourceStreamReader, SupportsTriggerAvailableNow):
    """``spark.readStream.format("ggtrail")``.

    Plans batches in Spark's planning process, which keeps this object. Its tasks read with a copy."""

    def __init__(self, options: dict[str, str], trail_read: TrailRead | SplitRead) -> None:
        self.options = options
        self.trail_read = trail_read
        self.trail = trail_of(options.get("path", ""))
        self._end: VisibleEnd | None = None
        self._last: TrailPosition | None = None
        self._timing = BatchTiming(_number(options, "latency", 0), SystemClock(), _number(options, "interval", 0))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_end": None}

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name, as below
        sequences = self.trail.sequences()
        seqno = _number(self.options, "startingseqno", sequences[0] if sequences else 0)
        rba = _number(self.options, "startingrba", 0)
        if rba and "startingseqno" not in self.options:
            raise UsageError(
                "startingRba requires startingSeqno: it is a position in a file", hint="set startingSeqno as well"
            )
        return offset_of(TrailPosition(seqno, rba))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        size = self.options.get("maxbytespertrigger", "")
        return ReadMaxBytes(read_size(size)) if size else ReadAllAvailable()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        begin, end = position_of(start), self._last or self._visible()
        if end is None or end < begin:
            require_reachable(self.trail, begin)
        if end is None or end <= begin:
            self._timing.nothing()
            return start
        reached = cut(self.trail, begin, end, limit.max_bytes) if isinstance(limit, ReadMaxBytes) else end
        return offset_of(reached) if self._timing.begins(full=reached < end) or self._last is not None else start

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._last = self._visible()

    def reportLatestOffset(self) -> dict[str, int] | None:  # noqa: N802
        end = self._visible()
        return None if end is None else offset_of(end)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[spark.InputPartition]:
        begin, behind = position_of(start), position_of(end)
        return [
            TrailRange(split)
            for seqno in range(begin.seqno, behind.seqno + 1)
            for split in self._splits(
                seqno, begin.rba if seqno == begin.seqno else 0, behind.rba if seqno == behind.seqno else None
            )
        ]

    def read(self, partition: spark.InputPartition) -> Iterator[pa.RecordBatch]:
        return self.trail_read.batches(partition.value)

    def stop(self) -> None:
        if self._end is not None:
            self._end.close()
            self._end = None

    def _visible(self) -> TrailPosition | None:
        if self._end is None:
            self._end = VisibleEnd(self.trail)
        return self._end.read()

    def _splits(self, seqno: int, first: int, last: int | None) -> list[TrailSplit]:
        require_reachable(self.trail, TrailPosition(seqno, first if last is None else last))
        path = self.trail.file(seqno)
        if first >= (path.stat().st_size if last is None else last):
            return []
        size = read_size(self.options.get("splitbytes", str(SPLIT_BYTES)))
        between = is_between_transactions(path, first)
        inside = self.trail_read.on_damage is OnDamage.RAISE
        return splits_of(str(path), path, size, first=first, last=last, between=between, inside=inside)


class TrailRange(spark.InputPartition):
    """A split of a batch, for one task."""

    def __init__(self, split: TrailSplit) -> None:
        super().__init__(split)


def _number(options: dict[str, str], name: str, default: int) -> int:
    text = options.get(name, str(default))
    if not text.isdigit():
        raise UsageError(f"{name} must be a number, not {text}")
    return int(text)


_BEGINS = (TransInd.BEGIN, TransInd.SOLE)


def position_of(offset: dict[str, Any]) -> TrailPosition:
    """The position of an offset."""
    return TrailPosition(int(offset["seqno"]), int(offset["rba"]))


def offset_of(position: TrailPosition) -> dict[str, int]:
    """The offset of a position."""
    return {"seqno": position.seqno, "rba": position.rba}


def trail_of(text: str) -> TrailName:
    """The trail of a stream's path: a trail name, or a folder or glob of its files.

    It can be a trail without files. Raises UsageError for several trails, and for a path that is not on a mounted file
    system.
    """
    if not text:
        raise UsageError("ggtrail requires a path", hint='spark.readStream.format("ggtrail").load("dirdat/ea")')
    if is_elsewhere(text):
        raise UsageError(f"a stream requires a trail on a mounted file system, not {text}", hint="read it as a batch")
    path = Path(text.removeprefix("file://")).absolute()
    if len(path.name) == 2 and not path.is_dir() and path.parent.is_dir():
        return TrailName(path.parent, path.name)
    try:
        files = [Path(file) for part in text.split(",") for file in paths.trail_files(part.strip())]
    except NotFoundError:
        raise NotFoundError(f"{text} is not a trail", hint="name one trail, ./dirdat/ea for example") from None
    names = {TrailName(file.parent.absolute(), file.name[:2]) for file in files}
    if len(names) > 1:
        raise UsageError(
            f"{text} contains {len(names)} trails ({', '.join(sorted(name.prefix for name in names))})",
            hint="a stream follows one trail: name one of them",
        )
    return names.pop()


def cut(name: TrailName, begin: TrailPosition, end: TrailPosition, size: int) -> TrailPosition:
    """A position between transactions about ``size`` bytes after ``begin``, not less; ``end`` if there is none.

    It is found without reading the rows: a transaction that is longer, also one of several files, is passed over by its index.
    """
    place, left = begin, max(1, size)
    while place < end:
        there = name.file(place.seqno).stat().st_size
        if place.rba + left < there:
            break
        left -= max(0, there - place.rba)
        place = TrailPosition(place.seqno + 1, 0)
    else:
        return end
    place = TrailPosition(place.seqno, place.rba + left)
    while place < end:
        found = boundary_after(name.file(place.seqno), place.rba)
        if found is not None:
            return min(TrailPosition(place.seqno, found), end)
        place = TrailPosition(place.seqno + 1, 0)
    return end


def is_between_transactions(path: Path, place: int) -> bool:
    """Whether no transaction is open at a record: the next row begins a transaction, or there is no next row."""
    file = InspectedFile(path)
    try:
        seen = file.at(max(place, file.first))
        while seen is not None and seen.record is not None and seen.record.table_index is None:
            seen = file.at(seen.rba + seen.size)
        return seen is None or (seen.record is not None and seen.record.trans_ind in _BEGINS)
    finally:
        file.close()
