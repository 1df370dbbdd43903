"""Which data files of a table are compacted together. Pure: the forms of a lake carry it out."""

from __future__ import annotations

from collections.abc import Iterable

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
