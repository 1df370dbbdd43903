"""The checkpoint tables of a database, where Replicats keep their positions: what commands ask of them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ggshell.pipeline.apply.target import CheckpointRow
    from ggshell.types import TableName


class CheckpointTables(Protocol):
    """What commands ask of the checkpoint tables of one database. All methods raise DatabaseError."""

    def transaction(self) -> AbstractContextManager[object]:
        """A transaction: all changes within it are made, or none."""
        ...

    def create(self, table: TableName) -> None:
        """Create a checkpoint table. Raises ConflictError if it exists."""
        ...

    def created(self, table: TableName) -> str:
        """When a table was created; empty if that is unknown. Raises NotFoundError."""
        ...

    def upgrade(self, table: TableName) -> list[str]:
        """Add what a table of an older release lacks, and return the names of what was added."""
        ...

    def drop(self, table: TableName) -> None: ...

    def require(self, table: TableName) -> None:
        """Raise NotFoundError unless the table exists."""
        ...

    def groups(self, table: TableName) -> list[tuple[str, int, str, str]]:
        """The group, key, CSN and last update of each row."""
        ...

    def busy(self, table: TableName) -> list[str]:
        """The groups with rows in the table that a Replicat of any home applies now."""
        ...

    def cleanup(self, table: TableName, group: str, key: int | None = None) -> int:
        """Delete a group's rows (of one home if ``key`` is given), and return how many there were."""
        ...

    def forget(self, table: TableName, group: str, key: int) -> None:
        """Delete the rows of a deleted group, and what its sessions have left in the database."""
        ...

    def read(self, table: TableName, group: str, key: int) -> CheckpointRow | None:
        """The row of a group; None if it has none."""
        ...

    def replace(self, table: TableName, group: str, key: int, row: CheckpointRow, home: str) -> None:
        """Replace a group's row, regardless of its content."""
        ...
