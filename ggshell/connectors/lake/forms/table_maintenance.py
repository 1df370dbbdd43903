"""The interface between the maintenance of a lake and the forms of its tables."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Compacted(NamedTuple):
    """How many data files a compaction replaced, and by how many."""

    files: int
    into: int


class TableMaintenance(Protocol):
    """The maintenance of one table, as its form carries it out. Methods raise ApplyError."""

    def compact(self, target_bytes: int) -> Compacted:
        """Replace small files, and files with many deleted rows, by files of the target size."""

    def expire(self, before: int, most: int) -> int:
        """Forget versions that were replaced before a time (microseconds since 1970), and all but the newest ``most``."""

    def unreferenced(self) -> list[str]:
        """The files in the table's folder that none of its versions uses."""

    def remove(self, paths: list[str]) -> None:
        """Remove unreferenced files."""

    def data_files(self) -> int:
        """The number of data files of the current version."""


class Maintainable(NamedTuple):
    """A table by its name. ``versions_by_files``: earlier versions stay readable for as long as their files stay, so these
    stay for ``retain``; otherwise versions expire by themselves, and then their files."""

    name: str
    table: TableMaintenance
    versions_by_files: bool = False
