"""Adds, changes and deletes groups: their checkpoint files, and the files by which the home knows them.

A group that exists is changed only while it is held: its process cannot start, and no other command can change it. Each change
is therefore made to the group as it is, and a process never runs with a definition that a command has replaced since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from ggshell.cli.groups import (
    Kinds,
    View,
    is_wildcard,
    of_each,
    require_new,
    require_stopped,
    select,
    unknown_group,
    view,
)
from ggshell.cli.results import Message
from ggshell.cli.session import Session
from ggshell.files import locked
from ggshell.home import checkpoint as checkpoints
from ggshell.home.checkpoint import Checkpoint, GroupKind
from ggshell.home.identity import make_own, original_of, require_free
from ggshell.home.process_file import ALIVE, ENDING_SECONDS, state_of
from ggshell.home.unfinished import take_over


class HeldGroup:
    """A stopped group that only its holder can change or start. ``found``: the group as it is now."""

    def __init__(self, session: Session, found: View) -> None:
        self._session = session
        self.found = found

    @property
    def checkpoint(self) -> Checkpoint:
        return self.found.checkpoint

    def save(self, changed: Checkpoint) -> None:
        """Replace the definition of the group. Raises StoreError, DiskError."""
        _save(self._session, changed)

    def remove(self) -> None:
        """Delete the group: its files, and what clients of the service set for it."""
        from ggshell.home.documents import Documents
        from ggshell.parameters.process_profiles import GROUP_SETTINGS

        home, group, kind = self._session.home, self.found.group, self.found.type
        _take_over(self._session, group, kind)
        home.known(group, kind).unlink(missing_ok=True)
        path = home.checkpoint(group, kind)
        path.unlink(missing_ok=True)
        checkpoints.previous(path).unlink(missing_ok=True)
        home.process(group, kind).unlink(missing_ok=True)
        Documents(home, GROUP_SETTINGS).discard(f"{kind} {group}")


@contextmanager
def held(session: Session, found: View, what: str) -> Iterator[HeldGroup]:
    """Hold a stopped group during the block, so that a process that starts waits and another command is refused.

    ``what``: what is done with the group, for the message. Raises StateError if it is running, NotFoundError if it was
    deleted in the meantime, and ConflictError if another command holds it.
    """
    require_stopped(found, what)
    session.home.ensure()
    with _lock(session, found.group, found.type):
        now = _as_it_is(session, found)
        require_stopped(now, what)
        yield HeldGroup(session, now)


def _as_it_is(session: Session, found: View) -> View:
    """Read a group again. Raises NotFoundError if it was deleted in the meantime, StoreError."""
    home = session.home
    if not (home.checkpoint(found.group, found.type).exists() or home.known(found.group, found.type).exists()):
        raise unknown_group(session, (found.type,), found.group)
    return view(home, home.group(found.group, found.type))


def add(session: Session, new: Checkpoint) -> None:
    """Add a group. If this fails, nothing of it remains.

    Raises ConflictError if it exists by now, StoreError, DiskError; StateError as ``make_own`` does.
    """
    session.home.ensure()
    path = session.home.checkpoint(new.group, new.type)
    with _lock(session, new.group, new.type), ExitStack() as undo:
        require_new(session.home, new.type, new.group)
        make_own(session.home.root, new.group)
        undo.callback(path.unlink, missing_ok=True)
        _save(session, new)
        undo.pop_all()


def restore(session: Session, earlier: Checkpoint) -> None:
    """Restore the definition of a stopped group, also if its file is damaged by now.

    Raises ConflictError if it is running or another command holds it, StoreError, DiskError.
    """
    with _lock(session, earlier.group, earlier.type):
        _save(session, earlier)


def _save(session: Session, changed: Checkpoint) -> None:
    _take_over(session, changed.group, changed.type)
    checkpoints.save(session.home.checkpoint(changed.group, changed.type), changed)
    session.home.mark_known(changed.group, changed.type)


@contextmanager
def _lock(session: Session, group: str, kind: GroupKind) -> Iterator[None]:
    """Hold the lock that a running process of the group holds. A process that has just ended may need a moment to exit."""
    with locked(session.home.lock(group, kind), f"{kind} {group}", patience=ENDING_SECONDS):
        yield


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
    session: Session,
    kinds: Kinds,
    pattern: str,
    action: Callable[[HeldGroup], Sequence[str]],
    *,
    what: str,
    force: bool,
) -> Message:
    """Delete the groups that match a name. With a wildcard, a group that cannot be deleted does not stop the others."""

    def delete(found: View) -> Sequence[str]:
        with held(session, found, "deleted") as group:
            return action(group)

    found, errors = select(session, kinds, pattern)
    confirm_many(session, pattern, what, len(found), force=force)
    lines, failed = of_each(found, pattern, delete)
    return Message(tuple(lines), (*errors, *failed))


def confirm_many(session: Session, pattern: str, what: str, count: int, *, force: bool) -> None:
    """Ask before a wildcard deletes several groups, unless forced."""
    if is_wildcard(pattern) and count > 1 and not force:
        session.confirm(f"Delete {count} groups of {what} {pattern}")
