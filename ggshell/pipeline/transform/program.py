"""The program of one table under one TABLE or MAP: compiled once, run for many rows at a time.

An image that is kept whole keeps its bytes, and computed columns are appended: their indexes follow those of the source, and
the mapping drops columns that the target does not have. If columns must be removed (``kept``), the image is rebuilt.

``verify`` compiles clauses without a table: it finds errors that do not depend on the columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ggshell.language.expressions import ColumnReference
from ggshell.pipeline.transform import nodes
from ggshell.pipeline.transform.clauses import Clauses, Conversion
from ggshell.pipeline.transform.compiler import Scope
from ggshell.pipeline.transform.conditions import Conditions
from ggshell.pipeline.transform.environment import Environment
from ggshell.pipeline.transform.functions.table import MAKERS
from ggshell.pipeline.transform.images import (
    Appended,
    ComputedImages,
    Pieces,
    column_pieces,
    cut,
    joined,
    made_of,
    pieces_of,
)
from ggshell.pipeline.transform.nodes import Node
from ggshell.pipeline.transform.queries import Queries, compile_query
from ggshell.pipeline.transform.rows import Images, Rows, Side
from ggshell.record import definition
from ggshell.record.definition import TableDefinition
from ggshell.record.fields import split_image
from ggshell.record.image import LONGEST_SHORT, encode_image, join_key_update
from ggshell.record.operation import NO_OPERATIONS, OPERATIONS, TWO_IMAGES, IoType
from ggshell.types import TableName

Places = NDArray[np.int64]


class ProgramResult(NamedTuple):
    """The result: the rows' numbers in the batch, their operation, and their data areas (None: unchanged).

    ``raised``: the row numbers that a FILTER refused, with the RAISEERROR number.
    """

    numbers: Places
    io_type: int
    data: ComputedImages | None
    raised: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """The compiled clauses of one table.

    ``definition``: the resulting table; ``appended``: its computed columns; ``key``: the indexes of the columns that
    identify a row; ``kept``: for each source column its indexes in a rebuilt image, None if images stay unchanged.
    """

    definition: TableDefinition
    conditions: Conditions
    queries: Queries | None = None
    appended: tuple[Appended, ...] = ()
    key: frozenset[int] = frozenset()
    kept: Mapping[int, tuple[int, ...]] | None = None
    conversions: Mapping[int, int] = field(default_factory=dict)
    ignored: frozenset[int] = NO_OPERATIONS
    history: bool = False

    def run(self, rows: Rows) -> ProgramResult:
        """Filter, convert and compute. Raises GgsError if a function fails."""
        if rows.io_type in self.ignored or (self.history and rows.io_type == IoType.PURGE_DATA):
            return ProgramResult(rows.numbers[:0], rows.io_type, None)
        if rows.io_type == IoType.PURGE_DATA:
            places, _ = self.conditions.passing(rows)
            return ProgramResult(rows.numbers[places], rows.io_type, None)
        raised: list[tuple[int, int]] = []
        if self.queries is not None:
            self.queries.run(rows, before_filter=True)
        if self.conditions:
            places, refused = self.conditions.passing(rows)
            raised = [(int(rows.numbers[place]), error) for place, error in refused]
            rows = rows if len(places) == len(rows) else rows.take(places.tolist())
        return self.work(rows)._replace(raised=raised)

    def work(self, rows: Rows) -> ProgramResult:
        """Convert and compute rows that already passed the filters."""
        if not len(rows):
            return ProgramResult(rows.numbers, rows.io_type, None)
        if self.queries is not None:
            self.queries.run(rows, before_filter=False)
        io_type = self.conversions.get(rows.io_type, rows.io_type)
        return ProgramResult(rows.numbers, io_type, self._data(rows, io_type))

    def _data(self, rows: Rows, io_type: int) -> ComputedImages | None:
        two, wanted = rows.io_type in TWO_IMAGES and not rows.is_before, io_type in TWO_IMAGES
        if not self.appended and self.kept is None and two == wanted:
            return None
        before, after = rows.halves
        if not two:
            only = before if after is None else after
            return self._image(rows, only, self._columns(io_type)) if only is not None else None
        if before is None or after is None:
            return None
        images = self._image(rows, after, self.appended)
        if not wanted:
            return images
        old = Rows(rows.batch, rows.numbers, rows.results, Side.EITHER)
        keys = tuple(column for column in self.appended if column.index in self.key)
        befores = cut(self._image(old, before, keys))
        return made_of([join_key_update(mine, theirs) for mine, theirs in zip(befores, cut(images), strict=True)])

    def _columns(self, io_type: int) -> tuple[Appended, ...]:
        """The computed columns of an image. A delete has only those that identify a row."""
        if io_type != IoType.DELETE:
            return self.appended
        return tuple(column for column in self.appended if column.index in self.key)

    def _image(self, rows: Rows, images: Images, columns: Sequence[Appended]) -> ComputedImages:
        buffer, areas = rows.batch.buffer, images.areas
        if self.kept is None:
            kept = [Pieces(buffer, *areas)]
        elif images.fields is not None and all((field.size <= LONGEST_SHORT).all() for field in images.fields.values()):
            kept = [
                column_pieces(buffer, field, place)
                for field in images.fields.values()
                for place in self.kept.get(field.column, ())
            ]
        else:
            places = zip(areas.start.tolist(), (areas.start + areas.length).tolist(), strict=True)
            kept = [pieces_of([_rebuilt(bytes(buffer[first:last]), self.kept) for first, last in places])]
        return joined([*kept, *(column.pieces(rows) for column in columns)], len(rows))


def _rebuilt(image: bytes, kept: Mapping[int, tuple[int, ...]]) -> bytes:
    pairs = zip(*split_image(image), strict=True)
    return encode_image([(place, value) for index, value in pairs for place in kept.get(index, ())])


def conversions_of(wanted: frozenset[Conversion]) -> dict[int, int]:
    """The converted operations, by type. Truncates are not converted; INSERTALLRECORDS drops them."""
    insert, update, delete = int(IoType.INSERT), int(IoType.FIELD_COMP), int(IoType.DELETE)
    found: dict[int, int] = {}
    if wanted & {Conversion.ALL_RECORDS, Conversion.INSERT_UPDATES}:
        found |= dict.fromkeys(OPERATIONS["UPDATES"], insert)
    if Conversion.UPDATE_INSERTS in wanted:
        found[insert] = update
    if Conversion.UPDATE_DELETES in wanted:
        found[delete] = update
    if wanted & {Conversion.ALL_RECORDS, Conversion.INSERT_DELETES}:
        found[delete] = insert
    if Conversion.ALL_RECORDS in wanted:
        found[insert] = insert
    return found


_ANY = definition.TableDefinition(TableName("any", "any"), (definition.Column("any", "text"),), (0,))


@dataclass(frozen=True, slots=True)
class _AnyTable(Scope):
    """A table that has every column."""

    def _of_side(self, name: ColumnReference, side: Side) -> Node:
        if name.quoted and side is Side.PLAIN:
            return nodes.constant(name.name, literal=True)  # a column, or a literal as older files write it
        return nodes.column(0, "text", side)

    def index(self, name: ColumnReference) -> int | None:
        return None if name.quoted else 0


def verify(clauses: Clauses) -> None:
    """Compile every expression of a statement. Raises StatementError for errors that no table definition could resolve."""
    queries = frozenset(query.name.lower() for query in clauses.queries)
    scope = _AnyTable(_ANY, Environment(), MAKERS, queries, (0,), source=clauses.source)
    Conditions(clauses, scope)
    for part in (clauses.column_map, clauses.tokens):
        for assignment in part.assignments if part is not None else ():
            scope.compile(assignment.source)
    for query in clauses.queries:
        compile_query(query, scope)
