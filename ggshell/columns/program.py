"""What becomes of one table's rows under one TABLE or MAP: compiled once, run for many rows at a time.

An image that goes on whole keeps its bytes, and computed columns are set behind it: their indexes follow those of the source,
and what the target does not take is left out by the mapping.  Where columns must go (``kept``), the image is built anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ggshell.columns.clauses import Conversion
from ggshell.columns.conditions import Conditions
from ggshell.columns.images import Appended, Made, Pieces, column_pieces, cut, joined, made_of, pieces_of
from ggshell.columns.queries import Queries
from ggshell.columns.rows import Images, Rows, Side
from ggshell.record.definition import TableDefinition
from ggshell.record.fields import split_image
from ggshell.record.image import LONGEST_SHORT, encode_image, join_key_update
from ggshell.record.operation import NO_OPERATIONS, OPERATIONS, TWO_IMAGES, IoType

Places = NDArray[np.int64]


class Outcome(NamedTuple):
    """What leaves: the rows' numbers in the batch, their operation, their data areas (None: as they were).

    ``raised``: row numbers that a FILTER refused, with RAISEERROR's number.
    """

    numbers: Places
    io_type: int
    data: Made | None
    raised: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """``definition`` is the table that leaves; ``appended`` are its computed columns, ``key`` the indexes of those that find a
    row; ``kept``: for each source column the indexes it has in an image built anew, None where images stay as they are."""

    definition: TableDefinition
    conditions: Conditions
    queries: Queries | None = None
    appended: tuple[Appended, ...] = ()
    key: frozenset[int] = frozenset()
    kept: Mapping[int, tuple[int, ...]] | None = None
    conversions: Mapping[int, int] = field(default_factory=dict)
    ignored: frozenset[int] = NO_OPERATIONS
    history: bool = False

    def run(self, rows: Rows) -> Outcome:
        """Choose, convert and compute.  Raises GgsError where a function cannot do its work."""
        if rows.io_type in self.ignored or (self.history and rows.io_type == IoType.PURGE_DATA):
            return Outcome(rows.numbers[:0], rows.io_type, None)
        if rows.io_type == IoType.PURGE_DATA:
            return Outcome(rows.numbers, rows.io_type, None)
        raised: list[tuple[int, int]] = []
        if self.queries is not None:
            self.queries.run(rows, before_filter=True)
        if self.conditions:
            places, refused = self.conditions.passing(rows)
            raised = [(int(rows.numbers[place]), error) for place, error in refused]
            rows = rows if len(places) == len(rows) else rows.take(places.tolist())
        return self.work(rows)._replace(raised=raised)

    def work(self, rows: Rows) -> Outcome:
        """Convert and compute rows that are chosen already."""
        if not len(rows):
            return Outcome(rows.numbers, rows.io_type, None)
        if self.queries is not None:
            self.queries.run(rows, before_filter=False)
        io_type = self.conversions.get(rows.io_type, rows.io_type)
        return Outcome(rows.numbers, io_type, self._data(rows, io_type))

    def _data(self, rows: Rows, io_type: int) -> Made | None:
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
        """The computed columns of an image; of a delete only those that find a row count."""
        if io_type != IoType.DELETE:
            return self.appended
        return tuple(column for column in self.appended if column.index in self.key)

    def _image(self, rows: Rows, images: Images, columns: Sequence[Appended]) -> Made:
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
    """The operations that become others, by type.  Truncates stay, but for INSERTALLRECORDS, where they are left out."""
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
