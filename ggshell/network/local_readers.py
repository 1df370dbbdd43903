"""Which readers have already read trail files that a sender wants to write again, such as those of an interrupted load.

A reader continues at its position. In a file that was written again, it would skip the rows before this position, although
they are not the rows that it has read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ggshell.errors import ConflictError, TrailError
from ggshell.home.checkpoint import Checkpoint
from ggshell.home.home import GroupEntry, Home
from ggshell.home.process_file import ALIVE, state_of
from ggshell.network.trail_readers import readers_of
from ggshell.trail.name import TrailName
from ggshell.trail.opened import open_file
from ggshell.trail.reader import visible_end
from ggshell.types import TrailPosition

ALREADY_READ: Final = "GGS-00558"


def require_unread(home: Home, name: TrailName, first: int) -> None:
    """Check that no group has read rows in the files of a trail from ``first`` on, so that they may be written again.

    Raises ConflictError (GGS-00558), StoreError.
    """
    begin = _first_row(name, first)
    reader = next(_readers(home, name, begin), "") if begin is not None else ""
    if reader:
        raise ConflictError(
            f"{reader} has read rows of a load in {name.file(first)}, which this load would write again",
            code=ALREADY_READ,
            hint=f"STOP and DELETE it, or set it to EXTSEQNO {first}, EXTRBA 0 with ALTER; remove the rows of the load from"
            " the target tables; then START the load again",
        )


def reads(checkpoint: Checkpoint, home: Home, name: TrailName) -> bool:
    """Whether a group of a home reads a trail."""
    return bool(checkpoint.read.trail) and TrailName.parse(checkpoint.read.trail, home.root).real == name.real


def _readers(home: Home, name: TrailName, begin: TrailPosition) -> Iterator[str]:
    visible = _shows_rows(name, begin)
    for entry in home.groups():
        if entry.checkpoint is None or not reads(entry.checkpoint, home, name):
            continue
        if _has_read(home, entry, begin, visible=visible):
            yield f"{entry.type} {entry.group}"
    yield from (each.text for each in readers_of(name) if visible and each.seqno >= begin.seqno)


def _has_read(home: Home, entry: GroupEntry, begin: TrailPosition, *, visible: bool) -> bool:
    """Whether a group has read past a position; one that runs may have read more than its checkpoint says."""
    if visible and state_of(home.process(entry.group, entry.type))[0] in ALIVE:
        return True
    current = entry.checkpoint.read.current if entry.checkpoint is not None else None
    return isinstance(current, TrailPosition) and current > begin


def _first_row(name: TrailName, first: int) -> TrailPosition | None:
    """Return the place after the header of the first file from ``first`` on; None if there is none."""
    seqno = next((each for each in name.sequences() if each >= first), None)
    if seqno is None:
        return None
    try:
        file = open_file(name, seqno)
    except (TrailError, FileNotFoundError):  # it is removed, whatever it contains
        return TrailPosition(seqno, 0)
    try:
        return TrailPosition(seqno, file.first)
    finally:
        file.close()


def _shows_rows(name: TrailName, begin: TrailPosition) -> bool:
    """Whether readers can see rows after a position."""
    try:
        end = visible_end(name)
    except TrailError:
        return True
    return end is not None and end > begin
