"""Removes the files of a trail that is written again from a file on."""

from __future__ import annotations

from contextlib import AbstractContextManager

from ggshell.files import locked
from ggshell.trail.durable import mark_path
from ggshell.trail.name import TrailName


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
        name.file(seqno).unlink(missing_ok=True)
