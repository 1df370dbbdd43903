"""Decides which data files of a table a write rewrites, and in which it only marks rows as deleted.

A write adds a file with its new rows. The rows that they replace are marked in place (merge-on-read), so a change of one row
rewrites no large file. Two rules bound what readers pay for that:

1. A file of which more than a share of the rows is deleted is rewritten without them.
2. Small files are grouped by size into tiers, each ``MERGE_FACTOR`` times larger than the one below. A write that would be one
   file too many for its tier takes the files of that tier in, and then belongs to the next one. A row is so rewritten once a
   tier, and a table has at most ``MERGE_FACTOR - 1`` files a tier.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

TARGET_BYTES = 128 << 20
"""The size of the largest files that are written."""
MERGE_FACTOR = 6
SMALLEST_TIER = 64 << 10
"""Bytes below which all files are of the same, lowest tier."""


class DataFile(NamedTuple):
    """A data file. ``deleted``: rows of it that are marked as deleted; ``partition``: files of different ones never merge."""

    path: str
    rows: int
    size: int
    deleted: int = 0
    partition: str = ""

    @property
    def live(self) -> int:
        return self.rows - self.deleted


class WriteRules(NamedTuple):
    """``deleted_share``: the largest share of deleted rows of a file; ``large_bytes``: a write never merges larger files."""

    deleted_share: float = 0.2
    large_bytes: int = 32 << 20


def files_to_rewrite(
    files: Collection[DataFile],
    hits: Mapping[str, int],
    new_bytes: int,
    rules: WriteRules,
    partitions: Collection[str] = ("",),
) -> set[str]:
    """The files that a write rewrites.

    ``hits``: how many more rows of a file it deletes; ``new_bytes``: the size of its new rows, which are of ``partitions``.
    """
    found = {
        file.path
        for file in files
        if file.path in hits and file.deleted + hits[file.path] > rules.deleted_share * file.rows
    }
    for partition in partitions:
        found |= _merged(
            [file for file in files if file.partition == partition and file.size < rules.large_bytes],
            found,
            new_bytes // max(1, len(partitions)),
        )
    return found


def _merged(small: list[DataFile], taken: set[str], new_bytes: int) -> set[str]:
    """The small files of a partition that are merged with the new rows and with the files that are rewritten anyway."""
    by_tier: dict[int, list[DataFile]] = {}
    for file in small:
        if file.path not in taken:
            by_tier.setdefault(tier(file.size), []).append(file)
    size = new_bytes + sum(file.size * file.live // max(1, file.rows) for file in small if file.path in taken)
    found: set[str] = set()
    for number in sorted(by_tier):
        if number < tier(size):
            # A larger write goes past this tier; what is there waits for a write of its own size.
            continue
        if number > tier(size) or len(by_tier[number]) < MERGE_FACTOR - 1:
            break
        found |= {file.path for file in by_tier[number]}
        size += sum(file.size for file in by_tier[number])
    return found


def tier(size: int) -> int:
    """The tier of a file of this size."""
    number = 0
    while size >= SMALLEST_TIER:
        size //= MERGE_FACTOR
        number += 1
    return number
