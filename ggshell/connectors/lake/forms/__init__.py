"""The table forms of a lake: the interface that delivery uses, and the choice of the form.

A lake has one table of all changes, the log, and one table with the current state of each source table that has a key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ggshell.connectors.lake.effects import Effects
from ggshell.connectors.lake.target import LakeTarget, TableForm
from ggshell.record.definition import TableDefinition
from ggshell.types import TableName, TrailPosition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class LakeBatch(NamedTuple):
    """A batch to be written to a lake: its number, and the trail position after it."""

    number: int
    position: TrailPosition


class LakeTables(Protocol):
    """The tables of one lake, written by one group.

    Every write is atomic. After a crash a batch is repeated, and can be longer than before. So a form either overwrites what
    a batch without a commit has left (``reached`` is None), or stores with each table, in the same write, the trail position
    that it has reached: it is then given only what follows that position.
    """

    def reached(self, name: TableName | None) -> TrailPosition | None:
        """The position after all that a table (None: the log) contains of the trail, if the table itself records it.

        It is called before each write and refreshes the table, because others may have compacted its files.
        """

    def append(self, rows: DataFrame, batch: LakeBatch) -> None:
        """Add changes to the log."""

    def merge(
        self, spark: SparkSession, definition: TableDefinition, effects: Effects, batch: LakeBatch, before: int | None
    ) -> None:
        """Apply a batch to a table's rows. Raises ApplyError.

        ``before``: the last batch that changed them.
        """


def open_tables(target: LakeTarget, group: str, told: Callable[[str], None]) -> LakeTables:
    """The tables of a lake. ``told`` receives messages for the administrator. Raises StoreError."""
    if target.form is TableForm.DELTA:
        from ggshell.connectors.lake.forms.delta import DeltaTables

        return DeltaTables(target.folder, group, told)
    if target.form is TableForm.ICEBERG:
        from ggshell.connectors.lake.forms.iceberg import IcebergTables

        return IcebergTables(target.folder, group, told)
    from ggshell.connectors.lake.forms.parquet import ParquetTables

    return ParquetTables(target.folder)
