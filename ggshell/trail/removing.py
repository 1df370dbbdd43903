"""Removes the files of a trail that is written again from a file on."""

from __future__ import annotations

from ggshell.files import locked
from ggshell.trail.durable import mark_path
from ggshell.trail.name import TrailName


def remove_from(name: TrailName, first: int) -> None:
    """Remove the files of a trail from a sequence number on, newest first, so that the others always form a valid trail.

    Raises ConflictError while another process writes the trail, OSError.
    """
    name.folder.mkdir(parents=True, exist_ok=True)
    with locked(name.folder / f".{name.prefix}.lock", f"trail {name}"):
        mark_path(name).unlink(missing_ok=True)
        for seqno in reversed([each for each in name.sequences() if each >= first]):
            name.file(seqno).unlink(missing_ok=True)
