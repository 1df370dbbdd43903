"""A login to a PostgreSQL database. Its connection stays open for the following statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from ggshell.clock import local_text
from ggshell.connectors.logged_in import Column, Credentials, LoggedIn
from ggshell.connectors.postgres.session import connect_limited, connection_info, current_position, database_facts
from ggshell.errors import NotFoundError
from ggshell.types import TableName, format_lsn

if TYPE_CHECKING:
    import psycopg

    from ggshell.connectors.checkpoint_tables import CheckpointTables
    from ggshell.connectors.connector import Connector
    from ggshell.connectors.heartbeat_tables import HeartbeatTables
    from ggshell.connectors.move_facts import MoveFacts
    from ggshell.connectors.move_side import MoveSide
    from ggshell.connectors.postgres.limited import LimitedConnection
    from ggshell.connectors.source import Unread
    from ggshell.connectors.table_logging import TableLogging
    from ggshell.pipeline.compare.table_side import QueryEngine
    from ggshell.pipeline.compare.tables import ComparedDatabase
    from ggshell.pipeline.heartbeat.names import HeartbeatNames
    from ggshell.pipeline.load.databases import LoadSnapshot, LoadTarget
    from ggshell.record.sequences import SequenceValue
    from ggshell.time_limit import TimeLimit


class PostgresLogin(LoggedIn):
    """A login to PostgreSQL."""

    def __init__(self, connector: Connector, conninfo: str, connection: LimitedConnection) -> None:
        database, user, version = database_facts(connection)
        super().__init__(connector, conninfo, user, database, version)
        self._connection = connection

    @property
    def connection(self) -> psycopg.Connection[Any]:
        """The connection, opened again if it was lost. Raises DatabaseError, ConnectionLostError."""
        if self._connection.closed:
            self._connection = connect_limited(self.conninfo, self._connection.limit)
        return self._connection

    def greeting(self, now: int) -> tuple[str, ...]:
        encoding = self.connection.info.parameter_status("server_encoding") or ""
        encoding = "UTF-8" if encoding == "UTF8" else encoding
        moment = local_text(now)
        return (
            f"{moment}  INFO    OGG-03036  Database character set identified as {encoding}.",
            "",
            f"{moment}  INFO    OGG-03037  Session character set identified as UTF-8.",
            *super().greeting(now),
        )

    def table_logging(self) -> TableLogging:
        from ggshell.connectors.postgres.table_logging import PostgresTableLogging

        return PostgresTableLogging(self.connection)

    def heartbeat_tables(self, names: HeartbeatNames) -> HeartbeatTables:
        from ggshell.connectors.postgres.heartbeat_tables import PostgresHeartbeatTables

        return PostgresHeartbeatTables(self.connection, names)

    def checkpoint_tables(self) -> AbstractContextManager[CheckpointTables]:
        from ggshell.connectors.postgres.checkpoint_sql import PostgresCheckpointTables

        return nullcontext(PostgresCheckpointTables(self.connection))

    def comparison(self, engine: Callable[[], QueryEngine]) -> ComparedDatabase:
        from ggshell.connectors.postgres.compare_side import PostgresComparison

        return PostgresComparison(self.connection)

    def load_snapshot(self, tables: Sequence[str], target: LoggedIn, pause: Callable[[float], bool]) -> LoadSnapshot:
        from ggshell.connectors.postgres.load_snapshot import PostgresLoadSnapshot

        version = target.connection.info.server_version if isinstance(target, PostgresLogin) else 0
        return PostgresLoadSnapshot(self.conninfo, tables, version, pause)

    def load_target(self, source: Any) -> LoadTarget:
        from ggshell.connectors.postgres.load_target import open_target

        return open_target(self.conninfo, source)

    def move_side(self) -> MoveSide:
        from ggshell.connectors.postgres.move_side import PostgresMoveSide

        return PostgresMoveSide(self.conninfo)

    def move_facts(self, schemas: Sequence[str]) -> MoveFacts:
        from ggshell.connectors.postgres.move_facts import PostgresMoveFacts

        return PostgresMoveFacts(self.connection, self.conninfo, schemas)

    def tables(self) -> list[TableName]:
        from ggshell.connectors.postgres.describe import matching

        return matching(self.connection, "*.*")

    def columns(self, table: TableName) -> list[Column]:
        from ggshell.connectors.postgres import describe

        relation = describe.table_id(self.connection, table)
        if relation is None:
            raise NotFoundError(f"table {table} does not exist")
        found = describe.columns(self.connection, relation)
        return [Column(each.name, each.type_name, each.nullable, each.in_key) for each in found]

    def open_transactions(self) -> list[Unread]:
        from ggshell.connectors.postgres.open_transactions import open_transactions

        return open_transactions(self.connection)

    def flush_sequences(self, pattern: str) -> list[SequenceValue]:
        from ggshell.connectors.postgres import sequence_values

        return sequence_values.flush(self.connection, pattern)

    def log_end(self) -> tuple[str, int]:
        position, now = current_position(self.connection)
        return format_lsn(position), now

    def close(self) -> None:
        self._connection.close()


def log_in(connector: Connector, given: Credentials, limit: TimeLimit | None) -> PostgresLogin:
    """Connect to a database. Raises DatabaseError, ConnectionLostError."""
    conninfo = connection_info(given.userid, given.password, given.source or None)
    return PostgresLogin(connector, conninfo, connect_limited(conninfo, limit))
