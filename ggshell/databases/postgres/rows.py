"""Row messages of pgoutput to the rows of a batch, one row at a time.

``vectors.py`` does the same for many rows at once and must give the same bytes; this form serves short batches, and rows
with two images or very long values.
"""

from __future__ import annotations

from typing import NamedTuple

from ggshell.databases.postgres import pgoutput
from ggshell.errors import CaptureError
from ggshell.record import IoType, TableDefinition
from ggshell.record.image import encode_image, join_key_update

Value = bytes | None
UNCHANGED = b"\0unchanged"
"""Stands for a TOAST value that the log does not hold, since the update did not touch it."""


class TableShape(NamedTuple):
    """A table as rows refer to it: its definition, whether its rows are wanted, and whether old rows come whole."""

    definition: TableDefinition
    wanted: bool
    full: bool


class EncodedRow(NamedTuple):
    """One row: its table's id in the log, the operation, the data area, the log position."""

    relation: int
    io_type: int
    data: bytes
    position: int


def position_of(message: bytes) -> int:
    return int.from_bytes(message[1:9], "big")


def relation_of(message: bytes, place: int) -> int:
    return int.from_bytes(message[place : place + 4], "big")


def truncated(message: bytes, place: int) -> list[int]:
    """The tables of a Truncate message."""
    count = int.from_bytes(message[place : place + 4], "big")
    return [relation_of(message, place + 5 + 4 * number) for number in range(count)]


def _tuple(message: bytes, place: int) -> tuple[list[Value], int]:
    """The values of a tuple (bytes, None for NULL, UNCHANGED), and the place behind it."""
    count = int.from_bytes(message[place : place + 2], "big")
    place += 2
    values: list[Value] = []
    for _ in range(count):
        kind = message[place]
        if kind == 0x74:  # t
            first = place + 5
            place = first + int.from_bytes(message[place + 1 : first], "big")
            values.append(message[first:place])
            continue
        if kind not in (0x6E, 0x75):  # n, u
            raise CaptureError(f"a column of kind {kind:#x} in a row message")
        values.append(None if kind == 0x6E else UNCHANGED)
        place += 1
    return values, place


def _image(values: list[Value], columns: tuple[int, ...] | range) -> bytes:
    return encode_image((index, values[index]) for index in columns if values[index] is not UNCHANGED)


def encode_row(message: bytes, shape: TableShape, relation: int, place: int) -> EncodedRow:
    """One Insert, Update or Delete; ``place`` is where its table's id stands."""
    kind, position = message[pgoutput.PAYLOAD], position_of(message)
    definition = shape.definition
    place += 4
    if kind == pgoutput.INSERT:
        values, _ = _tuple(message, place + 1)
        return EncodedRow(relation, IoType.INSERT, _image(values, range(len(values))), position)
    if kind == pgoutput.DELETE:
        values, _ = _tuple(message, place + 1)
        return EncodedRow(relation, IoType.DELETE, _image(values, definition.identity), position)
    before: list[Value] | None = None
    if message[place] in (0x4B, 0x4F):  # K, O
        before, place = _tuple(message, place + 1)
    after, _ = _tuple(message, place + 1)
    return _update(relation, position, shape, before, after)


def _update(
    relation: int, position: int, shape: TableShape, before: list[Value] | None, after: list[Value]
) -> EncodedRow:
    identity = shape.definition.identity
    everything = range(len(after))
    if before is None:
        return EncodedRow(relation, IoType.FIELD_COMP, _image(after, everything), position)
    moved = any(after[index] is not UNCHANGED and before[index] != after[index] for index in identity)
    if not shape.definition.key or moved:
        data = join_key_update(_image(before, identity), _image(after, everything))
        return EncodedRow(relation, IoType.KEY_FIELD_COMP, data, position)
    if not shape.full:
        return EncodedRow(relation, IoType.FIELD_COMP, _image(after, everything), position)
    changed = tuple(index for index in everything if index in identity or before[index] != after[index])
    filled = [
        before[index] if index in identity and after[index] is UNCHANGED else after[index] for index in everything
    ]
    return EncodedRow(relation, IoType.FIELD_COMP, _image(filled, changed), position)
