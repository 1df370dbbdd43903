"""TRANDATA for commands: the tables that a pattern names, and the messages and texts about their logging."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.connectors.postgres import describe, schema_trandata, trandata
from ggshell.connectors.table_logging import LoggedSchema, LoggedTable, LoggingOutcome
from ggshell.home.events import Severity

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
        return _outcome(schema_trandata.add(self.connection, schema, whole=all_columns))

    def delete_schema(self, schema: str) -> LoggingOutcome:
        return _outcome(schema_trandata.delete(self.connection, schema))

    def schemas(self, pattern: str) -> list[LoggedSchema]:
        found = schema_trandata.info(self.connection, pattern)
        return [LoggedSchema(each.schema, each.added, each.enabled, each.whole, _schema_line(each)) for each in found]


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


def _schema_line(found: schema_trandata.SchemaTrandata) -> str:
    """The line of INFO SCHEMATRANDATA for a schema."""
    name = found.schema
    if found.enabled:
        columns = " for all columns" if found.whole else ""
        return f'Schema level supplemental logging is enabled on schema "{name}"{columns}.'
    if found.added:
        return (
            f'Schema level supplemental logging is disabled on schema "{name}": its event trigger is missing or disabled;'
            f" run ADD SCHEMATRANDATA {name} to repair it."
        )
    return f'Schema level supplemental logging is disabled on schema "{name}".'
