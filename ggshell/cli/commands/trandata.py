"""ADD, DELETE and INFO TRANDATA and SCHEMATRANDATA."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ggshell.cli.registry import command
from ggshell.cli.results import Listing
from ggshell.cli.session import Session
from ggshell.clock import local_text
from ggshell.errors import NO_TABLE, NotFoundError, UsageError
from ggshell.home.events import Severity
from ggshell.types import split_name

if TYPE_CHECKING:
    from ggshell.connectors.table_logging import LoggedSchema, LoggedTable, LoggingOutcome, TableLogging
    from ggshell.errors import GgsError

_HEADS = ("table", "enabled", "identity", "key")
_SCHEMA_HEADS = ("schema", "added", "enabled", "all_columns")


def _listing(found: list[LoggedTable], lines: list[str], errors: list[GgsError]) -> Listing:
    values = [(str(each.table), each.enabled, each.identity, ", ".join(each.key)) for each in found]
    return Listing(_HEADS, values, "\n".join(["", *lines, ""]), errors=tuple(errors))


@command("ADD TRANDATA")
def add_trandata(
    session: Session, *, table: str, allcols: bool = False, cols: tuple[str, ...] = (), keycols: tuple[str, ...] = ()
) -> Listing:
    """Enable full logging of the changes of tables.

    For PostgreSQL this sets the replica identity and adds tables to the publication. It cannot log single additional
    columns, so COLS logs whole rows.
    """
    logging = session.logged_in().table_logging()
    outcome = logging.add(table, tuple(keycols), all_columns=allcols or bool(cols))
    return _listing(outcome.tables, _reported(session, outcome), outcome.errors)


@command("DELETE TRANDATA")
def delete_trandata(session: Session, *, table: str) -> Listing:
    """Stop logging the changes of tables."""
    outcome = session.logged_in().table_logging().delete(table)
    lines = [f"Logging of supplemental log data is disabled for table {each.table}." for each in outcome.tables]
    return _listing(outcome.tables, lines, outcome.errors)


@command("INFO TRANDATA")
def info_trandata(session: Session, *, table: str) -> Listing:
    """Show what is logged of tables."""
    found = session.logged_in().table_logging().info(table)
    lines = [line for each in found for line in (*each.lines, "")]
    return _listing(found, lines[:-1], [])


def _schema_listing(found: list[LoggedSchema], lines: list[str], errors: list[GgsError]) -> Listing:
    values = [(each.schema, each.added, each.enabled, each.whole) for each in found]
    return Listing(_SCHEMA_HEADS, values, "\n".join(["", *lines, ""]), errors=tuple(errors))


def _named(logging: TableLogging, name: str) -> list[LoggedSchema]:
    return [each for each in logging.schemas(name) if each.schema == name]


def _schema_name(text: str) -> str:
    """Return the schema of a name, without its database. Raises UsageError if it is not a valid name."""
    try:
        return split_name(text)[-1]
    except ValueError as error:
        raise UsageError(str(error)) from error


@command("ADD SCHEMATRANDATA")
def add_schema_trandata(session: Session, *, schema: str, allcols: bool = False) -> Listing:
    """Capture every table of a schema, including tables created later."""
    logging = session.logged_in().table_logging()
    name = _schema_name(schema)
    if not _named(logging, name):
        raise NotFoundError(
            f"schema {schema} does not exist", code=NO_TABLE, hint="specify one schema, without wildcards"
        )
    outcome = logging.add_schema(name, all_columns=allcols)
    lines = [_event_line(session, "OGG-01788", f'SCHEMATRANDATA has been added on schema "{name}".')]
    if allcols:
        text = f'Schema level supplemental logging is enabled on schema "{name}" for all columns.'
        lines.append(_event_line(session, "OGG-01981", text))
    return _schema_listing(_named(logging, name), lines + _reported(session, outcome), outcome.errors)


@command("DELETE SCHEMATRANDATA")
def delete_schema_trandata(session: Session, *, schema: str) -> Listing:
    """Stop capturing the tables of a schema."""
    logging = session.logged_in().table_logging()
    name = _schema_name(schema)
    outcome = logging.delete_schema(name)
    text = f'Schema level supplemental logging is disabled on schema "{name}".'
    return _schema_listing(_named(logging, name), [_event_line(session, "OGG-01786", text)], outcome.errors)


@command("INFO SCHEMATRANDATA")
def info_schema_trandata(session: Session, *, schema: str) -> Listing:
    """Show which schemas capture new tables automatically."""
    found = session.logged_in().table_logging().schemas(_schema_name(schema))
    return _schema_listing(found, [each.line for each in found], [])


def _reported(session: Session, outcome: LoggingOutcome) -> list[str]:
    """Write the messages about the tables to the error log, and return their lines."""
    return [_event_line(session, *message) for each in outcome.tables for message in each.messages]


def _event_line(session: Session, code: str, text: str, severity: Severity = Severity.INFO) -> str:
    """Write an event to the error log and return its line."""
    session.event(severity, code, text)
    return f"{local_text(session.clock.now())}  {severity:<8}{code}  {text}"
