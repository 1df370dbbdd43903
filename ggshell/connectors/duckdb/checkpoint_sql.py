"""The checkpoint table in a DuckDB file. It has the same columns and types as in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from ggshell.connectors.duckdb.session import execute, transaction
from ggshell.connectors.sql_checkpoint_tables import SqlCheckpointTables
from ggshell.types import TableName, quote, quote_table

_HERE: Final = "database_name = current_database() AND schema_name = ? AND table_name = ?"


class DuckCheckpointTables(SqlCheckpointTables):
    """The checkpoint tables of a file. Times are in UTC, as in PostgreSQL, and are those of the transaction."""

    mark = "?"
    now = "make_timestamp(epoch_us(now()))"
    clock = "strftime(localtimestamp, '%Y-%m-%d %H:%M:%S')"

    def ask(self, text: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return execute(self.connection, text, list(values))

    def change(self, text: str, values: Sequence[Any]) -> int:
        return int(self.ask(text, values)[0][0])

    def transaction(self) -> AbstractContextManager[object]:
        return transaction(self.connection)

    def quoted(self, table: TableName) -> str:
        return quote_table(table)

    def exists(self, table: TableName) -> bool:
        return bool(self.ask(f"SELECT 1 FROM duckdb_tables() WHERE {_HERE}", [*table]))

    def comment(self, table: TableName) -> str:
        return str(self.ask(f"SELECT comment FROM duckdb_tables() WHERE {_HERE}", [*table])[0][0] or "")

    def columns(self, table: TableName) -> set[str]:
        return {row[0].lower() for row in self.ask(f"SELECT column_name FROM duckdb_columns() WHERE {_HERE}", [*table])}

    def busy(self, table: TableName) -> list[str]:
        """No group: a Replicat that applies now would hold the file."""
        self.require(table)
        return []

    @staticmethod
    def seconds(moment: str) -> str:
        return f"strftime({moment}, '%Y-%m-%d %H:%M:%S')"

    def prepare_schema(self, schema: str) -> None:
        self.ask(f"CREATE SCHEMA IF NOT EXISTS {quote(schema)}")
