"""The data source ``ggtrail``: trails for Spark, batch and stream, and back from Spark into a trail.

Spark makes these objects in processes of its own; what they hold must be picklable.  ``pushFilters`` only narrows what is
read, every condition goes back to Spark as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource as spark
from pyspark.sql.types import StructType

from ggshell.spark.layout import SPLIT_BYTES, Layout, files_of, layout_of, plan
from ggshell.spark.pushdown import Condition, conditions_from, wanted_by
from ggshell.spark.settings import parse_size
from ggshell.spark.splits import Split
from ggshell.trail.columnar import Wanted

NAME = "ggtrail"
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

    def __init__(self, split: Split) -> None:
        super().__init__(split)


class TrailSource(spark.DataSource):
    """``spark.read.format("ggtrail")``; its options are in the package's own words (``ggshell.spark``)."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return layout_of(self.options).ddl

    def reader(self, schema: StructType) -> TrailBatchReader:
        return TrailBatchReader(dict(self.options), layout_of(self.options).only(schema.fieldNames()))

    def streamReader(self, schema: StructType) -> Any:  # noqa: N802 - Spark's name
        from ggshell.spark.stream import TrailStreamReader

        return TrailStreamReader(dict(self.options), layout_of(self.options).only(schema.fieldNames()))

    def writer(self, schema: StructType, overwrite: bool) -> Any:
        from ggshell.spark.write import TrailArrowWriter

        return TrailArrowWriter(dict(self.options), overwrite=overwrite)


class TrailBatchReader(spark.DataSourceReader):
    """Reads what is durable of the files now, a split a task."""

    def __init__(self, options: dict[str, str], layout: Layout) -> None:
        self.options = options
        self.layout = layout
        self.known = conditions_from(options.get("conditions", ""))
        self.wanted: Wanted = wanted_by(self.known)

    def pushFilters(self, filters: list[spark.Filter]) -> Iterable[spark.Filter]:  # noqa: N802 - Spark's name
        """Spark 4.3 keeps one reader for all scans of a frame: what the last of them pushes down all get.  So nothing is
        taken unless option ``pushdown`` promises that the frame is scanned once in its query."""
        once = self.options.get("pushdown", "false").lower() == "true"
        if once and not self.layout.table:  # there conditions name the table's own columns
            self.wanted = wanted_by([*self.known, *conditions_of(filters)])
        return filters

    def partitions(self) -> list[spark.InputPartition]:
        size = parse_size(self.options.get("splitbytes", str(SPLIT_BYTES)))
        up_to_cut = self.options.get("uptocut", "false").lower() == "true"
        return [TrailPartition(split) for split in plan(files_of(self.options), size, up_to_cut=up_to_cut)]

    def read(self, partition: spark.InputPartition) -> Iterator[pa.RecordBatch]:
        return self.layout.batches(partition.value, self.wanted)


def conditions_of(filters: Iterable[Any]) -> list[Condition]:
    """Spark's conditions on whole columns of the trail, those that compare with values."""
    found = []
    for each in filters:
        comparison = _COMPARISONS.get(type(each))
        if comparison is None or len(each.attribute) != 1 or each.value is None:
            continue
        value = tuple(each.value) if comparison == "in" else each.value
        found.append(Condition(each.attribute[0], comparison, value))
    return found
