"""Decide whether a trail position can ever be reached; the one rule for writers, readers, Logdump and queries.

A trail only grows, so a place up to which records were once read or written stays inside its file as long as the file is
the same. The durable mark records that place for the trail as a whole, a group's checkpoint for the group.

1. A place inside a file (RBA above 0) requires that the file exists and is at least that long.
2. The beginning of a file (RBA 0) requires the file, or a trail that has not got that far: the file may still be created.
3. A trail whose mark names a file that does not exist has lost that file and every place in it.
4. A file with an incomplete header does not count as existing if it is the newest and the mark is before it: it is still
   being written or copied. Otherwise it was truncated.

Only names, sizes, the mark and a header's length are read, so that INFO ALL can afford the check.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from ggshell.errors import TrailError
from ggshell.trail.durable import MarkReader
from ggshell.trail.header_tokens import is_incomplete
from ggshell.trail.name import TrailName
from ggshell.types import TrailPosition

MISSING = "OGG-01332"
NOT_REACHED = "GGS-00562"
RESTORE = "restore it from a backup; if there is none, see HELP RECOVERY"


class TrailExtent(NamedTuple):
    """The extent of a trail: its files, ascending, and the place of its durable mark (None without a mark)."""

    name: TrailName
    files: tuple[int, ...]
    mark: TrailPosition | None

    @classmethod
    def of(cls, name: TrailName) -> TrailExtent:
        """Return the current extent. Raises DiskError if the mark cannot be read."""
        reader = MarkReader(name)
        try:
            mark = reader.read()
        finally:
            reader.close()
        return cls(name, tuple(name.sequences()), mark.position if mark is not None else None)

    def size(self, seqno: int) -> int:
        """Return a file's length. Raises TrailError if it is not a file or no longer exists."""
        path = self.name.file(seqno)
        try:
            found = path.stat()
        except OSError as error:
            raise _unreadable(path, error.strerror) from error
        if not path.is_file():
            raise _unreadable(path, "it is not a file")
        return found.st_size

    def is_only_begun(self, seqno: int) -> bool:
        """Whether a file ends inside its header. Raises TrailError if it cannot be read."""
        path = self.name.file(seqno)
        try:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                return is_incomplete(file.read(4), size)
        except OSError as error:
            raise _unreadable(path, error.strerror) from error


def unreachable(name: TrailName, position: TrailPosition) -> TrailError | None:
    """Return why a trail position can never be reached, not even when more is written; None if it can."""
    try:
        return _judge(TrailExtent.of(name), position)
    except TrailError as error:
        return error


def may_be_begun(name: TrailName, seqno: int) -> bool:
    """Whether a file that ends inside its header may still be completed: nothing shows that it was ever longer.

    If the answer is False, read the file again: its writer may have completed it in the meantime.
    """
    extent = TrailExtent.of(name)
    return seqno >= max(extent.files, default=-1) and (extent.mark is None or extent.mark.seqno < seqno)


def require_reachable(name: TrailName, position: TrailPosition) -> None:
    """Raises TrailError for a position that can never be reached, where a reader would wait forever."""
    error = unreachable(name, position)
    if error is not None:
        raise error


def lost_end(name: TrailName) -> TrailError | None:
    """Return the error for a lost durable end (the mark's file or the end of it); None if intact or without a mark."""
    extent = TrailExtent.of(name)
    return unreachable(name, extent.mark) if extent.mark is not None else None


def _judge(extent: TrailExtent, position: TrailPosition) -> TrailError | None:
    if position.seqno in extent.files:
        size = extent.size(position.seqno)
        if position.rba > size:
            return _short(extent, position, size)
        return (
            None
            if position.rba or not extent.is_only_begun(position.seqno)
            else _cut_in_header(extent, position.seqno, size)
        )
    newest = max(extent.files, default=-1)
    lost = extent.mark is not None and extent.mark.seqno > newest
    if not lost and not position.rba and position.seqno > newest:
        return None
    if not extent.files and extent.mark is None:
        return _not_reached(extent, position, "has no file")
    return _missing(extent, position)


def _missing(extent: TrailExtent, position: TrailPosition) -> TrailError:
    """Return the error for a missing file: the position's file, or the trail's newest file if that one was lost."""
    newest = max(extent.files, default=-1)
    seqno = position.seqno
    if extent.mark is not None and seqno > extent.mark.seqno > newest:
        seqno = extent.mark.seqno
    path = extent.name.file(seqno)
    if seqno > newest and (extent.mark is None or extent.mark.seqno < seqno):
        return _not_reached(extent, position, f"ends with file {newest}")
    others = f"the trail has files {extent.files[0]} to {newest}" if extent.files else "the trail has no other file"
    known = ""
    if extent.mark is not None and extent.mark.seqno == seqno:
        known = f", and its durable mark is at {extent.mark}"
    return TrailError(
        f"trail file {path} (sequence number {seqno}) is missing: {others}{known}",
        code=MISSING,
        hint=f"{RESTORE}; or set the group to a later file with ALTER … EXTSEQNO, which skips the contents of this file",
    )


def _cut_in_header(extent: TrailExtent, seqno: int, size: int) -> TrailError | None:
    """Return the error for a file that was truncated inside its header; None if the file may still be completed."""
    mark, newest = extent.mark, extent.files[-1]
    if mark is not None and mark.seqno == seqno:
        return _short(extent, mark, size)
    if seqno == newest and (mark is None or mark.seqno < seqno):
        return None
    path = extent.name.file(seqno)
    following = newest if newest > seqno else mark.seqno if mark is not None else seqno
    return TrailError(
        f"trail file {path} ends within its header, although the trail continues to file {following}: it was truncated",
        where=f"{path}, RBA 0",
        hint=RESTORE,
    )


def _short(extent: TrailExtent, position: TrailPosition, size: int) -> TrailError:
    path = extent.name.file(position.seqno)
    if extent.mark is not None and extent.mark < position:
        return _not_reached(extent, position, f"ends at {TrailPosition(position.seqno, size)}")
    at_mark = f"its durable end, RBA {position.rba}" if extent.mark == position else f"RBA {position.rba}"
    later = "" if extent.mark == position else ", up to which it was read or written"
    return TrailError(
        f"trail file {path} is shorter than {at_mark}{later}: it was truncated, or replaced by an older copy",
        where=f"RBA {size}",
        hint=RESTORE,
    )


def _not_reached(extent: TrailExtent, position: TrailPosition, stands: str) -> TrailError:
    first = min(extent.files, default=0)
    return TrailError(
        f"trail {extent.name} {stands}, but the group is at {position}: the trail was re-created, or restored"
        " from an older copy",
        code=NOT_REACHED,
        hint=f"restore it; if it was re-created, run ALTER REPLICAT …, EXTSEQNO {first}, EXTRBA 0, FILTERDUPTRANSACTIONS (for"
        f" a pump, ALTER EXTRACT …, EXTSEQNO {first}, EXTRBA 0), which skips what was already applied",
    )


def _unreadable(path: object, why: str | None) -> TrailError:
    return TrailError(f"trail file {path} cannot be read: {why}", hint=RESTORE)
