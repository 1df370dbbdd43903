"""TRANDATA and SCHEMATRANDATA for commands: the tables and schemas that a pattern names, and the texts about their logging.

SCHEMATRANDATA captures every table of a schema, including tables created later, from their first row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.connectors.postgres import ddl_capture_sql, describe, trandata
from ggshell.connectors.postgres import schema_trandata_sql as sql
from ggshell.connectors.postgres.session import execute, transaction
from ggshell.connectors.postgres.slot import ensure_publication
from ggshell.connectors.table_logging import LoggedSchema, LoggedTable, LoggingOutcome
from ggshell.errors import NO_TABLE, DatabaseError, GgsError, NotFoundError
from ggshell.home.events import Severity
from ggshell.types import TableName, quote

if TYPE_CHECKING:
    import psycopg


class PostgresTableLogging(NamedTuple):
    """The logging of tables in a database."""

    connection: psycopg.Connection[Any]

    def add(self, pattern: str, keycols: tuple[str, ...], *, all_columns: bool) -> LoggingOutcome:
        tables = describe.resolve(self.connection, pattern)
        return _outcome(trandata.add_all(self.connection, tables, keycols, all_columns=all_columns))

    def delete(self, pattern: str) -> LoggingOutcome:
        return _outcome(trandata.delete_all(self.connection, describe.resolve(self.connection, pattern)))

    def info(self, pattern: str) -> list[LoggedTable]:
        tables = describe.resolve(self.connection, pattern)
        return [_logged(state) for state in trandata.info_all(self.connection, tables).values()]

    def add_schema(self, schema: str, *, all_columns: bool) -> LoggingOutcome:
        """Install the event trigger, then add TRANDATA to the existing tables. A refused table does not stop the others.

        Raises DatabaseError naming the missing privilege.
        """
        ensure_publication(self.connection)
        try:
            with transaction(self.connection):
                sql.install(self.connection)
                ddl_capture_sql.install(self.connection)
                execute(
                    self.connection,
                    f"INSERT INTO {sql.TABLE} VALUES (%s, %s)"
                    " ON CONFLICT (schema_name) DO UPDATE SET all_columns = excluded.all_columns",
                    [schema, all_columns],
                )
        except GgsError as error:
            raise _missing_right(error, schema) from error
        return _outcome(trandata.add_all(self.connection, self._tables(schema), all_columns=all_columns))

    def delete_schema(self, schema: str) -> LoggingOutcome:
        """Remove SCHEMATRANDATA, and the event trigger if it is unneeded. Raises NotFoundError, DatabaseError."""
        if schema not in sql.schemas(self.connection):
            raise NotFoundError(
                f"schema {schema} has no SCHEMATRANDATA",
                code=NO_TABLE,
                hint="use INFO SCHEMATRANDATA * to list the schemas",
            )
        try:
            execute(self.connection, f"DELETE FROM {sql.TABLE} WHERE schema_name = %s", [schema])
            if not sql.schemas(self.connection):
                ddl_capture_sql.remove(self.connection)
        except GgsError as error:
            raise _missing_right(error, schema) from error
        return _outcome(trandata.delete_all(self.connection, self._tables(schema)))

    def schemas(self, pattern: str) -> list[LoggedSchema]:
        """The schemas that a name or pattern matches; one is enabled if the event trigger exists and fires."""
        names = execute(
            self.connection,
            "SELECT nspname FROM pg_namespace WHERE nspname LIKE %s AND nspname NOT LIKE 'pg\\_%%'"
            " AND nspname NOT IN ('information_schema', %s) ORDER BY 1",
            [describe.like_pattern(pattern), sql.SCHEMA],
        )
        if not names:
            raise NotFoundError(f"schema {pattern} does not exist", code=NO_TABLE, hint="check spelling and case")
        added, fires = sql.schemas(self.connection), sql.fires(self.connection)
        return [_schema(name, added.get(name), fires=fires) for (name,) in names]

    def _tables(self, schema: str) -> list[TableName]:
        return describe.matching(self.connection, f"{quote(schema)}.*")


def _missing_right(error: GgsError, schema: str) -> GgsError:
    if getattr(error.__cause__, "sqlstate", "") != trandata.DENIED:
        return error
    return DatabaseError(
        f"SCHEMATRANDATA requires an event trigger, which only a superuser can create: {error.message}",
        code="GGS-00418",
        hint=f"log in as a superuser once, or run ADD TRANDATA {schema}.* now and after each CREATE TABLE (Extract reports"
        " the tables that are not captured)",
    )


def _outcome(found: trandata.TrandataOutcome) -> LoggingOutcome:
    return LoggingOutcome([_logged(state) for state in found.states], found.errors)


def _logged(state: trandata.Trandata) -> LoggedTable:
    lines, messages = tuple(_described(state)), tuple(added_messages(state))
    return LoggedTable(state.table, state.enabled, state.identity, tuple(state.key), lines, messages)


def _enabled(state: trandata.Trandata) -> str:
    word = "USING INDEX" if state.identity == "index" else state.identity.upper()
    return f"Logging of supplemental log data is enabled for table {state.table} with REPLICA IDENTITY set to {word}"


def added_messages(state: trandata.Trandata) -> list[tuple[str, str, Severity]]:
    """The messages of ADD TRANDATA for a table: code, text and severity."""
    lines = [("OGG-15132", f"{_enabled(state)}.", Severity.INFO)]
    if state.identity != "full" and state.key:
        lines.append(
            ("OGG-15133", f"Key columns logged for table {state.table}: {', '.join(state.key)}.", Severity.INFO)
        )
    if state.unnoted:
        names = ", ".join(map(str, state.unnoted))
        text = f"TRUNCATE of a single partition of {state.table} is not logged for {names}: the trigger could not be created"
        lines.append(("GGS-00420", f"{text} (CREATE on the database is required).", Severity.WARNING))
    if state.later:
        lines.append(("GGS-00421", state.warning, Severity.WARNING))
    if state.note:
        lines.append(("GGS-00422", state.note, Severity.INFO))
    if state.identity != state.before:
        change = f"was {state.before.upper()} before"
        text = f"REPLICA IDENTITY of table {state.table} {change}; DELETE TRANDATA resets it to DEFAULT."
        lines.append(("GGS-00417", text, Severity.INFO))
    return lines


def _described(state: trandata.Trandata) -> list[str]:
    """The lines of INFO TRANDATA for a table."""
    if not state.enabled:
        lines = [f"Logging of supplemental log data is disabled for table {state.table}."]
        if state.published:
            lines += [
                "",
                f"Table {state.table} is published, but {state.lacks}: run ADD TRANDATA {state.table} to repair it.",
            ]
        return lines
    what = "all columns" if state.identity == "full" else ", ".join(state.key)
    lines = [f"{_enabled(state)}.", "", f"Columns supplementally logged for table {state.table}: {what}."]
    for text in (state.warning, state.note):
        lines += ["", text] if text else []
    return lines


def _schema(name: str, whole: bool | None, *, fires: bool) -> LoggedSchema:
    """The state of a schema. ``whole``: all columns (ALLCOLS), None without SCHEMATRANDATA; ``fires``: the event trigger."""
    added = whole is not None
    return LoggedSchema(name, added, added and fires, bool(whole), _schema_line(name, whole, fires=fires))


def _schema_line(name: str, whole: bool | None, *, fires: bool) -> str:
    """The line of INFO SCHEMATRANDATA for a schema."""
    if whole is not None and fires:
        columns = " for all columns" if whole else ""
        return f'Schema level supplemental logging is enabled on schema "{name}"{columns}.'
    if whole is not None:
        return (
            f'Schema level supplemental logging is disabled on schema "{name}": its event trigger is missing or disabled;'
            f" run ADD SCHEMATRANDATA {name} to repair it."
        )
    return f'Schema level supplemental logging is disabled on schema "{name}".'
