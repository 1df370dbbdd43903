"""MariaDB and MySQL as a kind of database: what the rest of ggshell may ask of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ggshell.connectors.connector import Connector

if TYPE_CHECKING:
    from ggshell.connectors.logged_in import Credentials, LoggedIn
    from ggshell.connectors.mysql.appliers import MysqlApplierTarget
    from ggshell.connectors.mysql.heartbeat_tables import MysqlHeartbeats
    from ggshell.connectors.mysql.source import MysqlSource
    from ggshell.connectors.mysql.table_load import MysqlTables
    from ggshell.connectors.mysql.target import MysqlTarget
    from ggshell.connectors.source import SourceProcess
    from ggshell.connectors.source_log import SourceLog
    from ggshell.connectors.target_setup import TargetSetup
    from ggshell.connectors.type_pairs import KindPairs
    from ggshell.parameters.process_parameters import ExtractParameters
    from ggshell.pipeline.apply.applier import Turns
    from ggshell.pipeline.heartbeat.names import HeartbeatNames
    from ggshell.time_limit import TimeLimit
    from ggshell.types import TableName


class MysqlConnector(Connector):
    """MariaDB and MySQL."""

    kind = "mysql"
    title = "MariaDB or MySQL"

    # What commands ask

    def log_in(self, given: Credentials, home: Path, limit: TimeLimit | None = None) -> LoggedIn:
        from ggshell.connectors.mysql.logged_in import log_in

        return log_in(self, given, limit)

    @property
    def log(self) -> SourceLog:
        from ggshell.connectors.mysql.log_commands import BinaryLog

        return BinaryLog()

    def address(self, conninfo: str) -> str:
        from ggshell.connectors.mysql.login import parse_login

        return parse_login(conninfo).shown

    def files(self, home: Path, login: str) -> tuple[Path, ...]:
        from ggshell.connectors.mysql.login import parse_login

        return parse_login(login).files(home)

    def checkpoint_script(self, table: str) -> str:
        from ggshell.connectors.mysql.checkpoint_sql import MysqlCheckpointTables

        return MysqlCheckpointTables.script(table)

    def type_tables(self) -> tuple[KindPairs, ...]:
        from ggshell.connectors.mysql.types import FROM_MARIADB, FROM_POSTGRESQL

        return (FROM_POSTGRESQL, FROM_MARIADB)

    # What processes ask

    vendor = "MySQL"

    def connection_string(self, home: Path, userid: str, password: str, source: str) -> str:
        from ggshell.connectors.mysql.login import parse_login

        return str(parse_login(userid, password or None, source))

    def source(
        self, process: SourceProcess, parameters: ExtractParameters, wanted: Callable[[TableName], bool], login: str
    ) -> MysqlSource:
        from ggshell.connectors.mysql.source import MysqlSource

        return MysqlSource(process, parameters, wanted, login)

    def table_source(self, login: str) -> MysqlTables:
        from ggshell.connectors.mysql.table_load import MysqlTables

        return MysqlTables(login)

    def target(self, setup: TargetSetup) -> MysqlTarget:
        from ggshell.connectors.mysql.appliers import open_target

        return open_target(setup)

    def applier_target(
        self, setup: TargetSetup, number: int, rows: Iterator[int], turns: Turns | None
    ) -> MysqlApplierTarget:
        from ggshell.connectors.mysql.appliers import MysqlApplierTarget

        return MysqlApplierTarget(setup, number, rows, turns)

    def thread_target(self, setup: TargetSetup) -> MysqlTarget:
        from ggshell.connectors.mysql.appliers import open_thread

        return open_thread(setup)

    def heartbeat_jobs(self, login: str, names: HeartbeatNames) -> MysqlHeartbeats:
        from ggshell.connectors.mysql.heartbeat_tables import MysqlHeartbeats

        return MysqlHeartbeats(login, names)


CONNECTOR = MysqlConnector()
