"""The checkpoint tables of the database that is logged in, whatever kind it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from ggshell.shell.session import Session

if TYPE_CHECKING:
    from ggshell.apply.target import CheckpointRow
    from ggshell.types import TableName


class CheckpointSql(Protocol):
    """What ``databases/<kind>/checkpoint_sql`` does, over a connection of its kind."""

    def transaction(self, connection: Any) -> AbstractContextManager[object]: ...

    def create(self, connection: Any, table: TableName) -> None: ...

    def upgrade(self, connection: Any, table: TableName) -> list[str]: ...

    def drop(self, connection: Any, table: TableName) -> None: ...

    def require(self, connection: Any, table: TableName) -> None: ...

    def groups(self, connection: Any, table: TableName) -> list[tuple[str, int, str, str]]: ...

    def cleanup(self, connection: Any, table: TableName, group: str, key: int | None = None) -> int: ...

    def read(self, connection: Any, table: TableName, group: str, key: int) -> CheckpointRow | None: ...

    def replace(
        self, connection: Any, table: TableName, group: str, key: int, row: CheckpointRow, home: str
    ) -> None: ...


@contextmanager
def checkpoint_database(session: Session) -> Iterator[tuple[CheckpointSql, Any]]:
    """The statements and a connection for them; a DuckDB file is let go behind it, so that a Replicat can have it.

    Raises StateError without a login, ConflictError when another process has the file.
    """
    if session.login is not None and session.login.duckdb:
        from ggshell.databases.duckdb import checkpoint_sql as duckdb_sql
        from ggshell.databases.duckdb.session import connect

        connection = connect(session.login.duckdb)
        try:
            yield duckdb_sql, connection
        finally:
            connection.close()
        return
    from ggshell.databases.postgres import checkpoint_sql as postgres_sql

    yield postgres_sql, session.connection()
