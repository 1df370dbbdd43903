"""Row images: encode and decode the bytes of a record's data area, one value at a time.

An image is a sequence of columns: index (2 bytes), length (2 bytes), NULL indicator (2 bytes, 0 or 0xFFFF), and for a value
its own length (2 bytes) and its text. ``length`` counts indicator, inner length and text. All numbers are little-endian.
A longer value (more than ``LONGEST_SHORT`` bytes) has length 0xFFFF, then indicator 0, then a 4-byte length and the text.
Columns without a value in the log, such as an unchanged TOAST value, are not in the image.

A key update (IoType 115) holds two images: a length of 2 bytes (0xFFFF and 4 more bytes if it is longer), the before values
of the identifying columns, and then the after image. The batch forms of these functions are where the batches are built
(``databases``) and must produce the same bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

LONGEST_SHORT = 0xFFFF - 5
"""The longest value, in bytes, that fits the 2-byte lengths (0xFFFF itself marks the long form)."""

_SHORT = struct.Struct("<HHHH")
_LONG = struct.Struct("<HHHI")
_NULL = struct.Struct("<HHH")
_U16 = struct.Struct("<H")
_U32 = struct.Struct("<I")


def encode_image(columns: Iterable[tuple[int, bytes | None]]) -> bytes:
    """Encode the image of (column index, value or None for NULL) pairs."""
    parts: list[bytes] = []
    for index, value in columns:
        if value is None:
            parts.append(_NULL.pack(index, 2, 0xFFFF))
        elif len(value) <= LONGEST_SHORT:
            parts.append(_SHORT.pack(index, len(value) + 4, 0, len(value)))
            parts.append(value)
        else:
            parts.append(_LONG.pack(index, 0xFFFF, 0, len(value)))
            parts.append(value)
    return b"".join(parts)


def decode_image(image: bytes | memoryview) -> list[tuple[int, bytes | None]]:
    """Decode an image to (index, value or None) pairs. Raises ValueError if a value extends past the image."""
    columns: list[tuple[int, bytes | None]] = []
    place, end = 0, len(image)
    try:
        while place < end:
            index, length, indicator = _NULL.unpack_from(image, place)
            if indicator == 0xFFFF:
                if length != 2:
                    raise ValueError(f"a NULL column of length {length} at byte {place}")
                columns.append((index, None))
                place += 6
                continue
            if indicator != 0:
                raise ValueError(f"NULL indicator {indicator:#06x} at byte {place + 4}")
            if length == 0xFFFF:
                size, first = _U32.unpack_from(image, place + 6)[0], place + 10
            else:
                size, first = _U16.unpack_from(image, place + 6)[0], place + 8
                if size != length - 4:
                    raise ValueError(f"inner length {size} in a column of length {length} at byte {place}")
            place = first + size
            if place > end:
                raise ValueError(f"a value of {size} bytes at byte {first} of an image of {end}")
            columns.append((index, bytes(image[first:place])))
    except struct.error:
        raise ValueError(f"an image of {end} bytes ends inside a column at byte {place}") from None
    return columns


def join_key_update(before: bytes, after: bytes) -> bytes:
    """Encode the data area of a key update: the before values of the identifying columns, then the after image."""
    if len(before) < 0xFFFF:
        return _U16.pack(len(before)) + before + after
    return _U16.pack(0xFFFF) + _U32.pack(len(before)) + before + after


def split_key_update(data: bytes | memoryview) -> tuple[bytes | memoryview, bytes | memoryview]:
    """Split a key update's data area into its two images. Raises ValueError if the first image extends past it."""
    try:
        size, first = _U16.unpack_from(data)[0], 2
        if size == 0xFFFF:
            size, first = _U32.unpack_from(data, 2)[0], 6
    except struct.error:
        raise ValueError("a key update without the length of its before part") from None
    if first + size > len(data):
        raise ValueError(f"a before part of {size} bytes in a data area of {len(data)}")
    return data[first : first + size], data[first + size :]
