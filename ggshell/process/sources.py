"""The kinds of databases that an Extract can capture from, and how a parameter file names them.

Each is loaded where it is the source: an Extract starts sooner without the others.
"""

from __future__ import annotations

from collections.abc import Callable

from ggshell.databases.duckdb.session import is_duckdb
from ggshell.errors import ParameterError
from ggshell.params.files import ExtractParameters
from ggshell.process.lifecycle import GroupContext
from ggshell.process.login import conninfo, redo_login
from ggshell.process.source import SourceDatabase
from ggshell.types import TableName


def source_of(
    context: GroupContext, parameters: ExtractParameters, wanted: Callable[[TableName], bool]
) -> SourceDatabase:
    """A parameter file's source.  Raises NotFoundError for an unknown alias, ParameterError without a login."""
    folder = redo_login(context.home, parameters.login)
    if folder:
        from ggshell.process.redo_source import RedoSource

        return RedoSource(context, parameters, wanted, folder)
    login = conninfo(context.home, parameters.login)
    if is_duckdb(login):
        raise ParameterError("a DuckDB file has no log that could be captured", hint="it can be a Replicat's target")
    from ggshell.process.postgres_source import PostgresSource

    return PostgresSource(context, parameters, wanted, login)
