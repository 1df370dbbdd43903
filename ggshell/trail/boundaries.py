"""Find where a trail file can be divided: at the start of a transaction, or inside a long one. Little of the file is read.

A closed file has an index (``file_index``). Any other file is probed at a few places. The rows of a transaction all have its
commit time, so two rows with different times have the start of a transaction between them: a search that halves the distance
finds one without reading the rows in between.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ggshell.record.operation import IoType, TransInd
from ggshell.trail.decode import Records, good_records
from ggshell.trail.file_index import BETWEEN, FileIndex, find_index
from ggshell.trail.finding import undamaged_records
from ggshell.trail.inspection import InspectedFile, InspectedRecord

UNKNOWN: Final = -1
"""It is not known which transaction is open: the reader looks it up."""
_NEAR: Final = 256 << 10
"""Bytes after a place in which the start of a transaction is preferred to a place inside one."""
_BEGINS: Final = (TransInd.BEGIN, TransInd.SOLE)


class SplitPoint(NamedTuple):
    """A place where a reader may start, and what is open there: BETWEEN, CONTINUED, an RBA (``file_index``), or UNKNOWN."""

    place: int
    opened: int = UNKNOWN


def split_points(path: Path, size: int, first: int, end: int, *, inside: bool = True) -> list[SplitPoint]:
    """Return places after ``first`` and before ``end`` that divide a file into parts of about ``size`` bytes, in order.

    Transaction starts are preferred; without ``inside`` there are no others, as readers need that skip damaged transactions.
    Raises NotFoundError if the file does not exist.
    """
    file = InspectedFile(path)
    try:
        found: list[SplitPoint] = []
        index = find_index(path)
        place = max(first, file.first) + size
        while place < end:
            if index is not None and (index.point_after(place) if inside else index.boundary_after(place)) is None:
                break
            point = None if index is None else _indexed(file, index, place, size // 2 if inside else end)
            if index is None or point is None:
                index, point = None, _probed(file, place) if inside else _whole(file, place)
            if point is None or point.place >= end:
                break
            found.append(point)
            place = point.place + size
        return found
    finally:
        file.close()


def _whole(file: InspectedFile, place: int) -> SplitPoint | None:
    begin = _searched(file, place)
    return None if begin is None else SplitPoint(begin, BETWEEN)


def _indexed(file: InspectedFile, index: FileIndex, place: int, near: int) -> SplitPoint | None:
    """Return the transaction start within ``near`` bytes after a place by an index, else its first point after the place.

    None for an index that does not fit the file."""
    boundary = index.boundary_after(place)
    point = index.point_after(place)
    if boundary is not None and boundary < place + near:
        found = SplitPoint(boundary, BETWEEN)
    elif point is not None:
        found = SplitPoint(*point)
    else:
        return None
    seen = file.at(found.place)
    if seen is None or seen.fault or not seen.size or seen.record is None or not _may_start(seen):
        return None
    is_row = seen.record.table_index is not None
    return None if is_row and (seen.record.trans_ind in _BEGINS) is not (found.opened == BETWEEN) else found


def _may_start(seen: InspectedRecord) -> bool:
    """Whether a reader may start at a record: not at the second part of one that was divided."""
    return seen.record is not None and seen.record.io_type != IoType.RECORD_FRAGMENT


def _probed(file: InspectedFile, place: int) -> SplitPoint | None:
    """Return the start of a transaction that closely follows a place, else the first record; None at the end of the file."""
    seen = file.good_behind(place)
    while seen is not None and not _may_start(seen):
        seen = file.good_behind(seen.rba + seen.size)
    if seen is None:
        return None
    begin = _first_begin(file, seen.rba)
    return SplitPoint(seen.rba, UNKNOWN) if begin is None else SplitPoint(begin, BETWEEN)


def _first_begin(file: InspectedFile, place: int, size: int = _NEAR) -> int | None:
    """Return the first transaction start among the undamaged records from a record on."""
    records = good_records(file.read(size, place), file.path, place)
    begins = _begins(records)
    return place + int(records.start[begins[0]]) if len(begins) else None


def _begins(records: Records) -> NDArray[np.int64]:
    places = records.header["trans_ind"]
    return np.flatnonzero(records.is_row & ((places == TransInd.BEGIN) | (places == TransInd.SOLE)))


def boundary_after(path: Path, place: int) -> int | None:
    """Return the start of a transaction at or after a place of a file, near it; None if no transaction begins there.

    In a file without an index, transactions that follow directly and have the commit time of the one at the place may be
    passed over. Raises NotFoundError if the file does not exist.
    """
    file = InspectedFile(path)
    try:
        index = find_index(path)
        found = None if index is None else index.boundary_after(place)
        if found is not None and _begins_at(file, found):
            return found
        return _searched(file, max(place, file.first))
    finally:
        file.close()


def _begins_at(file: InspectedFile, place: int) -> bool:
    seen = file.at(place)
    while seen is not None and seen.record is not None and not seen.fault and seen.record.table_index is None:
        seen = file.at(seen.rba + seen.size)
    return seen is not None and not seen.fault and seen.record is not None and seen.record.trans_ind in _BEGINS


class _Row(NamedTuple):
    """A row: where it is, its commit time, and whether it begins a transaction."""

    place: int
    time: datetime | None
    begins: bool


def _row_after(file: InspectedFile, place: int) -> _Row | None:
    """Return the first undamaged row at or after a place."""
    seen = file.good_behind(place)
    while seen is not None and (seen.record is None or seen.record.table_index is None):
        seen = file.good_behind(seen.rba + seen.size)
    if seen is None or seen.record is None:
        return None
    return _Row(seen.rba, seen.record.io_time, seen.record.trans_ind in _BEGINS)


def _searched(file: InspectedFile, place: int) -> int | None:
    """Find a transaction start: double the step until another transaction is met, then halve the distance to it."""
    here = _row_after(file, place)
    if here is None or here.begins:
        return None if here is None else here.place
    near = _first_begin(file, here.place)
    if near is not None:
        return near
    low, high, step = here.place, file.size, _NEAR
    while low + step < high:
        row = _row_after(file, low + step)
        if row is None or row.begins or row.time != here.time:
            high = high if row is None else row.place
            break
        low, step = row.place, step * 2
    while high - low > _NEAR:
        row = _row_after(file, (low + high) // 2)
        if row is None or row.place >= high or row.begins or row.time != here.time:
            high = (low + high) // 2 if row is None or row.place >= high else row.place
        else:
            low = row.place
    return transaction_after(file, low)


def transaction_after(file: InspectedFile, place: int) -> int | None:
    """Return the start of the first undamaged transaction at or after a place, found by reading from there on."""
    for base, records in undamaged_records(file, max(place, file.first)):
        begins = _begins(records)
        if len(begins):
            return base + int(records.start[begins[0]])
    return None


def last_end(file: InspectedFile) -> int:
    """Return the end of the last whole transaction of a file, by its valid records; the first record without one."""
    high = file.size
    while high > file.first:
        low = max(file.first, high - (1 << 20))
        found = -1
        for base, records in undamaged_records(file, low):
            ends = np.flatnonzero(records.is_row & (records.header["trans_ind"] >= TransInd.END))
            ends = ends[records.start[ends] + base < high]
            if len(ends):
                found = base + int(records.start[ends[-1]] + records.total[ends[-1]])
            if base + records.end >= high:
                break
        if found >= 0:
            return found
        high = low
    return file.first
