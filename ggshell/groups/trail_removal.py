"""Removes trail files that a user names, unlike PURGEOLDEXTRACTS, which chooses them by a rule."""

from __future__ import annotations

from pathlib import Path

from ggshell.errors import DiskError, NotFoundError, StateError
from ggshell.groups.purge import first_needed, needed_from
from ggshell.home.home import Home
from ggshell.network.trail_owner import owner_of, require_no_sender
from ggshell.trail.durable import mark_path
from ggshell.trail.name import TrailName
from ggshell.trail.removing import remove_file


def remove_files(home: Home, name: TrailName, first: int, last: int, *, force: bool = False) -> list[Path]:
    """Remove the files of a trail from one sequence number to another, and return their paths.

    ``force``: also files that a reader has not finished. Raises NotFoundError if there are none, StateError for a file that is
    still read or written, DiskError.
    """
    chosen = [seqno for seqno in name.sequences() if first <= seqno <= last]
    if not chosen:
        raise NotFoundError(f"trail {name} has no file with a sequence number from {first} to {last}")
    written = _written_from(home, name)
    if written is not None and chosen[-1] >= written:
        raise StateError(
            f"file {chosen[-1]} of trail {name} is still written",
            hint=f"keep the files from {written} on, or delete the group or the receiver path that writes the trail",
        )
    checkpoints = [entry.checkpoint for entry in home.groups() if entry.checkpoint is not None]
    real = TrailName(name.folder.resolve(), name.prefix)
    needed = first_needed(needed_from(checkpoints, home), real)
    if needed is not None and chosen[-1] >= needed and not force:
        raise StateError(
            f"file {chosen[-1]} of trail {name} is still needed by a group that reads it",
            hint=f"keep the files from {needed} on, or use force",
        )
    return _removed([name.file(seqno) for seqno in chosen])


def remove_trail(name: TrailName) -> list[Path]:
    """Remove all files of a trail that no group uses and no other home sends, and its durable mark.

    Raises ConflictError (GGS-00954) if another home sends it, StoreError, DiskError.
    """
    require_no_sender(name)
    return _removed([*map(name.file, name.sequences()), mark_path(name), name.unfinished()])


def _written_from(home: Home, name: TrailName) -> int | None:
    """Return the file that a group of the home, or a sender in another home, writes next; None if the trail has no writer."""
    places = [
        target.current.seqno
        for entry in home.groups()
        if entry.checkpoint is not None
        for target in entry.checkpoint.written_here
        if TrailName.parse(target.trail, home.root) == name
    ]
    if owner_of(name) is not None:
        places += name.sequences()[-1:]
    return min(places, default=None)


def _removed(paths: list[Path]) -> list[Path]:
    present = [path for path in paths if path.exists()]
    try:
        for path in present:
            remove_file(path)
    except OSError as error:
        raise DiskError(f"cannot remove {error.filename}: {error.strerror}") from error
    return present
