"""Changes a stopped Replicat's rows in the checkpoint table, for ALTER REPLICAT and NOFILTERDUPTRANSACTIONS."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from ggshell.cli.groups import View
from ggshell.cli.session import Session
from ggshell.connectors.registry import delivery_connector
from ggshell.errors import ConflictError, RowGoneError, StateError, UsageError
from ggshell.groups.checkpoint_rows import row_key, thread_name
from ggshell.home.checkpoint import Checkpoint, ReplicatKind
from ggshell.trail.name import TrailName
from ggshell.types import TableName, TrailPosition

if TYPE_CHECKING:
    from ggshell.connectors.checkpoint_tables import CheckpointTables
    from ggshell.connectors.folder_target import FolderTarget

MOST_THREADS: Final = 25
"""The maximum number of threads of a coordinated Replicat without MAXTHREADS."""


def row_names(found: View) -> list[str]:
    """The group names of a Replicat in the checkpoint table: its own, and those of a coordinated Replicat's threads."""
    return [found.group, *_threads(found)]


def _threads(found: View) -> list[str]:
    options = found.checkpoint.options
    if options.replicat_kind is not ReplicatKind.COORDINATED:
        return []
    return [thread_name(found.group, number) for number in range(options.maxthreads + 1)]


def set_row(session: Session, found: View, place: TrailPosition) -> None:
    """Set a Replicat's row to a position, with no transaction recorded as applied.

    A group that never ran has no row; its checkpoint file is decisive. Raises RowGoneError if the database of the login
    does not hold the row, ConflictError if the row's position is within a transaction.
    """
    if found.checkpoint.options.checkpoint_table and found.checkpoint.started:
        _replace(session, found, place)


def unapplied(checkpoint: Checkpoint) -> Checkpoint:
    """Return a checkpoint without the record of applied transactions."""
    return checkpoint._replace(latest_csn="", latest_xid="", options=checkpoint.options._replace(additional=None))


def folder_target(session: Session, text: str, group: str) -> FolderTarget:
    """The lake that TARGET of a group names. Raises ParameterError, NotFoundError."""
    return delivery_connector(ReplicatKind.LAKE).folder_target(session.home, text, group)


def require_movable(session: Session, found: View) -> None:
    """Raise StateError if the group's lake holds batches, since the group always continues after the last batch."""
    options = found.checkpoint.options
    if options.replicat_kind is not ReplicatKind.LAKE:
        return
    target = folder_target(session, options.target, found.group)
    done = target.delivered()
    if done is not None:
        raise StateError(
            f"{found.name} continues after the last batch of lake {target.location}, at {done.position}.",
            hint="DELETE REPLICAT, and ADD it with another folder, to begin elsewhere",
        )


def forget_applied(session: Session, found: View) -> None:
    """Clear the record of applied transactions of a Replicat and keep its position.

    Raises UsageError if it has no checkpoint table; otherwise the errors of ``set_row``.
    """
    if not found.checkpoint.options.checkpoint_table:
        raise UsageError(f"{found.name} has no checkpoint table, so it has no record of what was applied.")
    if found.checkpoint.started:
        _replace(session, found, None)


def _replace(session: Session, found: View, place: TrailPosition | None) -> None:
    table = found.checkpoint.options.checkpoint_table
    name = TableName.parse(table)
    with ExitStack() as stack:
        try:
            tables = stack.enter_context(session.logged_in().checkpoint_tables())
        except StateError as error:
            raise StateError(
                f"{found.name} keeps its position in {table}, and you are not logged in to a database.",
                code="GGS-00204",
                hint="DBLOGIN to its target database, then repeat the statement",
            ) from error
        tables.require(name)
        stack.enter_context(tables.transaction())
        _replace_rows(session, found, tables, name, place)


def _replace_rows(
    session: Session, found: View, tables: CheckpointTables, table: TableName, place: TrailPosition | None
) -> None:
    """Replace the group's row if it exists and is between two transactions, and delete the rows of its threads."""
    from ggshell.pipeline.apply.target import CheckpointRow

    home = str(session.home.root)
    key = row_key(session.home, found.checkpoint, found.group)
    present = tables.read(table, found.group, key)
    if present is None:
        raise _row_gone(session, found, table)
    if present.split is not None:
        raise ConflictError(
            f"{found.name} is positioned within transaction {present.split.xid}, which is partly applied.",
            hint=f"START {found.name} until the whole transaction is applied, or remove MAXTRANSOPS",
        )
    tables.replace(table, found.group, key, CheckpointRow(place or present.position, None), home)
    for thread in _threads(found):
        tables.cleanup(table, thread, row_key(session.home, found.checkpoint, thread))


def _row_gone(session: Session, found: View, table: TableName) -> RowGoneError:
    """The error that START reports if a row is missing.

    If the group were added again, it would apply everything a second time.
    """
    from ggshell.groups.checkpoint_rows import Uncertain
    from ggshell.pipeline.apply.checkpoint_table import row_gone, uncertain

    checkpoint = found.checkpoint
    error = row_gone(found.group, table)
    if checkpoint.options.replicat_kind is not ReplicatKind.CLASSIC:
        trail = TrailName.parse(checkpoint.read.trail, session.home.root)
        range_ = Uncertain.of(checkpoint.options) or Uncertain.found(error, checkpoint.latest_csn, trail)
        error = uncertain(found.group, error, *range_)
    hint = f"DBLOGIN to its target database if {session.login} is another one; otherwise {error.hint}"
    return RowGoneError(error.message, hint=hint, low=error.low)
