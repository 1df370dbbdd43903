"""Oracle redo as a kind of database: what the rest of ggshell may ask of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ggshell.connectors.connector import Connector
from ggshell.errors import ParameterError
from ggshell.types import TableName

if TYPE_CHECKING:
    from ggshell.connectors.logged_in import Credentials, LoggedIn
    from ggshell.connectors.oracle_redo.source import RedoSource
    from ggshell.connectors.source import SourceProcess
    from ggshell.connectors.source_log import SourceLog
    from ggshell.connectors.table_source import TableSource
    from ggshell.parameters.process_parameters import ExtractParameters
    from ggshell.time_limit import TimeLimit


class OracleRedoConnector(Connector):
    """Oracle redo."""

    kind = "oracle_redo"
    title = "Oracle redo"

    # What commands ask

    def log_in(self, given: Credentials, home: Path, limit: TimeLimit | None = None) -> LoggedIn:
        from ggshell.connectors.oracle_redo.log_commands import log_in

        return log_in(self, given)

    @property
    def log(self) -> SourceLog:
        from ggshell.connectors.oracle_redo.log_commands import RedoLogCommands

        return RedoLogCommands()

    def files(self, home: Path, login: str) -> tuple[Path, ...]:
        from ggshell.connectors.oracle_redo.login import SCHEME

        return (home / login.strip()[len(SCHEME) :],)

    # What processes ask

    vendor = "Oracle"

    def connection_string(self, home: Path, userid: str, password: str, source: str) -> str:
        from ggshell.connectors.oracle_redo.login import is_redo

        return source if is_redo(source) else userid

    def source(
        self, process: SourceProcess, parameters: ExtractParameters, wanted: Callable[[TableName], bool], login: str
    ) -> RedoSource:
        from ggshell.connectors.oracle_redo.source import RedoSource

        return RedoSource(process, parameters, wanted, login)

    def table_source(self, login: str) -> TableSource:
        raise ParameterError("redo cannot be the source of an initial load: it is a log, not a database")


CONNECTOR = OracleRedoConnector()
