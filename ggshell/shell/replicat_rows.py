"""A stopped Replicat's rows of the checkpoint table, set by an administrator: ALTER REPLICAT, NOFILTERDUPTRANSACTIONS."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, Final

from ggshell.errors import ConflictError, StateError, UsageError
from ggshell.lake.commits import CommitLog
from ggshell.lake.target import lake_target
from ggshell.shell.checkpoint_tables import CheckpointSql, checkpoint_database
from ggshell.shell.groups import View
from ggshell.shell.session import Session
from ggshell.store.checkpoint import LAKE
from ggshell.store.threads import thread_name
from ggshell.types import TableName, TrailPosition

MOST_THREADS: Final = 25
"""Of a coordinated Replicat where MAXTHREADS does not say."""


def row_names(found: View) -> list[str]:
    """The groups that the checkpoint table knows a Replicat by: itself, and the threads of a coordinated one."""
    return [found.group, *_threads(found)]


def _threads(found: View) -> list[str]:
    options = found.checkpoint.options
    if options.get("kind") != "COORDINATED":
        return []
    return [thread_name(found.group, number) for number in range(int(options.get("maxthreads", MOST_THREADS)) + 1)]


def set_row(session: Session, found: View, place: TrailPosition) -> None:
    """Have a Replicat go on at a place, with nothing counted as applied; one that never ran has no row, its file decides.

    Raises StateError when the database of the login does not hold the row, ConflictError when it stands within a transaction.
    """
    if found.checkpoint.options.get("checkpoint_table") and found.checkpoint.started:
        _replace(session, found, place)


def require_movable(session: Session, found: View) -> None:
    """Raises StateError for a group whose lake holds batches: behind these it goes on, whatever anybody says."""
    options = found.checkpoint.options
    if options.get("kind") != LAKE:
        return
    target = lake_target(session.home, str(options["target"]))
    done = CommitLog(target, found.group).latest()
    if done is not None:
        raise StateError(
            f"{found.name} goes on behind the last batch of lake {target.folder}, at {done.position}.",
            hint="DELETE REPLICAT, and ADD it with another folder, to begin elsewhere",
        )


def forget_applied(session: Session, found: View) -> None:
    """Leave a Replicat where it stands, with nothing counted as applied.

    Raises UsageError for one that has no checkpoint table, or never ran; else as ``set_row``.
    """
    if not found.checkpoint.options.get("checkpoint_table"):
        raise UsageError(f"{found.name} has no checkpoint table, so nothing tells it what was applied.")
    if found.checkpoint.started:
        _replace(session, found, None)


def _replace(session: Session, found: View, place: TrailPosition | None) -> None:
    table = str(found.checkpoint.options["checkpoint_table"])
    name = TableName.parse(table)
    with ExitStack() as stack:
        try:
            tables, connection = stack.enter_context(checkpoint_database(session))
        except StateError as error:
            raise StateError(
                f"{found.name} keeps its place in {table}, and no database is logged in.",
                code="GGS-00204",
                hint="DBLOGIN to its target database, then say it again",
            ) from error
        tables.require(connection, name)
        stack.enter_context(tables.transaction(connection))
        _replace_rows(session, found, (tables, connection), name, place)


def _replace_rows(
    session: Session, found: View, database: tuple[CheckpointSql, Any], table: TableName, place: TrailPosition | None
) -> None:
    """Set the group's row, if it is there and stands between two transactions; its threads go where it goes."""
    from ggshell.apply.checkpoint_table import group_key
    from ggshell.apply.target import CheckpointRow

    (tables, connection), home = database, str(session.home.root)
    known = found.checkpoint.options.get("group_key")
    key = int(known) if known is not None else group_key(found.group, home)
    present = tables.read(connection, table, found.group, key)
    if present is None:
        raise StateError(
            f"{table} of {session.login} holds no row of {found.name}.",
            hint="DBLOGIN to its target database; if its row was removed there, DELETE and ADD the group again",
        )
    if present.split is not None:
        raise ConflictError(
            f"{found.name} stands within transaction {present.split.xid}, a part of which is applied.",
            hint=f"START {found.name} until it has applied it whole, or take MAXTRANSOPS out",
        )
    tables.replace(connection, table, found.group, key, CheckpointRow(place or present.position, None), home)
    for thread in _threads(found):
        tables.cleanup(connection, table, thread, group_key(thread, home))
