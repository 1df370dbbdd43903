"""Saves and deletes groups: their checkpoint files, and the files by which the home knows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from ggshell.cli.groups import Kinds, View, is_wildcard, of_each, select
from ggshell.cli.results import Message
from ggshell.cli.session import Session
from ggshell.home import checkpoint as checkpoints
from ggshell.home.checkpoint import Checkpoint, GroupKind
from ggshell.home.identity import make_own, original_of, require_free
from ggshell.home.process_file import ALIVE, state_of
from ggshell.home.unfinished import take_over


def save(session: Session, found: Checkpoint) -> None:
    """Save a group to its checkpoint file.

    If this fails, nothing of a new group remains. Raises StoreError, DiskError; StateError as ``make_own`` does.
    """
    session.home.ensure()
    _take_over(session, found.group, found.type)
    path = session.home.checkpoint(found.group, found.type)
    new = not path.exists()
    if new:
        make_own(session.home.root, found.group)
    with ExitStack() as undo:
        if new:
            undo.callback(path.unlink, missing_ok=True)
        checkpoints.save(path, found)
        session.home.mark_known(found.group, found.type)
        undo.pop_all()


def remove(session: Session, found: View) -> None:
    """Delete a group: its files, and what clients of the service set for it."""
    from ggshell.home.documents import Documents
    from ggshell.parameters.process_profiles import GROUP_SETTINGS

    _take_over(session, found.group, found.type)
    session.home.known(found.group, found.type).unlink(missing_ok=True)
    path = session.home.checkpoint(found.group, found.type)
    path.unlink(missing_ok=True)
    checkpoints.previous(path).unlink(missing_ok=True)
    session.home.process(found.group, found.type).unlink(missing_ok=True)
    Documents(session.home, GROUP_SETTINGS).discard(f"{found.type} {found.group}")


def _take_over(session: Session, group: str, kind: GroupKind) -> None:
    """A change by a shell is not to be undone with a request to the service that was interrupted before it."""
    if not session.keeps_journal:
        take_over(session.home, group, kind)


def set_aside(session: Session, kind: GroupKind, group: str) -> list[str]:
    """Move a damaged checkpoint file aside if a group is added again and not running; returns lines that report this.

    Raises StateError, as ``make_own`` does, for a name that another home owns.
    """
    require_free(session.home.root, group)
    path = session.home.checkpoint(group, kind)
    if not path.exists() or state_of(session.home.process(group, kind))[0] in ALIVE:
        return []
    aside = checkpoints.set_aside(path)
    return [f"The damaged checkpoint file is set aside as {aside}."] if aside is not None else []


def owner_of(session: Session, group: str) -> str:
    """Return the folder of the home that owns a copied group's database objects; empty for a group of this home."""
    original = original_of(session.home.root, [group])
    return original.root if original is not None else ""


def delete_each(
    session: Session, kinds: Kinds, pattern: str, action: Callable[[View], Sequence[str]], *, what: str, force: bool
) -> Message:
    """Delete the groups that match a name. With a wildcard, a group that cannot be deleted does not stop the others."""
    found, errors = select(session, kinds, pattern)
    confirm_many(session, pattern, what, len(found), force=force)
    lines, failed = of_each(found, pattern, action)
    return Message(tuple(lines), (*errors, *failed))


def confirm_many(session: Session, pattern: str, what: str, count: int, *, force: bool) -> None:
    """Ask before a wildcard deletes several groups, unless forced."""
    if is_wildcard(pattern) and count > 1 and not force:
        session.confirm(f"Delete {count} groups of {what} {pattern}")
