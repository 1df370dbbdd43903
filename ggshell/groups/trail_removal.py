"""Removes trail files that a user names, unlike PURGEOLDEXTRACTS, which chooses them by a rule."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ggshell.errors import DiskError, NotFoundError, StateError
from ggshell.groups.purge import first_needed, known_checkpoints, needed_from
from ggshell.home.checkpoint import Checkpoint
from ggshell.home.home import Home
from ggshell.network.local_readers import reads
from ggshell.network.local_writers import local_writer
from ggshell.network.trail_owner import owner_of, require_no_sender
from ggshell.network.trail_readers import readers_of
from ggshell.trail.durable import mark_path
from ggshell.trail.name import TrailName
from ggshell.trail.removing import remove_file


def remove_files(home: Home, name: TrailName, first: int, last: int, *, force: bool = False) -> list[Path]:
    """Remove the files of a trail from one sequence number to another, and return their paths.

    ``force``: also files that a reader has not finished. Raises NotFoundError if there are none, StateError for a file that is
    still read or written, StoreError if it is unknown who reads or writes the trail, DiskError.
    """
    chosen = [seqno for seqno in name.sequences() if first <= seqno <= last]
    if not chosen:
        raise NotFoundError(f"trail {name} has no file with a sequence number from {first} to {last}")
    checkpoints = known_checkpoints(home)
    written = _written_from(checkpoints, home, name)
    if written is not None and chosen[-1] >= written:
        raise StateError(
            f"file {chosen[-1]} of trail {name} is still written",
            hint=f"keep the files from {written} on, or delete the group or the receiver path that writes the trail",
        )
    needed = first_needed(needed_from(checkpoints, home), name.real)
    if needed is not None and chosen[-1] >= needed and not force:
        raise StateError(
            f"file {chosen[-1]} of trail {name} is still needed by a group that reads it",
            hint=f"keep the files from {needed} on, or use force",
        )
    return _removed([name.file(seqno) for seqno in chosen])


def remove_trail(home: Home, name: TrailName) -> list[Path]:
    """Remove all files of a trail that no group uses, here or in another home, and its durable mark.

    Raises StateError if a group reads or writes it, ConflictError (GGS-00954) if another home sends it, StoreError, DiskError.
    """
    require_no_sender(name)
    checkpoints = known_checkpoints(home)
    readers = [f"{each.type} {each.group}" for each in checkpoints if reads(each, home, name)]
    readers += [each.text for each in readers_of(name.real)]
    writer = local_writer(home, name.real)
    if readers or writer:
        users = ", ".join([*([writer] if writer else []), *readers])
        raise StateError(
            f"trail {name} is used by {users}", hint="delete these groups first; a RECVPATH in its own home"
        )
    return _removed([*map(name.file, name.sequences()), mark_path(name), name.unfinished()])


def _written_from(checkpoints: Iterable[Checkpoint], home: Home, name: TrailName) -> int | None:
    """Return the file that a group of the home, or a sender in another home, writes next; None if the trail has no writer."""
    places = [
        target.current.seqno
        for checkpoint in checkpoints
        for target in checkpoint.written_here
        if TrailName.parse(target.trail, home.root).real == name.real
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
