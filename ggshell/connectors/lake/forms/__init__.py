"""The table forms of a lake: the interface that delivery uses, and the choice of the form.

A lake has one table of all changes, the log, and one table with the current state of each source table that has a key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Protocol

import pyarrow as pa

from ggshell.connectors.lake.log_files import LogFile, LogLayout
from ggshell.connectors.lake.table_keys import KeyColumn
from ggshell.connectors.lake.target import LakeTarget, TableForm
from ggshell.parameters.lake_tables import DEFAULT_LAYOUTS, LakeLayouts, PartitionField
from ggshell.record.definition import TableDefinition
from ggshell.types import TableName, TrailPosition

KEY = "_key"
"""The column that identifies a row of a current table: the values of the key as one text."""


class LakeBatch(NamedTuple):
    """A batch to be written to a lake: its number, and the trail position after it.

    ``versions``: the version of each current table before the batch (``owner.table`` -> batch number), as the last commit
    names it.
    """

    number: int
    position: TrailPosition
    versions: Mapping[str, int] = MappingProxyType({})


class HeldTable(NamedTuple):
    """An existing current table: its columns, and a function that reads its rows by key, or all rows (None).

    ``numbers``: the source's numbers of the columns (``Column.number``); ``key``: the columns whose values are in ``KEY``. An
    earlier version did not record the key (None). ``partition``: the fields of the partitions, which do not change; None if
    the next version of the table has those of its layout.
    """

    schema: pa.Schema
    rows: Callable[[pa.Array | None], pa.Table]
    numbers: Mapping[str, int] = MappingProxyType({})
    key: tuple[KeyColumn, ...] | None = None
    partition: tuple[PartitionField, ...] | None = None


class TableChange(NamedTuple):
    """What a batch changes in a current table. A form applies it in one atomic write.

    ``rows``: the complete new rows, with ``KEY``, in the columns that the table has after the change; ``replaced``: the keys
    whose earlier rows go, which include the keys of ``rows`` and may be absent from the table; ``cleared``: all earlier rows
    go. ``added``: columns that the table does not have yet; ``renamed``: (old, new) names; ``widened``: columns, with their
    new names, whose type becomes a wider one; ``changed``: the names of columns whose type changes otherwise (then the table
    is rewritten: ``cleared``). ``dropped``: columns that the source no longer has; they stay. ``stored_as``:
    (source's, lake's) names of columns whose type does not hold the earlier values. ``nulled``: columns with a value that
    their type cannot hold. ``filled``: the values of added columns in the earlier rows, which are all rewritten; other added
    columns are NULL there. ``reused``: (name, former name) of columns that have the name that another one had, with the
    values of the latter name or, if it is empty, of none; then the table is rewritten. ``rekeyed``: the table has another
    key now. ``numbers`` and ``key``: as in ``HeldTable``.
    """

    definition: TableDefinition
    rows: pa.Table
    replaced: pa.Array
    cleared: bool = False
    added: tuple[pa.Field, ...] = ()
    changed: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    widened: tuple[pa.Field, ...] = ()
    dropped: tuple[str, ...] = ()
    stored_as: tuple[tuple[str, str], ...] = ()
    nulled: tuple[str, ...] = ()
    filled: Mapping[str, pa.Scalar] = MappingProxyType({})
    reused: tuple[tuple[str, str], ...] = ()
    rekeyed: bool = False
    numbers: Mapping[str, int] = MappingProxyType({})
    key: tuple[KeyColumn, ...] = ()


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

    def held(self, name: TableName, batch: LakeBatch) -> HeldTable | None:
        """A current table as it is before a batch; None if it does not exist. Raises StoreError."""

    def fitting(self, kind: pa.DataType) -> pa.DataType:
        """The type that the form has for an Arrow type."""

    def widens(self, old: pa.DataType, new: pa.DataType) -> bool:
        """Whether a column can take a wider type without a rewrite of the table."""

    @property
    def renames(self) -> bool:
        """Whether a column can be renamed."""

    def log_layout(self, number: int) -> LogLayout:
        """Where tasks write the log of a batch. What an attempt without a commit has left is removed. Raises ApplyError."""

    def append_log(self, files: Sequence[LogFile], batch: LakeBatch) -> None:
        """Add the files that tasks have written to the log. Raises ApplyError."""

    def apply(self, change: TableChange, batch: LakeBatch) -> None:
        """Apply a batch's change to a current table; creates the table if it does not exist. Raises ApplyError."""


def open_tables(target: LakeTarget, group: str, cache: Path, layouts: LakeLayouts = DEFAULT_LAYOUTS) -> LakeTables:
    """The tables of a lake. ``cache``: a folder of this group for indexes that can be rebuilt. Raises StoreError."""
    if target.form is TableForm.DELTA:
        from ggshell.connectors.lake.forms.delta import DeltaTables

        return DeltaTables(target.location, group, cache, layouts)
    if target.form is TableForm.ICEBERG:
        from ggshell.connectors.lake.forms.iceberg import IcebergTables

        return IcebergTables(target, group, cache, layouts)
    from ggshell.connectors.lake.forms.parquet import ParquetTables

    return ParquetTables(target.location, layouts)
