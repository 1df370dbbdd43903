"""Parquet files of a lake: batches of the change log, and versions of a table's current state.

    <target>/log/batch=000000000007/owner=shop/table=orders/*.parquet     every change, once
    <target>/current/shop.orders/v=000000000007/*.parquet                 the rows after that batch

A table's columns have the types that ``ggtrail`` uses (a time with a zone is an instant in UTC). ``_key`` and ``_held`` (the
source's own texts) are used by the next merge. The commit names the valid version. The version before it is kept for readers
that have already opened it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ggshell.connectors.lake.effects import Effects
from ggshell.connectors.lake.forms import LakeBatch
from ggshell.query.values import arrow_type, spark_type, typed
from ggshell.record.definition import TableDefinition
from ggshell.types import TableName, TrailPosition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

HIDDEN = ("_key", "_held")
_HELD = pa.map_(pa.string(), pa.string())
_EFFECTS = pa.schema(
    [("_key", pa.string()), ("_base", pa.string()), ("_gone", pa.bool_()), ("_laid", _HELD), ("_order", pa.int64())]
)

_MERGE = """
SELECT /*+ BROADCAST(e) */ r._key, r._held
  FROM ggs_rows r LEFT ANTI JOIN (SELECT _key FROM ggs_effects) e ON r._key = e._key
UNION ALL
SELECT /*+ MERGE(b) */ e._key,
       map_concat(map_filter(coalesce(b._held, map()), (k, v) -> NOT map_contains_key(e._laid, k)), e._laid) AS _held
  FROM ggs_effects e
  LEFT JOIN (SELECT /*+ BROADCAST(t) */ r._key, r._held
               FROM ggs_rows r LEFT SEMI JOIN (SELECT _base FROM ggs_effects WHERE NOT _gone) t ON r._key = t._base) b
    ON b._key = e._base
 WHERE NOT e._gone"""
"""Only rows that a batch touches are sorted and joined; the others are filtered by the keys, held in memory."""


class ParquetTables:
    """The Parquet files in a folder. Data of a batch without a commit is overwritten."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def reached(self, name: TableName | None) -> TrailPosition | None:
        return None

    def append(self, rows: DataFrame, batch: LakeBatch) -> None:
        folder = self._folder / "log" / f"batch={batch.number:012d}"
        _writer(rows).partitionBy("owner", "table").parquet(str(folder))

    def merge(
        self, spark: SparkSession, definition: TableDefinition, effects: Effects, batch: LakeBatch, before: int | None
    ) -> None:
        """Write the next version of a table: the previous one with the effects of a batch."""
        name = str(definition.name)
        made = spark.createDataFrame(_effects_table(effects)).drop("_order")
        if before is None or effects.cleared:
            merged = made.where("NOT _gone").selectExpr("_key", "_laid AS _held")
        else:
            made.createOrReplaceTempView("ggs_effects")
            old = spark.read.parquet(str(version_folder(self._folder, name, before))).select(*HIDDEN)
            old.createOrReplaceTempView("ggs_rows")
            merged = spark.sql(_MERGE)
        shown = merged.mapInArrow(lambda batches: _typed(batches, definition), _ddl(definition))
        _writer(shown).parquet(str(version_folder(self._folder, name, batch.number)))
        _forget(self._folder, name, batch.number, before)


def _writer(rows: DataFrame) -> DataFrameWriter:
    """A writer that stores instants as microseconds adjusted to UTC, so that every reader recognizes them as instants.

    Spark's own default, INT96, has no zone.
    """
    rows.sparkSession.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    return rows.write.mode("overwrite")


def version_folder(folder: Path, name: str, version: int) -> Path:
    """The folder of a version of a table's current state."""
    return folder / "current" / name / f"v={version:012d}"


def _effects_table(effects: Effects) -> pa.Table:
    rows = [
        (key, effect.base, effect.values is None, list((effect.values or {}).items()), number)
        for number, (key, effect) in enumerate(effects.by_key.items())
    ]
    columns: list[tuple[Any, ...]] = list(zip(*rows, strict=True)) or [()] * len(_EFFECTS)
    return pa.table(
        [pa.array(values, field.type) for values, field in zip(columns, _EFFECTS, strict=True)], schema=_EFFECTS
    )


def _typed(batches: Iterator[pa.RecordBatch], definition: TableDefinition) -> Iterator[pa.RecordBatch]:
    """The rows with the table's own columns, converted from texts.

    A value that does not fit its type is NULL; its text is kept.
    """
    for batch in batches:
        held = [dict(each or ()) for each in batch.column("_held").to_pylist()]
        arrays = [batch.column("_key"), batch.column("_held")]
        names = list(HIDDEN)
        for column in definition.columns:
            texts = pa.array([each.get(column.name) for each in held], pa.string())
            arrays.append(typed(texts, arrow_type(column.type_name), column.name, strict=False))
            names.append(column.name)
        yield pa.record_batch(arrays, names=names)


def _ddl(definition: TableDefinition) -> str:
    own = [f"`{column.name}` {spark_type(arrow_type(column.type_name))}" for column in definition.columns]
    return ", ".join(["_key string", "_held map<string,string>", *own])


def _forget(root: Path, name: str, version: int, before: int | None) -> None:
    """Remove all versions except this one and the one before it, which readers can still use."""
    kept = {version_folder(root, name, each) for each in (version, before) if each is not None}
    for folder in (root / "current" / name).glob("v=*"):
        if folder not in kept:
            shutil.rmtree(folder, ignore_errors=True)
