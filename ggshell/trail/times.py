"""When the next record of a trail was committed: what the lag of a stopped group is made of."""

from __future__ import annotations

import numpy as np

from ggshell.clock import JULIAN_EPOCH_MICROSECONDS
from ggshell.errors import TrailError
from ggshell.trail import decode
from ggshell.trail.name import TrailName
from ggshell.trail.opened import OpenedFile, open_file
from ggshell.trail.visible import VisibleEnd
from ggshell.types import TrailPosition

_CHUNK = 1 << 17
"""More than one record may take."""


def read_position_time(name: TrailName, position: TrailPosition) -> int | None:
    """The commit time of the first visible row at or behind a position (microseconds since 1970); None without one.

    Only the position's own record is looked at, whatever lies before it.  Raises TrailError for damage, or when the
    position's file is gone and others are there.
    """
    visible = VisibleEnd(name)
    try:
        end = visible.read()
    finally:
        visible.close()
    while end is not None and position < end:
        try:
            file = open_file(name, position.seqno)
        except FileNotFoundError:
            if not name.sequences():
                return None
            raise TrailError(
                f"trail file {name.file(position.seqno)} (sequence number {position.seqno}) is missing",
                code="OGG-01332",
                where=f"{name.file(position.seqno)}",
            ) from None
        try:
            limit = end.rba if end.seqno == file.seqno else file.size()
            time = _first_time(file, position.rba, limit)
        finally:
            file.close()
        if time is not None:
            return time
        position = TrailPosition(position.seqno + 1, 0)
    return None


def _first_time(file: OpenedFile, place: int, limit: int) -> int | None:
    place = max(place, file.first)
    while place < limit:
        chunk = file.read(min(_CHUNK, limit - place), place)
        records = decode.parse(chunk, file.path, place)
        rows = np.flatnonzero(records.is_row)
        if len(rows):
            return int(records.header["io_time"][rows[0]]) - JULIAN_EPOCH_MICROSECONDS
        if not records.end:
            raise decode.damaged(file.path, place, "a whole record before the end of what is durable")
        place += records.end
    return None
