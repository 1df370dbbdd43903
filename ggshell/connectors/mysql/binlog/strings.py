"""Strings, bytes, labels, documents and shapes of the log as UTF-8 text, for all rows of a column at once.

Bytes become ``\\x`` and hexadecimal digits, as PostgreSQL writes them. A shape becomes the hexadecimal digits of its
well-known binary form, extended with its SRID unless that is 0.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from ggshell.connectors.mysql.binlog.cells import WINDOW, Bytes, Cells, Ints, matrix
from ggshell.connectors.mysql.binlog.charsets import Charset
from ggshell.connectors.mysql.binlog.events import DAMAGED
from ggshell.errors import CaptureError

_HEX: Final = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), dtype="<u2")
_MARK: Final = int.from_bytes(b"\\x", "little")
_WORTH: Final = 512
"""Values up to this length are turned into hexadecimal digits together; longer ones one by one."""
_SRID_SIZE: Final = 4
_EXTENDED: Final = 0x20000000
"""The flag of a shape's type that says that the SRID follows."""


def text_cells(raw: Bytes, place: Ints, size: Ints, charset: Charset) -> Cells:
    """The text of strings. Those whose bytes are UTF-8 already stay where they are."""
    if charset.direct:
        return Cells(raw, place, size)
    if not charset.ascii:
        return _each(raw, place, size, charset.text)
    high = np.zeros(len(raw) + 1, dtype=np.int64)
    np.cumsum(raw >= 0x80, out=high[1:])
    foreign = np.flatnonzero(high[place + size] > high[place])
    if not len(foreign):
        return Cells(raw, place, size)
    own = _each(raw, place[foreign], size[foreign], charset.text)
    place, size = place.copy(), size.copy()
    place[foreign], size[foreign] = own.place + len(raw), own.length
    return Cells(np.concatenate([raw, own.buffer]), place, size)


def bytes_cells(raw: Bytes, place: Ints, size: Ints) -> Cells:
    """The hexadecimal digits of byte strings."""
    if int(size.max(initial=0)) > _WORTH:
        return _each(raw, place, size, lambda value: b"\\x" + value.hex().encode())
    length = size + 1
    ends = np.cumsum(length)
    start = ends - length
    total = int(ends[-1]) if len(ends) else 0
    out = np.empty(total + WINDOW // 2, dtype="<u2")
    value = np.ones(total, dtype=bool)
    value[start] = False
    source = np.repeat(place - start - 1, length) + np.arange(total, dtype=np.int64)
    out[:total][value] = _HEX[raw[source[value]]]
    out[start] = _MARK
    return Cells(out.view(np.uint8), start * 2, length * 2)


def fixed_bytes_cells(raw: Bytes, place: Ints, size: Ints, width: int) -> Cells:
    """The digits of BINARY(n). The log omits zero bytes at the end of a value."""
    buffer, text = matrix(len(place), 2 + 2 * width)
    text[:, :2] = np.frombuffer(b"\\x", dtype=np.uint8)
    columns = np.arange(width)
    missing = columns >= size[:, None]
    found = raw[np.where(missing, 0, place[:, None] + columns)]
    found[missing] = 0
    text[:, 2:] = np.ascontiguousarray(_HEX[found]).view(np.uint8).reshape(len(place), 2 * width)
    rows = len(place)
    return Cells(
        buffer, np.arange(rows, dtype=np.int64) * (2 + 2 * width), np.full(rows, 2 + 2 * width, dtype=np.int64)
    )


def compressed_cells(raw: Bytes, place: Ints, size: Ints, charset: Charset) -> Cells:
    """The text of a COMPRESSED column: one byte that says how it is stored, the length, and the data."""
    if charset.name == "binary":
        return _each(raw, place, size, lambda value: b"\\x" + _decompressed(value).hex().encode())
    return _each(raw, place, size, lambda value: charset.text(_decompressed(value)))


def _decompressed(value: bytes) -> bytes:
    """A value of a compressed column; the empty string is stored without a head, and short values as they are."""
    if not value or not value[0]:
        return value[1:]
    try:
        return zlib.decompress(value[1 + (value[0] & 7) :], wbits=-15 if value[0] & 8 else 15)
    except zlib.error as error:
        raise CaptureError(f"a value of a compressed column is damaged: {error}", code=DAMAGED) from error


def label_cells(values: Ints, labels: Sequence[bytes]) -> Cells:
    """ENUM: the labels, from 1 on; 0 is the empty text of a value that was not valid."""
    return Cells.table([b"", *labels], np.where(values > len(labels), 0, values))


def set_cells(values: Ints, labels: Sequence[bytes]) -> Cells:
    """SET: the labels of all bits that are set, separated by commas."""
    known, index = np.unique(values, return_inverse=True)
    texts = [b",".join(label for bit, label in enumerate(labels) if int(value) >> bit & 1) for value in known]
    return Cells.table(texts, index)


def shape_cells(raw: Bytes, place: Ints, size: Ints) -> Cells:
    """GEOMETRY: the SRID and the well-known binary form."""
    return _each(raw, place, size, shape_text)


def shape_text(value: bytes) -> bytes:
    srid, shape = int.from_bytes(value[:_SRID_SIZE], "little"), value[_SRID_SIZE:]
    if srid and shape[:1] == b"\1":
        kind = int.from_bytes(shape[1:5], "little") | _EXTENDED
        shape = shape[:1] + kind.to_bytes(4, "little") + srid.to_bytes(4, "little") + shape[5:]
    return shape.hex().upper().encode()


def each_cells(raw: Bytes, place: Ints, size: Ints, write: Callable[[bytes], bytes]) -> Cells:
    """Cells of values that are converted one by one."""
    return _each(raw, place, size, write)


def _each(raw: Bytes, place: Ints, size: Ints, write: Callable[[bytes], bytes]) -> Cells:
    data = raw.data
    pairs = zip(place.tolist(), size.tolist(), strict=True)
    return Cells.of([write(bytes(data[at : at + length])) for at, length in pairs])
