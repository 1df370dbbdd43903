"""The data source ``gglake``: the tables of a lake for Spark, without jars of the table formats.

    from ggshell.connectors.lake.spark_source import register_lakes
    register_lakes(spark)
    orders = spark.read.format("gglake").option("table", "shop.orders").load("iceberg:/data/lake")

``path``: the location as TARGET has it, with ``delta:`` or ``iceberg:`` for these forms. ``table``: ``owner.table``, or ``log``
(not for Parquet files, which Spark reads itself). ``compared``: set by COMPARE, the columns as it compares them.
A frame reads the version that is current when it is planned.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import datasource as spark
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from ggshell.connectors.lake.compared_rows import Compared, ComparedColumn, compared_rows, compared_schema
from ggshell.connectors.lake.data_files import ReadableFile, ReadableTable, unreadable_files
from ggshell.connectors.lake.readable import readable_table
from ggshell.connectors.lake.target import LakeTarget, lake_target
from ggshell.errors import UsageError
from ggshell.files import read_json
from ggshell.home.home import Home
from ggshell.pipeline.compare.portable import Family
from ggshell.query.worker_memory import keep_modules
from ggshell.types import TableName

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "gglake"
keep_modules()


class FilePartition(spark.InputPartition):
    """A data file, for one task."""

    def __init__(self, file: ReadableFile) -> None:
        super().__init__((file.location, file.deleted, dict(file.constants)))


class LakeSource(spark.DataSource):
    """``spark.read.format("gglake")``."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        compared = _compared(self.options)
        return from_arrow_schema(_table(self.options).schema if compared is None else compared_schema(compared))

    def reader(self, schema: StructType) -> LakeReader:
        return LakeReader(_table(self.options), _compared(self.options))


class LakeReader(spark.DataSourceReader):
    """Reads one version of a table, a data file per task. ``compared``: the columns as COMPARE takes them; none: unchanged."""

    def __init__(self, table: ReadableTable, compared: Compared | None = None) -> None:
        self._files = table.files
        self._compared = compared
        # Spark refuses other Arrow types within maps and lists, such as large strings.
        schema = to_arrow_schema(from_arrow_schema(table.schema), timezone="UTC")
        self._schema = schema.serialize().to_pybytes()
        self._field_ids = table.field_ids

    def partitions(self) -> list[spark.InputPartition]:
        return [FilePartition(file) for file in self._files]

    def read(self, partition: spark.InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:  # Spark makes such a partition for a table without files.
            return
        schema = pa.ipc.read_schema(pa.py_buffer(self._schema))
        batches = ReadableTable(schema, (), self._field_ids).batches(ReadableFile(*partition.value))
        with unreadable_files(partition.value[0]):
            yield from batches if self._compared is None else (compared_rows(each, self._compared) for each in batches)

    def __getstate__(self) -> dict[str, Any]:
        return {
            **self.__dict__,
            "_files": [(each.location, each.deleted, dict(each.constants)) for each in self._files],
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._files = tuple(ReadableFile(*each) for each in state["_files"])


def register_lakes(session: Any) -> None:
    """Register ``gglake`` with a Spark session."""
    session.dataSource.register(LakeSource)


def compared_frame(session: SparkSession, target: LakeTarget, table: TableName, compared: Compared) -> DataFrame:
    """A table of a lake as COMPARE takes it, after ``register_lakes``."""
    reader = session.read.format(NAME).option("table", str(table)).option("compared", json.dumps(compared))
    return reader.load(target.text)


def _compared(options: Any) -> Compared | None:
    if "compared" not in options:
        return None
    columns, marks = read_json(options["compared"])
    return Compared(tuple(ComparedColumn(name, Family(family)) for name, family in columns), tuple(marks))


def _table(options: Any) -> ReadableTable:
    path, table = options.get("path", ""), options.get("table", "")
    if not path or not table:
        raise UsageError(
            "gglake requires a path and the option table", hint='option("table", "shop.orders").load("./lake")'
        )
    return readable_table(lake_target(Home(Path.cwd()), path), table)
