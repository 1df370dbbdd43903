"""How parallel readers share the files of a trail, and which tables those define; by looking for few records, not at all.

A split ends where a transaction begins, so every transaction lies in one split unless a file ends within it.  Its reader
need not step through what stands before: it looks for the definition of a table when it meets a row of it.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from ggshell.errors import NotFoundError
from ggshell.record.definition import TableDefinition
from ggshell.record.operation import IoType, TransInd
from ggshell.trail.columnar import sync_points
from ggshell.trail.context import Context
from ggshell.trail.look import LookedFile, Seen, definition_of
from ggshell.trail.markers import table_index
from ggshell.types import TableName

_OPENING = b'{"owner":'
"""What the data of a Metadata record begin with (trail/FORMAT.md)."""


@dataclass(frozen=True, slots=True)
class Split:
    """A range of a file: records that begin at ``first`` or later and before ``last`` (None: up to what is durable).

    ``between``: it begins between two transactions; where that is not known, its reader must look at what stands before.
    """

    file: str
    first: int = 0
    last: int | None = None
    between: bool = False

    def known(self, path: Path) -> Context | None:
        """What stands before the split in the file, which can be read at ``path``; None where the reader learns it."""
        return Context(DefinitionsBefore(path, self.first), None) if self.between else None


class DefinitionsBefore(dict[int, TableDefinition]):
    """The table definitions before a place of a file where a record begins, by table index, looked for when it is asked whether
    one is there, and no further: an index has one meaning in a file, and most stand at its begin."""

    def __init__(self, path: Path, place: int) -> None:
        super().__init__()
        self._more = metadata_records(path, 0, place)

    def __contains__(self, index: object) -> bool:
        while not super().__contains__(index):
            found = next(self._more, None)
            if found is None:
                return False
            self[found[1]] = found[2]
        return True


def cut_place(path: Path) -> int | None:
    """Of a file that is shorter than its trail's mark says: where its last whole transaction ends.  None for all others."""
    file = LookedFile(path)
    try:
        end = file.durable_end()
        return whole_end(file) if end is not None and end > file.size else None
    finally:
        file.close()


def whole_end(file: LookedFile) -> int:
    """Where the last whole transaction of a file ends, by its good records."""
    place = file.size
    while (seen := file.good_before(place)) is not None:
        if getattr(seen.record, "trans_ind", None) in (TransInd.END, TransInd.SOLE):
            return seen.rba + seen.size
        place = seen.rba
    return file.first


def splits_of(
    file: str,
    path: Path,
    size: int,
    *,
    first: int = 0,
    last: int | None = None,
    between: bool = False,
) -> list[Split]:
    """A file, or a range of it, in splits of about so many bytes; ``path`` is where it can be read.

    ``between``: the range begins between two transactions.
    """
    between = between and first > 0
    end = path.stat().st_size if last is None else last
    if end - first <= size * 3 // 2:
        return [Split(file, first, last, between)]
    begin, *cuts = sync_points(path, size, first)
    edges = [first, *(point for point in cuts if begin < point < end), last]
    return [Split(file, low, high, between or low != first) for low, high in pairwise(edges) if low is not None]


def metadata_records(path: Path, first: int = 0, last: int | None = None) -> Iterator[tuple[int, int, TableDefinition]]:
    """(RBA, table index, definition) of each readable Metadata record of a file, in order; or of a range of records."""
    if not path.stat().st_size:
        return
    looked = LookedFile(path)
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            end = len(content) if last is None else min(last, len(content))
            place = content.find(_OPENING, first, end)
            while place >= 0:
                seen = looked.good_before(place)
                definition = _definition(looked, seen, place)
                if seen is not None and seen.record is not None and definition is not None:
                    yield seen.rba, table_index(seen.record.audit_rba), definition
                place = content.find(_OPENING, place + 1, end)
    finally:
        looked.close()


def _definition(file: LookedFile, seen: Seen | None, place: int) -> TableDefinition | None:
    """The definition in a record that holds a place."""
    if seen is None or seen.record is None or seen.record.io_type != IoType.METADATA:
        return None
    return definition_of(file, seen) if seen.rba + seen.size > place else None


def find_definitions(files: Iterable[Path], table: str) -> list[TableDefinition]:
    """Every definition that files have of a table (``owner.table``), the newest last; names compare without case where
    nothing is spelled exactly so.  Raises NotFoundError when there is none, with the tables that there are."""
    every: dict[TableDefinition, None] = {}
    for path in files:
        for _, _, definition in metadata_records(path):
            every.pop(definition, None)
            every[definition] = None
    name = _parse(table)
    exact = [each for each in every if each.name == name]
    found = exact or [each for each in every if _folded(each.name) == _folded(name)]
    if not found:
        there = sorted({str(each.name) for each in every})
        raise NotFoundError(
            f"the trail has no table {table}", hint=f"it has {', '.join(there)}" if there else "it has no table at all"
        )
    return found


def _parse(text: str) -> TableName:
    try:
        return TableName.parse(text)
    except ValueError as error:
        raise NotFoundError(str(error)) from None


def _folded(name: TableName) -> tuple[str, str]:
    return name.owner.lower(), name.name.lower()


def merged_columns(definitions: Sequence[TableDefinition]) -> list[tuple[str, str]]:
    """(name, type text) of a table's columns: those of its newest definition, then those that only older ones have."""
    found: dict[str, str] = {}
    for definition in reversed(definitions):
        for column in definition.columns:
            found.setdefault(column.name, column.type_name)
    return list(found.items())
