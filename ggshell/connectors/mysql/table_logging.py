"""TRANDATA for MariaDB and MySQL: a check, because the server logs the whole rows of all tables or of none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.connectors.mysql.catalog import named_tables, primary_key, user_tables
from ggshell.connectors.mysql.requirements import (
    opaque_columns,
    require_captured,
    require_named_type,
    require_no_versions,
    unmet,
)
from ggshell.connectors.mysql.session import ServerVersion
from ggshell.connectors.table_logging import LoggedSchema, LoggedTable, LoggingOutcome
from ggshell.errors import GgsError, NotFoundError, StateError
from ggshell.home.events import Severity
from ggshell.types import TableName

if TYPE_CHECKING:
    from pymysql.connections import Connection


class MysqlTableLogging(NamedTuple):
    """The logging of the tables of a server."""

    connection: Connection[Any]
    server: ServerVersion

    def add(self, pattern: str, keycols: tuple[str, ...], *, all_columns: bool) -> LoggingOutcome:
        """Check the server and the tables; nothing is changed. Raises DatabaseError for a setting that is missing."""
        require_captured(self.connection, self.server)
        return self._checked(named_tables(self.connection, pattern))

    def delete(self, pattern: str) -> LoggingOutcome:
        raise self._always()

    def info(self, pattern: str) -> list[LoggedTable]:
        missing = unmet(self.connection, self.server)
        return [self._state(table, missing) for table in named_tables(self.connection, pattern)]

    def add_schema(self, schema: str, *, all_columns: bool) -> LoggingOutcome:
        require_captured(self.connection, self.server)
        return self._checked([table for table in user_tables(self.connection) if table.owner == schema])

    def delete_schema(self, schema: str) -> LoggingOutcome:
        raise self._always()

    def schemas(self, pattern: str) -> list[LoggedSchema]:
        missing = unmet(self.connection, self.server)
        tables = named_tables(self.connection, f"{pattern}.*")
        state = "disabled" if missing else "enabled"
        found = [
            LoggedSchema(
                name,
                not missing,
                not missing,
                not missing,
                "; ".join([f"Schema level supplemental logging is {state} for schema {name}", *missing]) + ".",
            )
            for name in dict.fromkeys(table.owner for table in tables)
        ]
        if not found:
            raise NotFoundError(f"no schema matches {pattern}", hint="check the name and its case")
        return found

    def _checked(self, tables: list[TableName]) -> LoggingOutcome:
        found: list[LoggedTable] = []
        errors: list[GgsError] = []
        for table in tables:
            try:
                for column, kind in opaque_columns(self.connection, table):
                    require_named_type(table, column, kind)
                require_no_versions(self.connection, {table}.__contains__)
            except GgsError as error:
                errors.append(error)
                continue
            found.append(self._state(table, []))
        return LoggingOutcome(found, errors)

    def _state(self, table: TableName, missing: list[str]) -> LoggedTable:
        key = primary_key(self.connection, table)
        opaque = [f"column {name} has the type {kind}" for name, kind in opaque_columns(self.connection, table)]
        problems = [*missing, *opaque]
        state = "disabled" if problems else "enabled"
        text = f"Logging of supplemental log data is {state} for table {table}"
        identified = f"Rows are identified by: {', '.join(key) or 'all columns'}."
        return LoggedTable(
            table,
            not problems,
            "FULL",
            key,
            (f"{text}{''.join(f'; {problem}' for problem in problems)}.", identified),
            (("OGG-15132", f"{text}: the server logs whole rows.", Severity.INFO),),
        )

    def _always(self) -> StateError:
        return StateError(
            f"{self.server.product} logs the rows of all tables: TRANDATA cannot be removed from a table",
            hint="leave the table out of the TABLE lines, or name it in TABLEEXCLUDE",
        )
