"""DuckDB as a kind of database: what the rest of ggshell may ask of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ggshell.connectors.connector import Connector
from ggshell.errors import ParameterError
from ggshell.home.checkpoint import ReplicatKind
from ggshell.types import TableName

if TYPE_CHECKING:
    from ggshell.connectors.duckdb.target import DuckTarget
    from ggshell.connectors.logged_in import Credentials, LoggedIn
    from ggshell.connectors.source import SourceDatabase, SourceProcess
    from ggshell.connectors.source_log import SourceLog
    from ggshell.connectors.target_setup import TargetSetup
    from ggshell.connectors.type_pairs import KindPairs
    from ggshell.parameters.process_parameters import ExtractParameters
    from ggshell.time_limit import TimeLimit


class DuckDbConnector(Connector):
    """DuckDB."""

    kind = "duckdb"
    title = "DuckDB"

    # What commands ask

    def log_in(self, given: Credentials, home: Path, limit: TimeLimit | None = None) -> LoggedIn:
        from ggshell.connectors.duckdb.logged_in import log_in

        return log_in(self, given, home)

    @property
    def log(self) -> SourceLog:
        raise self._no_source()

    def files(self, home: Path, login: str) -> tuple[Path, ...]:
        from ggshell.connectors.duckdb.session import file_of

        return (file_of(login, home),)

    def checkpoint_script(self, table: str) -> str:
        from ggshell.connectors.duckdb.checkpoint_sql import DuckCheckpointTables

        return DuckCheckpointTables.script(table)

    def type_tables(self) -> tuple[KindPairs, ...]:
        from ggshell.connectors.duckdb.types import FROM_MARIADB

        return (FROM_MARIADB,)

    # What processes ask

    vendor = "DuckDB"

    def connection_string(self, home: Path, userid: str, password: str, source: str) -> str:
        from ggshell.connectors.duckdb.session import file_of, is_duckdb, login_of

        return login_of(file_of(source if is_duckdb(source) else userid, home))

    def source(
        self, process: SourceProcess, parameters: ExtractParameters, wanted: Callable[[TableName], bool], login: str
    ) -> SourceDatabase:
        raise self._no_source()

    def _no_source(self) -> ParameterError:
        return ParameterError("a DuckDB file has no log to capture", hint="use it as the target of a Replicat")

    def target(self, setup: TargetSetup) -> DuckTarget:
        from ggshell.connectors.duckdb.target import GATHER_ROWS, DuckTarget

        if setup.kind is not ReplicatKind.CLASSIC:
            raise ParameterError(
                f"a {setup.kind.lower()} Replicat cannot apply to a DuckDB file: only one connection can write to it",
                hint="ADD REPLICAT without PARALLEL or COORDINATED: a classic Replicat applies in bulk",
            )
        if setup.options.suppress_triggers or setup.options.defer_constraints:
            raise ParameterError(
                "DBOPTIONS SUPPRESSTRIGGERS and DEFERREFCONST require a PostgreSQL target:"
                " a DuckDB file cannot defer foreign keys",
                hint="remove DBOPTIONS from the parameter file",
            )
        limit = setup.max_operations
        return DuckTarget(
            setup.login,
            setup.group,
            str(setup.home),
            setup.table,
            setup.begin,
            gather=GATHER_ROWS if limit is None else min(limit, GATHER_ROWS),
            clock=setup.clock,
            has_row=setup.has_row,
            key=setup.key,
        )


CONNECTOR = DuckDbConnector()
