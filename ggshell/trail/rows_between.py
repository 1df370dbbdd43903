"""Whether a trail has rows between two positions: a restart of its writer and the begin of a file add only other records."""

from __future__ import annotations

from contextlib import closing

from ggshell.trail.inspection import InspectedFile
from ggshell.trail.name import TrailName
from ggshell.types import TrailPosition


def has_rows(name: TrailName, begin: TrailPosition, end: TrailPosition) -> bool:
    """Whether a row, a DDL statement or damage is between two positions; both are places where a record begins."""
    for seqno in range(begin.seqno, end.seqno + 1):
        try:
            with closing(InspectedFile(name.file(seqno))) as file:
                first = begin.rba if seqno == begin.seqno else 0
                if _has_rows(file, first, end.rba if seqno == end.seqno else file.size):
                    return True
        except FileNotFoundError:
            return True
    return False


def _has_rows(file: InspectedFile, place: int, end: int) -> bool:
    while place < end:
        seen = file.at(place)
        if seen is None or seen.fault or (seen.record is not None and seen.record.table_index is not None):
            return True
        place += seen.size
    return False
