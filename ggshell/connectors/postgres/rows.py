"""Encodes the row messages of pgoutput as the rows of a batch, one row at a time.

``vectors.py`` encodes many rows at once and must produce the same bytes. This form serves short batches, and rows with
two images or very long values.
"""

from __future__ import annotations

from typing import NamedTuple

from ggshell.connectors.postgres import pgoutput
from ggshell.errors import CaptureError
from ggshell.record.definition import TableDefinition
from ggshell.record.image import encode_image, join_key_update
from ggshell.record.image_rules import DEFAULT_IMAGES, ImageRules, Unified
from ggshell.record.operation import IoType

Value = bytes | None
OLD_KEY, OLD_ROW, NEW_ROW = ord("K"), ord("O"), ord("N")
UNCHANGED = b"\0unchanged"
"""Stands for a TOAST value that is not in the log because the update did not change it."""


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


def _image(values: list[Value], columns: tuple[int, ...] | range) -> bytes:
    return encode_image((index, values[index]) for index in columns if values[index] is not UNCHANGED)


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
        return (EncodedRow(relation, IoType.INSERT, _image(values, range(len(values))), position),)
    if kind == pgoutput.DELETE:
        values, _ = _tuple(message, place + 1)
        whole = form == OLD_ROW and shape.images.all_of_deletes
        columns = range(len(values)) if whole else definition.identity
        return (EncodedRow(relation, IoType.DELETE, _image(values, columns), position),)
    old: list[Value] | None = None
    if form in (OLD_KEY, OLD_ROW):
        old, place = _tuple(message, place + 1)
    after, _ = _tuple(message, place + 1)
    before = _Before.of(definition, old, after, whole=form == OLD_ROW)
    return tuple(
        EncodedRow(relation, io_type, data, position, is_before)
        for io_type, data, is_before in _update(definition, before, after, shape.images)
    )


class _Before(NamedTuple):
    """What is known of a row before its update.

    ``values`` are UNCHANGED where the old value is not known; ``whole`` means that all of them are known; ``moved``
    means that the columns that identify the row have changed.
    """

    values: list[Value]
    whole: bool
    moved: bool

    @classmethod
    def of(cls, definition: TableDefinition, old: list[Value] | None, after: list[Value], *, whole: bool) -> _Before:
        identity = definition.identity
        if old is None:  # the identifying columns did not change
            known = set(identity)
            return cls([value if index in known else UNCHANGED for index, value in enumerate(after)], False, False)
        moved = any(after[index] is not UNCHANGED and old[index] != after[index] for index in identity)
        if not whole:
            known = set(identity)
            old = [value if index in known else UNCHANGED for index, value in enumerate(old)]
        return cls(old, whole, moved or not definition.key)

    def filled(self, after: list[Value]) -> list[Value]:
        """The row after the update. Large values that did not change are taken from the old row, if known there."""
        return [old if new is UNCHANGED else new for old, new in zip(self.values, after, strict=True)]


_Made = tuple[int, bytes, bool]
"""Operation, data area, and whether it is a before image."""


def _update(definition: TableDefinition, before: _Before, after: list[Value], rules: ImageRules) -> list[_Made]:
    identity, everything = definition.identity, range(len(after))
    modified = _modified(before, after, identity)
    if rules.unified is not None:
        full = rules.unified is Unified.FULL
        old = _image(before.values, everything if full or rules.supplemental else modified)
        new = _image(before.filled(after), everything if full else modified)
        kind = IoType.UNIFIED_KEY_UPDATE if before.moved else IoType.UNIFIED_UPDATE
        return [(kind, join_key_update(old, new), False)]
    made: list[_Made] = []
    if rules.befores:
        columns = everything if rules.whole_updates else modified
        made.append((IoType.FIELD_COMP, _image(before.values, columns), True))
    filled = before.filled(after)
    whole = rules.whole_updates and UNCHANGED not in filled
    # A key that is stored out of line and did not change is only in the old row.
    kept = [filled[index] if index in identity else value for index, value in enumerate(after)]
    if before.moved:
        new = _image(filled if whole else kept, everything)
        made.append((IoType.KEY_FIELD_COMP, join_key_update(_image(before.values, identity), new), False))
    elif rules.whole_updates:
        made.append((IoType.UPDATE if whole else IoType.FIELD_COMP, _image(filled, everything), False))
    elif before.whole:
        made.append((IoType.FIELD_COMP, _image(kept, modified), False))
    else:
        made.append((IoType.FIELD_COMP, _image(kept, everything), False))
    return made


def _modified(before: _Before, after: list[Value], identity: tuple[int, ...]) -> tuple[int, ...]:
    """The identifying columns, and those that changed or may have changed (where the old value is not known)."""
    key = set(identity)
    return tuple(
        index
        for index, (old, new) in enumerate(zip(before.values, after, strict=True))
        if index in key or (new is not UNCHANGED and (old is UNCHANGED or old != new))
    )
