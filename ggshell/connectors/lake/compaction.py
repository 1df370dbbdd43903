"""Which data files of a table are compacted together, and where their rows are afterwards. Pure: the forms carry it out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap

from ggshell.connectors.lake.file_plan import DataFile

WORTHWHILE = 4
"""A file is compacted with smaller ones if they have at least this part (1/4) of its size: a row is so rewritten a number of
times that grows with the logarithm of the table, not with every maintenance."""
DELETED_SHARE = 0.1


def bins(files: Iterable[DataFile], target_bytes: int) -> list[list[DataFile]]:
    """Groups of files, each to be rewritten as files of the target size, with the deleted rows left out."""
    found: list[list[DataFile]] = []
    by_partition: dict[str, list[DataFile]] = {}
    for file in files:
        by_partition.setdefault(file.partition, []).append(file)
    for each in by_partition.values():
        found += _bins(each, target_bytes)
    return found


def _bins(files: list[DataFile], target_bytes: int) -> list[list[DataFile]]:
    found = []
    gathered: list[DataFile] = []
    size = 0
    for file in sorted(files, key=_live_bytes):
        live = _live_bytes(file)
        if live >= target_bytes * 3 // 4 or (gathered and WORTHWHILE * size < live):
            if file.deleted > DELETED_SHARE * file.rows:
                found.append([file])
            elif live < target_bytes * 3 // 4:
                found += _worth(gathered)
                gathered, size = [file], live
            continue
        gathered.append(file)
        size += live
        if size >= target_bytes:
            found += _worth(gathered)
            gathered, size = [], 0
    return found + _worth(gathered)


def _worth(gathered: list[DataFile]) -> list[list[DataFile]]:
    if len(gathered) > 1 or any(file.deleted > DELETED_SHARE * file.rows for file in gathered):
        return [gathered]
    return []


def _live_bytes(file: DataFile) -> int:
    return file.size * file.live // max(1, file.rows)


class CompactedFile(NamedTuple):
    """A file that is compacted: the rows that were deleted when it was read, and the places of the others in the output."""

    path: str
    dead: BitMap
    first: int
    rows: int


class OutputFile(NamedTuple):
    """A new file: how many rows of the output it has, and, if they are sorted, which of them each row is."""

    path: str
    rows: int
    order: NDArray[np.int64] | None = None


def compacted_files(paths: Iterable[str], rows: Mapping[str, int], dead: Mapping[str, BitMap]) -> list[CompactedFile]:
    """Files in the order in which they are written to the output. ``rows``: of each file, with the deleted ones."""
    found, first = list[CompactedFile](), 0
    for path in paths:
        gone = dead.get(path, BitMap())
        found.append(CompactedFile(path, gone, first, rows[path] - len(gone)))
        first += found[-1].rows
    return found


def moved_marks(
    dead: Mapping[str, BitMap], sources: Sequence[CompactedFile], output: Sequence[OutputFile]
) -> dict[str, BitMap]:
    """The rows of new files to mark, because they were deleted in the old files, or moved out of them, after the reading.

    ``dead``: the deleted rows of those old files that are still there.
    """
    places = BitMap()
    for source in sources:
        if source.path in dead:
            late = dead[source.path] - source.dead
            places |= BitMap(source.first + position - source.dead.rank(position) for position in late)
        else:
            places |= BitMap(range(source.first, source.first + source.rows))
    marks: dict[str, BitMap] = {}
    start = 0
    for file in output:
        inside = places & BitMap(range(start, start + file.rows))
        if inside:
            marks[file.path] = _sorted(inside.shift(-start), file.order)
        start += file.rows
    return marks


def _sorted(positions: BitMap, order: NDArray[np.int64] | None) -> BitMap:
    """The positions of rows after the sorting."""
    if order is None:
        return positions
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return BitMap(place[np.asarray(positions.to_array(), np.int64)].astype(np.uint32))


def rows_in_file(group: Sequence[DataFile], target_bytes: int) -> int:
    """How many rows of these files make a file of the target size."""
    rows, size = sum(file.rows for file in group), sum(file.size for file in group)
    return max(1, target_bytes * rows // max(1, size))
