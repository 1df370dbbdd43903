"""What apply needs of a database, and what it says about tables."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ggshell.record import ChangeBatch, TableDefinition
from ggshell.types import Csn, TableName, TrailPosition


class TargetColumn(NamedTuple):
    """A column of a target table; ``writable`` is false for generated columns, ``comparable`` for types without equality."""

    name: str
    type_name: str
    writable: bool = True
    comparable: bool = True


class TargetTable(NamedTuple):
    """A target table as its catalog describes it; ``key`` holds names."""

    name: TableName
    columns: tuple[TargetColumn, ...]
    key: tuple[str, ...]


class TableMapping(NamedTuple):
    """How rows of a source table become rows of a target table.

    ``columns``: for each source column index the target column, or None where the target has no place for it.
    ``key``: source column indexes that find a row.
    """

    source: TableDefinition
    target: TargetTable
    columns: tuple[TargetColumn | None, ...]
    key: tuple[int, ...]


class CheckpointRow(NamedTuple):
    """A Replicat's row of the checkpoint table: where it stands, and the last transaction it has applied."""

    position: TrailPosition
    csn: Csn | None
    xid: str = ""
    commit_time: int = 0
    restart: int = 0


class Target(Protocol):
    """A database that rows are applied to.  One transaction at a time; every method may raise ConnectionLostError."""

    def describe(self, table: TableName) -> TargetTable | None:
        """A table, None when it does not exist."""
        ...

    def checkpoint(self) -> CheckpointRow | None:
        """The group's row of the checkpoint table, None when it has none yet."""
        ...

    def apply(self, batch: ChangeBatch, first: int, last: int, mappings: dict[int, TableMapping]) -> None:
        """Apply rows ``first`` to ``last - 1``; ``mappings`` by the batch's table numbers, rows of others are left out.

        Raises RowError; the transaction must then be rolled back.
        """
        ...

    def apply_one(self, batch: ChangeBatch, row: int, mapping: TableMapping) -> None:
        """Apply one row and wait for the answer.  Raises RowError."""
        ...

    def commit(self, row: CheckpointRow) -> None:
        """Write the checkpoint row and commit.  Raises RowError for what shows only now."""
        ...

    def rollback(self) -> None: ...

    def durable(self) -> None:
        """Return when everything that was committed would survive a crash of the target."""
        ...

    def close(self) -> None: ...
