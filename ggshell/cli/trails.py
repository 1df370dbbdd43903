"""The trails of a home as its groups record them, with their writers and readers."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

from ggshell.cli.groups import View, is_wildcard, view
from ggshell.cli.session import Session
from ggshell.errors import ConflictError, UsageError
from ggshell.home.checkpoint import WriteCheckpoint
from ggshell.home.home import Home
from ggshell.trail.name import TrailName
from ggshell.types import TrailPosition


def written(session: Session) -> Iterator[tuple[View, WriteCheckpoint]]:
    """Return every trail that a group writes, with the group."""
    for entry in session.home.groups():
        if entry.checkpoint is not None:
            for target in entry.checkpoint.write:
                yield view(session.home, entry), target


class TrailPlace(NamedTuple):
    """The position of a group in a trail that it reads or writes."""

    group: str
    trail: str
    position: TrailPosition


def trail_places(home: Home) -> Iterator[TrailPlace]:
    """Return the positions of all groups in trails of this machine, except positions before the first record.

    A group whose checkpoint cannot be read has none.
    """
    for entry in home.groups():
        if entry.checkpoint is None:
            continue
        read, name = entry.checkpoint.read, f"{entry.type} {entry.group}"
        if read.trail and isinstance(read.current, TrailPosition) and read.current.rba:
            yield TrailPlace(name, read.trail, read.current)
        for target in entry.checkpoint.written_here:
            if target.current.rba:
                yield TrailPlace(name, target.trail, target.current)


def same_trail(session: Session, pattern: str, trail: str) -> bool:
    """Whether a name or a wildcard matches a trail; a wildcard may also match the trail's two-letter name alone."""
    if is_wildcard(pattern):
        return any(
            fnmatchcase(text, wanted)
            for text, wanted in (
                (trail, pattern),
                (str(session.home.resolve(trail)), str(session.home.resolve(pattern))),
                (trail.rpartition("/")[2], pattern),
            )
        )
    try:
        return TrailName.parse(pattern, session.home.root).real == TrailName.parse(trail, session.home.root).real
    except UsageError:
        return False  # it is not the name of a trail


def require_unwritten(session: Session, trail: str, group: str = "", *, receiver: str = "") -> None:
    """Raise ConflictError if something else writes the trail, UsageError if the name is not a valid trail name.

    ``receiver``: the home that receives the trail, empty for a trail of this machine. Trails of one name in several homes are
    different trails, but a group (``group``) must be able to tell its own ones apart.
    """
    from ggshell.network.trail_owner import require_no_sender

    name = TrailName.parse(trail, session.home.root)
    for found, target in written(session):
        other = target.receiver != receiver and found.group != group
        if not other and same_trail(session, trail, target.trail):
            raise ConflictError(f"trail {trail} is already written by {found.name}.", hint="take another name")
    if not receiver:
        require_no_sender(name)
