"""``spark.readStream.format("ggtrail")``: a trail as a stream, batch by batch, whole transactions only.

Spark keeps the offsets in its checkpoint and asks for the same ranges again after a crash; a trail's bytes before its
durable end never change, so a batch that is read twice is the same twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource as spark
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow

from ggshell.errors import TrailError, UsageError
from ggshell.spark.layout import SPLIT_BYTES, Layout
from ggshell.spark.offsets import cut, is_between_transactions, offset_of, position_of, trail_of
from ggshell.spark.settings import parse_size
from ggshell.spark.splits import Split, splits_of
from ggshell.trail.visible import VisibleEnd
from ggshell.types import TrailPosition


class TrailStreamReader(spark.DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches in Spark's planning process, which keeps this object; its tasks are sent a copy to read with."""

    def __init__(self, options: dict[str, str], layout: Layout) -> None:
        self.options = options
        self.layout = layout
        self.trail = trail_of(options.get("path", ""))
        self._end: VisibleEnd | None = None
        self._last: TrailPosition | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_end": None}

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name, as below
        sequences = self.trail.sequences()
        seqno = _number(self.options, "startingseqno", sequences[0] if sequences else 0)
        rba = _number(self.options, "startingrba", 0)
        if rba and "startingseqno" not in self.options:
            raise UsageError("startingRba is a place in a file", hint="say startingSeqno as well")
        return offset_of(TrailPosition(seqno, rba))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        size = self.options.get("maxbytespertrigger", "")
        return ReadMaxBytes(parse_size(size)) if size else ReadAllAvailable()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        begin, end = position_of(start), self._last or self._visible()
        if end is None or end <= begin:
            return start
        if isinstance(limit, ReadMaxBytes):
            end = cut(self.trail, begin, end, limit.max_bytes)
        return offset_of(end)

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
        return self.layout.batches(partition.value)

    def stop(self) -> None:
        if self._end is not None:
            self._end.close()
            self._end = None

    def _visible(self) -> TrailPosition | None:
        if self._end is None:
            self._end = VisibleEnd(self.trail)
        return self._end.read()

    def _splits(self, seqno: int, first: int, last: int | None) -> list[Split]:
        path = self.trail.file(seqno)
        if not path.exists():
            raise TrailError(
                f"trail file {path} (sequence number {seqno}) is missing, the stream has not read it",
                code="OGG-01332",
                hint="restore it, or begin with another checkpoint knowing what is skipped",
            )
        if first >= (path.stat().st_size if last is None else last):
            return []
        size = parse_size(self.options.get("splitbytes", str(SPLIT_BYTES)))
        between = is_between_transactions(path, first)
        return splits_of(str(path), path, size, first=first, last=last, between=between)


class TrailRange(spark.InputPartition):
    """A split of a batch, for one task."""

    def __init__(self, split: Split) -> None:
        super().__init__(split)


def _number(options: dict[str, str], name: str, default: int) -> int:
    text = options.get(name, str(default))
    if not text.isdigit():
        raise UsageError(f"{name} is a number, not {text}")
    return int(text)
