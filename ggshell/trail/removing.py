"""Removes trail files, each with its index; and all files of a trail from one on, which are written again."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from ggshell.files import locked
from ggshell.trail.durable import mark_path
from ggshell.trail.name import TrailName, index_path


def remove_file(file: Path) -> None:
    """Remove a trail file and its index; every removal of a trail file goes through here. Raises OSError."""
    file.unlink(missing_ok=True)
    index_path(file).unlink(missing_ok=True)


def trail_lock(name: TrailName) -> AbstractContextManager[None]:
    """Hold a trail's lock, as its writer does. Raises ConflictError while another process writes the trail, DiskError."""
    return locked(name.folder / f".{name.prefix}.lock", f"trail {name}")


def remove_from(name: TrailName, first: int) -> None:
    """Remove the files of a trail from a sequence number on, under its lock.

    Raises ConflictError while another process writes the trail, DiskError, OSError.
    """
    with trail_lock(name):
        remove_held(name, first)


def remove_held(name: TrailName, first: int) -> None:
    """Remove the files of a trail whose lock the caller holds, newest first, so that the others always form a valid trail.

    Raises OSError.
    """
    mark_path(name).unlink(missing_ok=True)
    for seqno in reversed([each for each in name.sequences() if each >= first]):
        remove_file(name.file(seqno))
