"""ADD, DELETE and INFO TRANDATA."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ggshell.clock import local_text
from ggshell.shell.listings import Listing
from ggshell.shell.registry import command
from ggshell.shell.session import Session
from ggshell.store.events import Severity
from ggshell.types import TableName

if TYPE_CHECKING:
    from ggshell.databases.postgres.trandata import Trandata

_HEADS = ("table", "enabled", "identity", "key")


def _tables(session: Session, pattern: str) -> tuple[Any, list[TableName]]:
    from ggshell.databases.postgres import describe

    connection = session.connection()
    return connection, describe.resolve(connection, pattern)


def _listing(found: list[Trandata], lines: list[str]) -> Listing:
    values = [(str(each.table), each.enabled, each.identity, ", ".join(each.key)) for each in found]
    return Listing(_HEADS, values, "\n".join(["", *lines, ""]))


@command("ADD TRANDATA")
def add_trandata(
    session: Session, *, table: str, allcols: bool = False, cols: tuple[str, ...] = (), keycols: tuple[str, ...] = ()
) -> Listing:
    """Have the changes of tables logged in full: replica identity and publication.

    PostgreSQL logs single extra columns only with whole rows, so COLS asks for these.
    """
    from ggshell.databases.postgres import trandata
    from ggshell.store.catalog import Catalog, TrandataNote

    connection, tables = _tables(session, table)
    database = session.login.database if session.login else ""
    found: list[Trandata] = []
    lines: list[str] = []
    try:
        for name in tables:
            state = trandata.add(connection, name, tuple(keycols), all_columns=allcols or bool(cols))
            found.append(state)
            lines += [_event(session, *line) for line in _added(state)]
    finally:
        if found:  # also those before a table that was refused
            notes = [TrandataNote(database, s.table.owner, s.table.name, s.identity, tuple(s.key)) for s in found]
            Catalog(session.home).save_trandata_notes(notes)
    return _listing(found, lines)


def _added(state: Trandata) -> list[tuple[str, str]]:
    lines = [("OGG-15132", f"Logging of supplemental data enabled for table {state.table}.")]
    if state.identity == "full":
        lines.append(("OGG-15134", f"Whole old rows are logged for table {state.table} (replica identity full)."))
    elif state.key:
        columns = ", ".join(state.key)
        lines.append(("OGG-15133", f"Key columns logged for table {state.table}: {columns}."))
    return lines


def _event(session: Session, code: str, text: str) -> str:
    session.event(Severity.INFO, code, text)
    return f"{local_text(session.clock.now())}  {Severity.INFO:<8}{code}  {text}"


@command("DELETE TRANDATA")
def delete_trandata(session: Session, *, table: str) -> Listing:
    """Stop logging the changes of tables."""
    from ggshell.databases.postgres import trandata
    from ggshell.store.catalog import Catalog

    connection, tables = _tables(session, table)
    database = session.login.database if session.login else ""
    found: list[Trandata] = []
    try:
        for name in tables:
            found.append(trandata.delete(connection, name))
    finally:
        if found:
            Catalog(session.home).forget_trandata(database, [(s.table.owner, s.table.name) for s in found])
    return _listing(found, [f"Logging of supplemental data disabled for table {each.table}." for each in found])


@command("INFO TRANDATA")
def info_trandata(session: Session, *, table: str) -> Listing:
    """What is logged of tables."""
    from ggshell.databases.postgres import trandata

    connection, tables = _tables(session, table)
    found = [trandata.info(connection, name) for name in tables]
    lines: list[str] = []
    for state in found:
        word = "enabled" if state.enabled else "disabled"
        lines.append(f"Logging of supplemental redo log data is {word} for table {state.table}.")
        if state.enabled:
            what = "all columns" if state.identity == "full" else ", ".join(state.key) or "none"
            lines += ["", f"Columns supplementally logged for table {state.table}: {what}."]
        lines.append("")
    return _listing(found, lines[:-1])
