"""Rows of a batch as changes: what each does, and the values in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ggshell.apply.target import TableMapping
from ggshell.errors import ApplyError
from ggshell.record.change import ChangeBatch
from ggshell.record.fields import Image, Value, split_image, values_of, walk
from ggshell.record.operation import TWO_IMAGES, IoType


class Kind(IntEnum):
    """What a change does; MOVE finds its row by the image before."""

    INSERT = 1
    UPDATE = 2
    DELETE = 3
    MOVE = 4
    TRUNCATE = 5


_KINDS = {
    int(IoType.INSERT): Kind.INSERT,
    int(IoType.DELETE): Kind.DELETE,
    int(IoType.UPDATE): Kind.UPDATE,
    int(IoType.FIELD_COMP): Kind.UPDATE,
    int(IoType.PURGE_DATA): Kind.TRUNCATE,
    **dict.fromkeys(TWO_IMAGES, Kind.MOVE),
}
_NO_IMAGE: Image = ((), [])


class Change(NamedTuple):
    """One row: the columns present and their values; ``before``: the image that a MOVE finds its row by."""

    mapping: TableMapping
    kind: Kind
    columns: tuple[int, ...]
    values: list[Value]
    before: Image = _NO_IMAGE


def changes(batch: ChangeBatch, first: int, last: int, mappings: dict[int, TableMapping]) -> list[Change]:
    """The changes of the rows ``first`` to ``last - 1`` whose tables are mapped, in order.  Raises ApplyError."""
    found: list[Change | None] = [None] * (last - first)
    sort = batch.table[first:last].astype(np.int64) << 8 | batch.io_type[first:last]
    for number in np.unique(sort).tolist():
        mapping = mappings.get(number >> 8)
        if mapping is not None:
            rows = np.flatnonzero(sort == number) + first
            for row, change in zip(rows.tolist(), _alike(batch, rows, mapping, number & 0xFF), strict=True):
                found[row - first] = change
    return [change for change in found if change is not None]


def _alike(batch: ChangeBatch, rows: NDArray[np.int64], mapping: TableMapping, io_type: int) -> Iterator[Change]:
    """Rows of one table and operation."""
    kind = _KINDS.get(io_type)
    if kind is None:
        raise ApplyError(f"the trail holds an operation of type {io_type}, which cannot be applied")
    if kind is Kind.TRUNCATE:
        yield from (Change(mapping, kind, (), []) for _ in rows)
        return
    if kind is Kind.MOVE:
        for row in rows.tolist():
            yield _move(mapping, batch.images(row), io_type)
        return
    fields = walk(np.frombuffer(batch.buffer, dtype=np.uint8), batch.start[rows], batch.length[rows])
    if fields is None:
        for row in rows.tolist():
            yield Change(mapping, kind, *split_image(batch.data(row)))
        return
    columns = tuple(field.column for field in fields)
    each: Sequence[list[Value]] = [values_of(batch.buffer, field) for field in fields]
    for values in zip(*each, strict=True):
        yield Change(mapping, kind, columns, list(values))


def _move(mapping: TableMapping, images: tuple[bytes, bytes], io_type: int) -> Change:
    before, after = (split_image(image) for image in images)
    compares = mapping.compared_updates
    if io_type == IoType.UNIFIED_UPDATE and mapping.source.key and mapping.key == mapping.source.key and not compares:
        # The key did not change: the image after, which has it, is all that an update needs.
        return Change(mapping, Kind.UPDATE, *after)
    return Change(mapping, Kind.MOVE, *after, before)
