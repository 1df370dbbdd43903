"""ADD, DELETE, INFO and CLEANUP CHECKPOINTTABLE."""

from __future__ import annotations

from ggshell.apply.checkpoint_table import group_key
from ggshell.errors import UsageError
from ggshell.shell.checkpoint_tables import checkpoint_database
from ggshell.shell.listings import Listing
from ggshell.shell.registry import command
from ggshell.shell.results import Message
from ggshell.shell.session import Session
from ggshell.store.checkpoint import GroupType
from ggshell.types import TableName


def default_table(session: Session) -> TableName | None:
    """The table that GLOBALS names, None when it names none."""
    if not session.home.globals.exists():
        return None
    from ggshell.params.files import load_globals

    text = load_globals(session.home.globals).checkpoint_table
    return _parse(text) if text else None


def _parse(text: str) -> TableName:
    try:
        return TableName.parse(text)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _table(session: Session, text: str) -> TableName:
    found = _parse(text) if text else default_table(session)
    if found is None:
        raise UsageError("Missing checkpoint table specification.", hint="name one, or CHECKPOINTTABLE in GLOBALS")
    return found


@command("ADD CHECKPOINTTABLE")
def add_checkpoint_table(session: Session, *, checkpoint_table: str = "") -> Message:
    """Make the table in the database of the login."""
    name = _table(session, checkpoint_table)
    with checkpoint_database(session) as (tables, connection):
        tables.create(connection, name)
    return Message((f"Successfully created checkpoint table {name}.",), apart=True)


@command("UPGRADE CHECKPOINTTABLE")
def upgrade_checkpoint_table(session: Session, *, checkpoint_table: str = "") -> Message:
    """Add what a table of an older release lacks."""
    name = _table(session, checkpoint_table)
    with checkpoint_database(session) as (tables, connection):
        added = tables.upgrade(connection, name)
    what = f"added {', '.join(added)}" if added else "it lacked nothing"
    return Message((f"Successfully upgraded checkpoint table {name}: {what}.",), apart=True)


@command("DELETE CHECKPOINTTABLE")
def delete_checkpoint_table(session: Session, *, checkpoint_table: str = "", force: bool = False) -> Message:
    """Drop the table; asks first when groups have rows in it, unless forced."""
    name = _table(session, checkpoint_table)
    with checkpoint_database(session) as (tables, connection):
        rows = tables.groups(connection, name)
        if rows and not force:
            session.confirm(f"{len(rows)} Replicats keep their positions in {name}. Drop it")
        tables.drop(connection, name)
    return Message((f"Successfully deleted checkpoint table {name}.",), apart=True)


@command("INFO CHECKPOINTTABLE")
def info_checkpoint_table(session: Session, *, checkpoint_table: str = "") -> Listing:
    """Whether the table is there, and the groups that keep their positions in it."""
    name = _table(session, checkpoint_table)
    with checkpoint_database(session) as (tables, connection):
        rows = tables.groups(connection, name)
    lines = ["", f"Checkpoint table {name} exists."]
    lines += [f"  {group:<10}CSN {csn or '(no data)':<20}updated {updated}" for group, _, csn, updated in rows]
    return Listing(("group", "key", "csn", "updated"), rows, "\n".join(lines) + "\n")


@command("CLEANUP CHECKPOINTTABLE")
def cleanup_checkpoint_table(session: Session, *, checkpoint_table: str = "", replicat: str = "") -> Message:
    """Remove the rows of a Replicat that is no more; without its name, of all that this home had and has no longer."""
    name = _table(session, checkpoint_table)
    with checkpoint_database(session) as (tables, connection):
        if replicat:
            count = tables.cleanup(connection, name, replicat.upper())
            return Message((f"{count} rows of REPLICAT {replicat.upper()} removed from {name}.",), apart=True)
        kept = {entry.group for entry in session.home.groups() if entry.type is GroupType.REPLICAT}
        home = str(session.home.root)
        rows = [(group, key) for group, key, *_ in tables.groups(connection, name)]
        gone = [(group, key) for group, key in rows if key == group_key(group, home) and group not in kept]
        for group, key in gone:
            tables.cleanup(connection, name, group, key)
    return Message(
        tuple(f"REPLICAT {group} removed from {name}." for group, _ in gone) or ("Nothing to remove.",), apart=True
    )
