"""Row events: the table, the operation, which columns the images have, and the bytes of the rows."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from ggshell.connectors.mysql.binlog.events import HEADER_SIZE, EventType, decompressed, packed
from ggshell.record.operation import IoType

_V1_HEAD, _V2_HEAD = HEADER_SIZE + 8, HEADER_SIZE + 10
ROWS: Final = {
    EventType.WRITE_ROWS_V1: IoType.INSERT,
    EventType.UPDATE_ROWS_V1: IoType.UPDATE,
    EventType.DELETE_ROWS_V1: IoType.DELETE,
    EventType.WRITE_ROWS: IoType.INSERT,
    EventType.UPDATE_ROWS: IoType.UPDATE,
    EventType.DELETE_ROWS: IoType.DELETE,
    EventType.WRITE_ROWS_COMPRESSED_V1: IoType.INSERT,
    EventType.UPDATE_ROWS_COMPRESSED_V1: IoType.UPDATE,
    EventType.DELETE_ROWS_COMPRESSED_V1: IoType.DELETE,
    EventType.WRITE_ROWS_COMPRESSED: IoType.INSERT,
    EventType.UPDATE_ROWS_COMPRESSED: IoType.UPDATE,
    EventType.DELETE_ROWS_COMPRESSED: IoType.DELETE,
}
"""The operation of each kind of row event."""
_SECOND: Final = frozenset(
    {
        EventType.WRITE_ROWS,
        EventType.UPDATE_ROWS,
        EventType.DELETE_ROWS,
        EventType.WRITE_ROWS_COMPRESSED,
        EventType.UPDATE_ROWS_COMPRESSED,
        EventType.DELETE_ROWS_COMPRESSED,
        EventType.PARTIAL_UPDATE_ROWS,
    }
)
"""The kinds of version 2, which have a part for extra data."""
_COMPRESSED: Final = frozenset(kind for kind in ROWS if kind >= EventType.WRITE_ROWS_COMPRESSED_V1)
_KINDS: Final = {int(kind): operation for kind, operation in ROWS.items()}


class RowEvent(NamedTuple):
    """The rows of one event: those of ``data`` from ``place`` on.

    ``images``: the columns in each image of a row, by their indexes: one image, or before and after for an update.
    """

    table: int
    operation: IoType
    images: tuple[tuple[int, ...], ...]
    data: bytes
    place: int


def operation_of(event: bytes) -> IoType:
    """The operation of a row event."""
    return _KINDS[event[4]]


def has_all_columns(event: bytes) -> bool:
    """Whether the first images of a row event have all columns of the table."""
    count, place = packed(event, _columns_place(event))
    bits = int.from_bytes(event[place : place + (count + 7) // 8], "little")
    # MySQL also sets the bits of the last byte that stand for no column.
    return not ~bits & (1 << count) - 1


def _columns_place(event: bytes) -> int:
    """Where the number of columns is."""
    if event[4] not in _SECOND:
        return _V1_HEAD
    return _V2_HEAD - 2 + int.from_bytes(event[_V2_HEAD - 2 : _V2_HEAD], "little")


def row_event(event: bytes) -> RowEvent | None:
    """Read a row event, compressed or not; None for any other event."""
    operation = _KINDS.get(event[4])
    if operation is None:
        return None
    images, place = row_images(event, 2 if operation is IoType.UPDATE else 1)
    table = int.from_bytes(event[HEADER_SIZE : HEADER_SIZE + 6], "little")
    if event[4] in _COMPRESSED:
        return RowEvent(table, operation, images, decompressed(event[place:]), 0)
    return RowEvent(table, operation, images, event, place)


def row_images(event: bytes, count: int) -> tuple[tuple[tuple[int, ...], ...], int]:
    """The columns of each of the images of an event's rows, and the place where the rows begin."""
    width, place = packed(event, _columns_place(event))
    size = (width + 7) // 8
    images: list[tuple[int, ...]] = []
    for _ in range(count):
        images.append(_columns(bytes(event[place : place + size]), width))
        place += size
    return tuple(images), place


@lru_cache(maxsize=1 << 12)
def _columns(bits: bytes, count: int) -> tuple[int, ...]:
    """The columns whose bits are set."""
    return tuple(index for index in range(count) if bits[index >> 3] & 1 << (index & 7))
