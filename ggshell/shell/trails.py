"""Trails as the groups of a home know them: who writes which."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from ggshell.errors import ConflictError
from ggshell.shell.groups import View, is_wildcard, view
from ggshell.shell.session import Session
from ggshell.store.checkpoint import WriteCheckpoint


def written(session: Session) -> Iterator[tuple[View, WriteCheckpoint]]:
    """Every trail that a group writes, with the group."""
    for entry in session.home.groups():
        if entry.checkpoint is not None:
            for target in entry.checkpoint.write:
                yield view(session.home, entry), target


def same_trail(session: Session, pattern: str, trail: str) -> bool:
    """Whether a name, or a wildcard over names or bare two-letter names, means a trail."""
    if is_wildcard(pattern):
        return any(
            fnmatchcase(text, wanted)
            for text, wanted in (
                (trail, pattern),
                (str(session.home.resolve(trail)), str(session.home.resolve(pattern))),
                (trail.rpartition("/")[2], pattern),
            )
        )
    return session.home.resolve(pattern).resolve() == session.home.resolve(trail).resolve()


def require_unwritten(session: Session, trail: str) -> None:
    """Raises ConflictError when a group writes the trail, UsageError when it is no trail's name."""
    from ggshell.trail.name import TrailName

    TrailName.parse(trail, session.home.root)
    for found, target in written(session):
        if same_trail(session, trail, target.trail):
            raise ConflictError(f"trail {trail} is written by {found.name} already.", hint="take another name")
