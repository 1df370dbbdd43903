"""Decode row images: a single row in plain Python, or the columns of many rows at once with array operations."""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ggshell.record.image import decode_image

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Value = bytes | None
Image = tuple[tuple[int, ...], list[Value]]
"""The column indexes in an image, and their values (None for NULL)."""

_HEAD = struct.Struct("<HHHH")
_LONG = struct.Struct("<I")
_SHORTEST = 6
_LONG_PART = 0xFFFF
LONG_IMAGE = 1 << 20
"""The size in bytes above which an image is not copied as a whole."""


class Field(NamedTuple):
    """One column of many rows: the places and lengths of its values (length -1 for NULL)."""

    column: int
    place: Ints
    size: Ints


def split_image(image: bytes | memoryview) -> Image:
    """Split one image into columns. Lengths are not checked, because the trail reader has checked the record."""
    if len(image) > LONG_IMAGE:
        pairs = decode_image(image)
        return tuple([index for index, _ in pairs]), [value for _, value in pairs]
    columns: list[int] = []
    values: list[Value] = []
    place, end = 0, len(image)
    unpack = _HEAD.unpack_from
    image = bytes(image) + b"\0\0"
    while place < end:
        column, length, null, size = unpack(image, place)
        columns.append(column)
        if null:
            values.append(None)
            place += _SHORTEST
            continue
        first = place + 8
        if length == 0xFFFF:
            size, first = _LONG.unpack_from(image, place + 6)[0], place + 10
        place = first + size
        values.append(image[first:place])
    return tuple(columns), values


def after_images(raw: Bytes, start: Ints, length: Ints) -> tuple[Ints, Ints] | None:
    """Return the after images' places and lengths in data areas with two images; None if a before part is long."""
    size = raw[start].astype(np.int64) | raw[start + 1].astype(np.int64) << 8
    if (size == _LONG_PART).any():
        return None
    return start + 2 + size, length - 2 - size


def walk(raw: Bytes, start: Ints, length: Ints) -> list[Field] | None:
    """Split many images into columns; None if they do not all hold the same columns."""
    place, end = start.copy(), start + length
    fields: list[Field] = []
    # All bytes of a column's head are read at once, so a column at the very end must not lead outside the buffer.
    limit = len(raw) - 10
    while True:
        done = place >= end
        if done.any():
            return fields if done.all() and (place == end).all() else None
        at = np.minimum(place, limit)
        if (at != place).any():
            raw = np.concatenate([raw, np.zeros(10, dtype=np.uint8)])
            limit, at = len(raw) - 10, place
        column = _small(raw, at)
        if (column != column[0]).any():
            return None
        size = _small(raw, at + 2) - 4
        null = raw[at + 4] != 0
        first = at + 8
        long = (size == 0xFFFF - 4) & ~null
        if long.any():
            first = np.where(long, at + 10, first)
            size = np.where(long, _small(raw, at + 6) | _small(raw, at + 8) << 16, size)
        fields.append(Field(int(column[0]), first, np.where(null, -1, size)))
        place = np.where(null, at + _SHORTEST, first + size)


def _small(raw: Bytes, place: Ints) -> Ints:
    return raw[place].astype(np.int64) | raw[place + 1].astype(np.int64) << 8


def values_of(buffer: bytes | bytearray | memoryview, field: Field) -> list[Value]:
    """Return one column's values."""
    view = buffer if isinstance(buffer, bytes) else memoryview(buffer)
    ends = (field.place + field.size).tolist()
    places = zip(field.place.tolist(), ends, strict=True)
    if isinstance(view, bytes):
        found: list[Value] = [view[first:last] for first, last in places]
    else:
        found = [bytes(view[first:last]) for first, last in places]
    if (field.size < 0).any():
        for row in np.flatnonzero(field.size < 0).tolist():
            found[row] = None
    return found
