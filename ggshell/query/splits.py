"""Divides the files of a trail between parallel readers, and finds the tables that the files define.

A split begins at the start of a transaction, or inside a long one. Its reader does not step through the records before it: it
looks up the definition of a table when it reads the table's first row, and the facts of the open transaction in that one's
first record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ggshell.errors import NotFoundError
from ggshell.record.definition import TableDefinition
from ggshell.record.operation import IoType
from ggshell.store_paths import find_bytes
from ggshell.trail.boundaries import UNKNOWN, last_end, split_points
from ggshell.trail.context import Context, begun_at, open_transaction
from ggshell.trail.file_index import BETWEEN, CONTINUED, FileIndex, find_index, keep_index, make_index
from ggshell.trail.inspection import InspectedFile, InspectedRecord, definition_of
from ggshell.trail.markers import table_index
from ggshell.trail.name import TrailName
from ggshell.trail.opened import open_file
from ggshell.trail.reach import TrailExtent
from ggshell.types import TableName

_OPENING = b'{"owner":'
"""The first bytes of the data of a Metadata record (trail/FORMAT.md)."""


@dataclass(frozen=True, slots=True)
class TrailSplit:
    """A range of a file: records that begin at ``first`` or later and before ``last`` (None: up to the durable end).

    ``opened``: what is open at its beginning (``trail.file_index``), or UNKNOWN: its reader must look at the records before it.
    """

    file: str
    first: int = 0
    last: int | None = None
    opened: int = UNKNOWN

    def known(self, path: Path) -> Context | None:
        """The context before the split, for the file at ``path``. None if the reader has to find it."""
        if not self.first:
            return None
        if self.opened == BETWEEN:
            return Context(DefinitionsBefore(path, self.first), None)
        return _context_inside(path, self.first, self.opened)


def _context_inside(path: Path, first: int, opened: int) -> Context | None:
    """The context before a record inside a transaction, or of which it is not known whether it is inside one."""
    trail = TrailName.of_file(path)
    index = _index_of(*trail) if trail is not None else None
    if trail is None or index is None:
        return None
    file = open_file(*trail)
    try:
        place, open_there = (first, opened) if opened != UNKNOWN else index.point_before(first) or (first, BETWEEN)
        before = None
        if open_there != BETWEEN:
            before = file.header.inside if open_there == CONTINUED else begun_at(file, open_there)
        return Context(DefinitionsBefore(path, first), open_transaction(file, place, first, before))
    finally:
        file.close()


def _index_of(name: TrailName, seqno: int) -> FileIndex | None:
    """The index of a file that no longer changes, built if it is missing. None for other files, and with damage."""
    path = name.file(seqno)
    found = find_index(path)
    if found is not None:
        return found
    extent = TrailExtent.of(name)
    if seqno >= max(extent.files) and extent.mark != (seqno, extent.size(seqno)):
        return None
    file = open_file(name, seqno)
    try:
        found = make_index(file)
    finally:
        file.close()
    if found is not None:
        keep_index(path, found.encode())
    return found


class DefinitionsBefore(dict[int, TableDefinition]):
    """The table definitions before a position of a file, by table index, read on demand.

    It reads only as far as needed: an index has one meaning in a file, and most definitions are at its beginning.
    """

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
    """The end of the last whole transaction, for a file that is shorter than its trail's durable mark.

    None for other files.
    """
    file = InspectedFile(path)
    try:
        end = file.durable_end()
        return last_end(file) if end is not None and end > file.size else None
    finally:
        file.close()


def splits_of(
    file: str,
    path: Path,
    size: int,
    *,
    first: int = 0,
    last: int | None = None,
    between: bool = False,
    inside: bool = True,
) -> list[TrailSplit]:
    """Divide a file, or a range of it, into splits of about ``size`` bytes. ``path`` is where the file can be read.

    ``between``: the range begins between two transactions; ``inside``: splits may begin inside a transaction.
    """
    between = between and first > 0
    end = path.stat().st_size if last is None else last
    opened = BETWEEN if between else UNKNOWN
    if end - first <= size * 3 // 2:
        return [TrailSplit(file, first, last, opened)]
    points = split_points(path, size, first, end - size // 2, inside=inside)
    edges = [*(point.place for point in points), last]
    begins = [(first, opened), *points]
    return [TrailSplit(file, place, edge, open_) for (place, open_), edge in zip(begins, edges, strict=True)]


def metadata_records(path: Path, first: int = 0, last: int | None = None) -> Iterator[tuple[int, int, TableDefinition]]:
    """(RBA, table index, definition) of each readable Metadata record in a file or a range of it, in order.

    The index of the file says where they are; without one, the file is searched."""
    looked = InspectedFile(path)
    try:
        index = find_index(path)
        places = find_bytes(path, _OPENING, first, last) if index is None else sorted(index.tables.values())
        for place in places:
            if place < first or (last is not None and place >= last):
                continue
            seen = looked.good_before(place) if index is None else looked.at(place)
            definition = _definition(looked, seen, place)
            if seen is not None and seen.record is not None and definition is not None:
                yield seen.rba, table_index(seen.record.audit_rba), definition
    finally:
        looked.close()


def _definition(file: InspectedFile, seen: InspectedRecord | None, place: int) -> TableDefinition | None:
    """The definition in a record that contains a position."""
    if seen is None or seen.record is None or seen.record.io_type != IoType.METADATA:
        return None
    return definition_of(file, seen) if seen.rba + seen.size > place else None


def find_definitions(files: Iterable[Path], table: str) -> list[TableDefinition]:
    """Every definition of a table (``owner.table``) in files, the newest last.

    Names are compared without case if no name matches exactly. Definitions without columns, which are those of DDL
    statements, are left out. Raises NotFoundError, with the existing tables, if there is none.
    """
    every: dict[TableDefinition, None] = {}
    for path in files:
        for _, _, definition in metadata_records(path):
            if not definition.columns:
                continue
            every.pop(definition, None)
            every[definition] = None
    name = _parse(table)
    exact = [each for each in every if each.name == name]
    found = exact or [each for each in every if _folded(each.name) == _folded(name)]
    if not found:
        there = sorted({str(each.name) for each in every})
        raise NotFoundError(
            f"the trail has no table {table}", hint=f"it has {', '.join(there)}" if there else "it has no tables"
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
    """(name, known type) of a table's columns: those of its newest definition, then those that only older ones have."""
    found: dict[str, str] = {}
    for definition in reversed(definitions):
        for column in definition.columns:
            found.setdefault(column.name, column.known_type)
    return list(found.items())
