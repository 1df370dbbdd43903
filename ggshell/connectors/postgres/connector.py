"""PostgreSQL as a kind of database: what the rest of ggshell may ask of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ggshell.connectors.connector import Connector
from ggshell.errors import ParameterError
from ggshell.types import TableName

if TYPE_CHECKING:
    from ggshell.connectors.logged_in import Credentials, LoggedIn
    from ggshell.connectors.postgres.appliers import ApplierTarget
    from ggshell.connectors.postgres.heartbeat_tables import PostgresHeartbeats
    from ggshell.connectors.postgres.row_queries import RowQueries
    from ggshell.connectors.postgres.source import PostgresSource
    from ggshell.connectors.postgres.table_copy import PostgresTables
    from ggshell.connectors.postgres.target import PostgresTarget
    from ggshell.connectors.source import SourceProcess
    from ggshell.connectors.source_log import SourceLog
    from ggshell.connectors.target_setup import TargetSetup
    from ggshell.connectors.type_pairs import KindPairs
    from ggshell.parameters.process_parameters import ExtractParameters
    from ggshell.pipeline.apply.applier import Turns
    from ggshell.pipeline.heartbeat.names import HeartbeatNames
    from ggshell.time_limit import TimeLimit


class PostgresConnector(Connector):
    """PostgreSQL."""

    kind = "postgres"
    title = "PostgreSQL"

    # What commands ask

    def log_in(self, given: Credentials, home: Path, limit: TimeLimit | None = None) -> LoggedIn:
        from ggshell.connectors.postgres.logged_in import log_in

        return log_in(self, given, limit)

    @property
    def log(self) -> SourceLog:
        from ggshell.connectors.postgres.log_commands import WriteAheadLog

        return WriteAheadLog()

    def address(self, conninfo: str) -> str:
        from ggshell.connectors.postgres.session import address

        return address(conninfo)

    def files(self, home: Path, login: str) -> tuple[Path, ...]:
        from ggshell.connectors.postgres.session import files_of

        return files_of(home, login)

    def checkpoint_script(self, table: str) -> str:
        from ggshell.connectors.postgres.checkpoint_sql import PostgresCheckpointTables

        return PostgresCheckpointTables.script(table)

    def type_tables(self) -> tuple[KindPairs, ...]:
        from ggshell.connectors.postgres.types import FROM_MARIADB

        return (FROM_MARIADB,)

    # What processes ask

    vendor = "PostgreSQL"
    load_program = "ggshell.connectors.postgres.load_job"

    def connection_string(self, home: Path, userid: str, password: str, source: str) -> str:
        from ggshell.connectors.postgres.session import connection_info

        if not userid:
            raise ParameterError("a login is required", hint="use USERIDALIAS, or SOURCEDB or TARGETDB with USERID")
        return connection_info(userid, password or None, source or None)

    def source(
        self, process: SourceProcess, parameters: ExtractParameters, wanted: Callable[[TableName], bool], login: str
    ) -> PostgresSource:
        from ggshell.connectors.postgres.source import PostgresSource

        return PostgresSource(process, parameters, wanted, login)

    def table_source(self, login: str) -> PostgresTables:
        from ggshell.connectors.postgres.table_copy import PostgresTables

        return PostgresTables(login)

    def target(self, setup: TargetSetup) -> PostgresTarget:
        from ggshell.connectors.postgres.appliers import open_target

        return open_target(setup)

    def applier_target(
        self, setup: TargetSetup, number: int, rows: Iterator[int], turns: Turns | None
    ) -> ApplierTarget:
        from ggshell.connectors.postgres.appliers import open_applier

        return open_applier(setup, number, rows, turns)

    def thread_target(self, setup: TargetSetup) -> PostgresTarget:
        from ggshell.connectors.postgres.appliers import open_thread

        return open_thread(setup)

    def queries(self, login: str, program: str, report: Callable[[str], None]) -> RowQueries:
        from ggshell.connectors.postgres.row_queries import RowQueries

        return RowQueries(login, program, report)

    def heartbeat_jobs(self, login: str, names: HeartbeatNames) -> PostgresHeartbeats:
        from ggshell.connectors.postgres.heartbeat_tables import PostgresHeartbeats

        return PostgresHeartbeats(login, names)


CONNECTOR = PostgresConnector()
