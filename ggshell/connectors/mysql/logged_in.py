"""A login to a MariaDB or MySQL server. Its connection stays open for the following statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ggshell.clock import local_text
from ggshell.connectors.logged_in import Column, Credentials, LoggedIn
from ggshell.connectors.mysql.catalog import user_tables
from ggshell.connectors.mysql.login import parse_login
from ggshell.connectors.mysql.session import ServerVersion, connect, execute, server_version
from ggshell.errors import NotFoundError
from ggshell.types import TableName

if TYPE_CHECKING:
    from pymysql.connections import Connection

    from ggshell.connectors.checkpoint_tables import CheckpointTables
    from ggshell.connectors.connector import Connector
    from ggshell.connectors.heartbeat_tables import HeartbeatTables
    from ggshell.connectors.table_logging import TableLogging
    from ggshell.pipeline.compare.table_side import QueryEngine
    from ggshell.pipeline.compare.tables import ComparedDatabase
    from ggshell.pipeline.heartbeat.names import HeartbeatNames
    from ggshell.time_limit import TimeLimit


class MysqlLogin(LoggedIn):
    """A login to MariaDB or MySQL."""

    def __init__(
        self, connector: Connector, conninfo: str, connection: Connection[Any], limit: TimeLimit | None
    ) -> None:
        self.server: ServerVersion = server_version(connection)
        address = parse_login(conninfo)
        super().__init__(connector, conninfo, address.user, address.database or address.shown, self.server.text)
        self._connection = connection
        self._limit = limit

    @property
    def connection(self) -> Connection[Any]:
        """The connection, opened again if it was lost. Raises DatabaseError, ConnectionLostError."""
        if not self._connection.open:
            self._connection = connect(self.conninfo, limit=self._limit)
        return self._connection

    def greeting(self, now: int) -> tuple[str, ...]:
        ((charset,),) = execute(self.connection, "SELECT @@GLOBAL.character_set_server")
        moment = local_text(now)
        return (
            f"{moment}  INFO    OGG-03036  Database character set identified as {charset}.",
            "",
            f"{moment}  INFO    OGG-03037  Session character set identified as UTF-8.",
            *super().greeting(now),
            f"{self.server.product} {self.server.shown}.",
        )

    @contextmanager
    def checkpoint_tables(self) -> Iterator[CheckpointTables]:
        from ggshell.connectors.mysql.checkpoint_sql import MysqlCheckpointTables

        yield MysqlCheckpointTables(self.connection)

    def table_logging(self) -> TableLogging:
        from ggshell.connectors.mysql.table_logging import MysqlTableLogging

        return MysqlTableLogging(self.connection, self.server)

    def heartbeat_tables(self, names: HeartbeatNames) -> HeartbeatTables:
        from ggshell.connectors.mysql.heartbeat_tables import MysqlHeartbeatTables, database_of

        return MysqlHeartbeatTables(self.connection, names, database_of(self.conninfo))

    def comparison(self, engine: Callable[[], QueryEngine]) -> ComparedDatabase:
        from ggshell.connectors.mysql.compare_side import MysqlComparison

        return MysqlComparison.of(self.connection, self.conninfo)

    def tables(self) -> list[TableName]:
        return user_tables(self.connection)

    def columns(self, table: TableName) -> list[Column]:
        rows = execute(
            self.connection,
            "SELECT COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, COLUMN_KEY FROM information_schema.COLUMNS"
            " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION",
            list(table),
        )
        if not rows:
            raise NotFoundError(f"table {table} does not exist")
        return [Column(name, kind, nullable == "YES", key == "PRI") for name, kind, nullable, key in rows]

    def log_end(self) -> tuple[str, int]:
        from ggshell.connectors.mysql.log_files import log_end

        end = log_end(self.connection, self.server)
        ((seconds,),) = execute(self.connection, "SELECT UNIX_TIMESTAMP(NOW(6))")
        return f"{end.file} {end.position}", int(seconds * 1_000_000)

    def close(self) -> None:
        if self._connection.open:
            self._connection.close()


def log_in(connector: Connector, given: Credentials, limit: TimeLimit | None) -> MysqlLogin:
    """Connect to a server. Raises DatabaseError, ConnectionLostError."""
    conninfo = str(parse_login(given.userid, given.password, given.source))
    return MysqlLogin(connector, conninfo, connect(conninfo, limit=limit), limit)
