"""ADD, UPGRADE, DELETE, INFO and CLEANUP CHECKPOINTTABLE."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ggshell.cli.groups import View, view
from ggshell.cli.registry import command
from ggshell.cli.results import Listing, Message
from ggshell.cli.session import Session
from ggshell.errors import NotFoundError, StateError, UsageError
from ggshell.groups.checkpoint_rows import group_of_thread
from ggshell.home.checkpoint import GroupKind
from ggshell.home.identity import keys_of
from ggshell.pipeline.apply.checkpoint_table import group_key
from ggshell.types import TableName

if TYPE_CHECKING:
    from ggshell.connectors.checkpoint_tables import CheckpointTables


def default_table(session: Session) -> TableName | None:
    """The checkpoint table that GLOBALS names; None if it names none."""
    if not session.home.globals.exists():
        return None
    from ggshell.parameters.loading import load_globals

    text = load_globals(session.home.globals).checkpoint_table
    return parsed_table(text) if text else None


def parsed_table(text: str) -> TableName:
    """The name of a table in a statement. Raises UsageError if it is not valid."""
    try:
        return TableName.parse(text)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _table(session: Session, text: str) -> TableName:
    found = parsed_table(text) if text else default_table(session)
    if found is None:
        raise UsageError(
            "Missing checkpoint table specification.", hint="specify one, or add CHECKPOINTTABLE to GLOBALS"
        )
    return found


@command("ADD CHECKPOINTTABLE")
def add_checkpoint_table(session: Session, *, checkpoint_table: str = "") -> Message:
    """Create the checkpoint table in the database of the login."""
    name = _table(session, checkpoint_table)
    with session.logged_in().checkpoint_tables() as tables:
        tables.create(name)
    return Message((f"Successfully created checkpoint table {name}.",), apart=True)


@contextmanager
def _existing(session: Session) -> Iterator[CheckpointTables]:
    """The checkpoint tables of the login, for statements about one that exists: if it does not, its name is wrong."""
    with session.logged_in().checkpoint_tables() as tables:
        try:
            yield tables
        except NotFoundError as error:
            error.hint = "check its schema, spelling and case"
            raise


@command("UPGRADE CHECKPOINTTABLE")
def upgrade_checkpoint_table(session: Session, *, checkpoint_table: str = "") -> Message:
    """Add the columns that a checkpoint table of an older release lacks."""
    name = _table(session, checkpoint_table)
    with _existing(session) as tables:
        added = tables.upgrade(name)
    what = f"added {', '.join(added)}" if added else "no columns were missing"
    return Message((f"Successfully upgraded checkpoint table {name}: {what}.",), apart=True)


@command("DELETE CHECKPOINTTABLE")
def delete_checkpoint_table(session: Session, *, checkpoint_table: str = "", force: bool = False) -> Message:
    """Drop the checkpoint table, never while a Replicat runs with it.

    If groups of this home keep their positions in it, ``!`` is required; for groups of other homes, a confirmation.
    """
    name = _table(session, checkpoint_table)
    with _existing(session) as tables:
        rows = tables.groups(name)
        groups = {group for group, *_ in rows}
        _require_idle(name, tables.busy(name), "dropped")
        mine = [each for each in _users(session, name) if each.group in groups]
        _require_idle(name, [each.group for each in mine if each.runs], "dropped")
        if mine and not force:
            raise StateError(
                f"{', '.join(each.name for each in mine)} keeps its position in checkpoint table {name}.",
                hint=f"DELETE {mine[0].name} first, or use DELETE CHECKPOINTTABLE {name} ! to drop it anyway",
            )
        if rows and not force:
            session.confirm(f"{len(rows)} Replicats of other homes keep their positions in {name}. Drop it")
        tables.drop(name)
    return Message((f"Successfully deleted checkpoint table {name}.",), apart=True)


def _users(session: Session, table: TableName) -> list[View]:
    """The Replicats of this home that use the table."""
    found = [view(session.home, entry) for entry in session.home.groups() if entry.checkpoint is not None]
    return [each for each in found if _parse_or_none(each.checkpoint.options.checkpoint_table) == table]


def _parse_or_none(text: object) -> TableName | None:
    return parsed_table(str(text)) if text else None


def _require_idle(table: TableName, running: list[str], what: str) -> None:
    """Raise StateError if Replicats are running with rows in the table."""
    if running:
        raise StateError(
            f"REPLICAT {', '.join(running)} is running with its position in checkpoint table {table}: it cannot be {what}.",
            hint=f"STOP REPLICAT {running[0]} first",
        )


@command("INFO CHECKPOINTTABLE")
def info_checkpoint_table(session: Session, *, checkpoint_table: str = "") -> Listing:
    """Show when the table was created, and the groups that keep their positions in it."""
    name = _table(session, checkpoint_table)
    with _existing(session) as tables:
        rows, created = tables.groups(name), tables.created(name)
    lines = ["", f"Checkpoint table {name} created {created}." if created else f"Checkpoint table {name} exists."]
    lines += [f"  {group:<10}CSN {csn or '(no data)':<20}updated {updated}" for group, _, csn, updated in rows]
    return Listing(("group", "key", "csn", "updated"), rows, "\n".join(lines) + "\n")


@command("CLEANUP CHECKPOINTTABLE")
def cleanup_checkpoint_table(session: Session, *, checkpoint_table: str = "", replicat: str = "") -> Message:
    """Delete the rows of a deleted Replicat or, without a name, of all Replicats that this home no longer has."""
    name = _table(session, checkpoint_table)
    with _existing(session) as tables:
        if replicat:
            _require_gone(session, tables.busy(name), name, replicat.upper())
            count = tables.cleanup(name, replicat.upper())
            return Message((f"{count} rows of REPLICAT {replicat.upper()} removed from {name}.",), apart=True)
        kept = {entry.group for entry in session.home.groups() if entry.type is GroupKind.REPLICAT}
        keys = keys_of(session.home.root)
        rows = [(group, key) for group, key, *_ in tables.groups(name)]
        gone = [
            (group, key)
            for group, key in rows
            if key == group_key(group, keys) and not kept & {group, group_of_thread(group)}
        ]
        for group, key in gone:
            tables.cleanup(name, group, key)
    return Message(
        tuple(f"REPLICAT {group} removed from {name}." for group, _ in gone) or ("Nothing to remove.",), apart=True
    )


def _require_gone(session: Session, busy: list[str], table: TableName, group: str) -> None:
    """Raise StateError for a group that exists: without its row it would not know what is applied."""
    _require_idle(table, [each for each in busy if each == group], "cleaned up")
    for each in _users(session, table):
        if each.group == group:
            raise StateError(
                f"{each.name} keeps its position in checkpoint table {table}: its row is still required.",
                hint=f"use DELETE {each.name} to remove the group and its row",
            )
