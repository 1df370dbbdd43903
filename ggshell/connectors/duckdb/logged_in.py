"""A login to a DuckDB file. The file is open only while a statement needs it, because a Replicat may need it too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ggshell.connectors.duckdb.session import connect, execute, file_of, login_of
from ggshell.connectors.logged_in import Credentials, LoggedIn
from ggshell.errors import StateError
from ggshell.types import TableName

if TYPE_CHECKING:
    from ggshell.connectors.checkpoint_tables import CheckpointTables
    from ggshell.connectors.connector import Connector


class DuckDbLogin(LoggedIn):
    """A login to a DuckDB file."""

    def __init__(self, connector: Connector, file: Path, version: str) -> None:
        super().__init__(connector, login_of(file), "duckdb", file.stem, version)
        self._file = file

    def refused(self) -> StateError:
        return StateError(
            f"{self.database} is a DuckDB file; this command requires a database server",
            hint="DBLOGIN to the source; a DuckDB file supports LIST TABLES, CHECKPOINTTABLE commands,"
            " ALTER REPLICAT and DELETE REPLICAT",
        )

    def greeting(self, now: int) -> tuple[str, ...]:
        return (*super().greeting(now), f"DuckDB {self.version}, file {self._file}.")

    def tables(self) -> list[TableName]:
        connection = connect(self.conninfo)
        try:
            rows = execute(
                connection,
                "SELECT schema_name, table_name FROM duckdb_tables()"
                " WHERE NOT internal AND database_name = current_database() ORDER BY 1, 2",
            )
        finally:
            connection.close()
        return [TableName(owner, name) for owner, name in rows]

    @contextmanager
    def checkpoint_tables(self) -> Iterator[CheckpointTables]:
        from ggshell.connectors.duckdb.checkpoint_sql import DuckCheckpointTables

        connection = connect(self.conninfo)
        try:
            yield DuckCheckpointTables(connection)
        finally:
            connection.close()


def log_in(connector: Connector, given: Credentials, home: Path) -> DuckDbLogin:
    """Open the file once, and create it if it does not exist. Raises ConflictError, DatabaseError."""
    file = file_of(given.names_kind, home)
    connection = connect(login_of(file))
    try:
        ((version,),) = execute(connection, "SELECT version()")
    finally:
        connection.close()
    return DuckDbLogin(connector, file, str(version))
