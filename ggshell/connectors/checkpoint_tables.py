"""The checkpoint tables of a database, where Replicats keep their positions: the interface, and its form for SQL."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

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

    def read(self, table: TableName, group: str, key: int) -> CheckpointRow | None:
        """The row of a group; None if it has none."""
        ...

    def replace(self, table: TableName, group: str, key: int, row: CheckpointRow, home: str) -> None:
        """Replace a group's row, whatever its content."""
        ...


class _Statements(Protocol):
    """The functions of ``connectors/<kind>/checkpoint_sql``, which take a connection of that kind."""

    def transaction(self, connection: Any) -> AbstractContextManager[object]: ...

    def create(self, connection: Any, table: TableName) -> None: ...

    def created(self, connection: Any, table: TableName) -> str: ...

    def upgrade(self, connection: Any, table: TableName) -> list[str]: ...

    def drop(self, connection: Any, table: TableName) -> None: ...

    def require(self, connection: Any, table: TableName) -> None: ...

    def groups(self, connection: Any, table: TableName) -> list[tuple[str, int, str, str]]: ...

    def busy(self, connection: Any, table: TableName) -> list[str]: ...

    def cleanup(self, connection: Any, table: TableName, group: str, key: int | None = None) -> int: ...

    def read(self, connection: Any, table: TableName, group: str, key: int) -> CheckpointRow | None: ...

    def replace(
        self, connection: Any, table: TableName, group: str, key: int, row: CheckpointRow, home: str
    ) -> None: ...


class SqlCheckpointTables(NamedTuple):
    """The checkpoint tables of a database."""

    sql: _Statements
    connection: Any

    def transaction(self) -> AbstractContextManager[object]:
        return self.sql.transaction(self.connection)

    def create(self, table: TableName) -> None:
        self.sql.create(self.connection, table)

    def created(self, table: TableName) -> str:
        return self.sql.created(self.connection, table)

    def upgrade(self, table: TableName) -> list[str]:
        return self.sql.upgrade(self.connection, table)

    def drop(self, table: TableName) -> None:
        self.sql.drop(self.connection, table)

    def require(self, table: TableName) -> None:
        self.sql.require(self.connection, table)

    def groups(self, table: TableName) -> list[tuple[str, int, str, str]]:
        return self.sql.groups(self.connection, table)

    def busy(self, table: TableName) -> list[str]:
        return self.sql.busy(self.connection, table)

    def cleanup(self, table: TableName, group: str, key: int | None = None) -> int:
        return self.sql.cleanup(self.connection, table, group, key)

    def read(self, table: TableName, group: str, key: int) -> CheckpointRow | None:
        return self.sql.read(self.connection, table, group, key)

    def replace(self, table: TableName, group: str, key: int, row: CheckpointRow, home: str) -> None:
        self.sql.replace(self.connection, table, group, key, row, home)
