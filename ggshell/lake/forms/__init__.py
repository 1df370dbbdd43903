"""The forms that a lake's tables may have: what delivery asks of each, and the one place where a form is chosen.

A lake has one table of all changes, the log, and a table for each source table that has a key, as it stands now.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ggshell.lake.effects import Effects
from ggshell.lake.target import Form, LakeTarget
from ggshell.record.definition import TableDefinition
from ggshell.types import TableName, TrailPosition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Batch(NamedTuple):
    """A batch on its way into a lake: its number, and the place in the trail behind it."""

    number: int
    position: TrailPosition


class LakeTables(Protocol):
    """The tables of one lake, written by one group.

    A write is there whole or not at all.  After a crash a batch comes again, perhaps longer than before; so a form either
    writes over what a batch without commit has left (``reached`` is None), or keeps with each table, in the same write, the
    place in the trail that it has reached: then it is given only what lies behind.
    """

    def reached(self, name: TableName | None) -> TrailPosition | None:
        """The place behind all that a table (None: the log) holds of the trail, where the table itself knows.

        It is asked before each write, and looks at the table anew: others may have tidied its files.
        """

    def append(self, rows: DataFrame, batch: Batch) -> None:
        """Changes into the log."""

    def merge(
        self, spark: SparkSession, definition: TableDefinition, effects: Effects, batch: Batch, before: int | None
    ) -> None:
        """What a batch does to a table's rows; ``before``: the last batch that did something to them.  Raises ApplyError."""


def open_tables(target: LakeTarget, group: str, told: Callable[[str], None]) -> LakeTables:
    """The tables of a lake; ``told`` is given what an administrator should hear of.  Raises StoreError."""
    if target.form is Form.DELTA:
        from ggshell.lake.forms.delta import DeltaTables

        return DeltaTables(target.folder, group, told)
    if target.form is Form.ICEBERG:
        from ggshell.lake.forms.iceberg import IcebergTables

        return IcebergTables(target.folder, group, told)
    from ggshell.lake.forms.parquet import ParquetTables

    return ParquetTables(target.folder)
