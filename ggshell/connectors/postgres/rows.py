"""Encodes the row messages of pgoutput as the rows of a batch, one row at a time.

``vectors.py`` encodes many rows at once and must produce the same bytes. This form serves short batches, and rows with
two images or very long values.
"""

from __future__ import annotations

from typing import NamedTuple

from ggshell.connectors.postgres import pgoutput
from ggshell.errors import CaptureError
from ggshell.record.definition import TableDefinition
from ggshell.record.image_rules import DEFAULT_IMAGES, ImageRules
from ggshell.record.operation import IoType
from ggshell.record.update_images import UNCHANGED, Before, Value, image_of, update_images

OLD_KEY, OLD_ROW, NEW_ROW = ord("K"), ord("O"), ord("N")


class RelationTable(NamedTuple):
    """A table as rows refer to it: its definition, whether it is captured, and which images its rows have."""

    definition: TableDefinition
    wanted: bool
    images: ImageRules = DEFAULT_IMAGES


class EncodedRow(NamedTuple):
    """One row: the table's id in the log, the operation, the data area and the log position.

    ``before`` marks the before image of the update that follows.
    """

    relation: int
    io_type: int
    data: bytes
    position: int
    before: bool = False


def position_of(message: bytes) -> int:
    return int.from_bytes(message[1:9], "big")


def relation_of(message: bytes, place: int) -> int:
    return int.from_bytes(message[place : place + 4], "big")


def truncated(message: bytes, place: int) -> list[int]:
    """The tables named by a Truncate message."""
    count = int.from_bytes(message[place : place + 4], "big")
    return [relation_of(message, place + 5 + 4 * number) for number in range(count)]


def _tuple(message: bytes, place: int) -> tuple[list[Value], int]:
    """The values of a tuple (bytes, None for NULL, or UNCHANGED), and the offset after it."""
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


def encode_row(message: bytes, shape: RelationTable, relation: int, place: int) -> tuple[EncodedRow, ...]:
    """Encode one Insert, Update or Delete, preceded by its before image if required.

    ``place`` is the offset of the table's id.
    """
    kind, position = message[pgoutput.PAYLOAD], position_of(message)
    definition = shape.definition
    place += 4
    form = message[place]
    if kind == pgoutput.INSERT:
        values, _ = _tuple(message, place + 1)
        return (EncodedRow(relation, IoType.INSERT, image_of(values, range(len(values))), position),)
    if kind == pgoutput.DELETE:
        values, _ = _tuple(message, place + 1)
        whole = form == OLD_ROW and shape.images.all_of_deletes
        columns = range(len(values)) if whole else definition.identity
        return (EncodedRow(relation, IoType.DELETE, image_of(values, columns), position),)
    old: list[Value] | None = None
    if form in (OLD_KEY, OLD_ROW):
        old, place = _tuple(message, place + 1)
    after, _ = _tuple(message, place + 1)
    before = Before.of(definition, old, after, whole=form == OLD_ROW)
    return tuple(
        EncodedRow(relation, io_type, data, position, is_before)
        for io_type, data, is_before in update_images(definition, before, after, shape.images)
    )
