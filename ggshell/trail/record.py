"""Decode a single record for inspection: header fields by name, data, columns and tokens.

Used by Logdump and by tests. Batches of rows go through ``decode``, which returns the same values without one object per
record. Records as public listings show them (without a checksum, older ones big-endian) are decoded as well.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from ggshell.checksum import crc32
from ggshell.clock import JULIAN_EPOCH_MICROSECONDS, to_datetime
from ggshell.errors import TrailError
from ggshell.record.ddl import ddl_pairs
from ggshell.record.operation import TWO_IMAGES, IoType
from ggshell.record.user_tokens import decode_user_tokens
from ggshell.trail import layout

_SMALLEST: Final = 4 + 4 + 34 + 4
_FIXED: Final = 34
_FIELDS: Final = "BBBBHBBQQIBBBBBB"
_NULL: Final = b"\xff\xff"
_NOT_NULL: Final = b"\0\0"
_LONG: Final = 0xFFFF
_TWO_IMAGES: Final = TWO_IMAGES | {IoType.KEY_FIELD_COMP_32}
_CHECKSUM_TOKEN: Final = int.from_bytes(layout.TOKEN.pack(layout.CHECKSUM, 0, layout.SEAL), "little")
_FEW_BITS: Final = 2

Columns = list[tuple[int, bytes | None]]


@dataclass(frozen=True, slots=True)
class Record:
    """The parts of one record. ``tail`` holds the bytes after the header's fixed part: a table index or a name."""

    hdr_ind: str
    partition: int
    undo_flag: int
    before_after: str
    rec_length: int
    io_type: int
    orig_node: int
    io_time: datetime | None
    audit_pos: int
    audit_rba: int
    trans_ind: int
    format_type: str
    syskey_len: int
    incomplete: int
    continued: int
    rec_count: int
    tail: bytes
    data: bytes
    tokens: dict[str, bytes]
    user_tokens: bytes
    checksum: int | None
    place: int | None

    @property
    def table_index(self) -> int | None:
        """The index of the table's definition; None if the tail is a name."""
        if not self.partition & layout.INDEXED or len(self.tail) != 2:
            return None
        return int.from_bytes(self.tail, "little")

    @property
    def name(self) -> str:
        """The table's name if the tail holds one (Metadata, DDL, older trails), else an empty string."""
        return "" if self.partition & layout.INDEXED else self.tail.rstrip(b"\0").decode(errors="replace")

    @property
    def is_before(self) -> bool:
        """Whether the record is a before image: of the update in the next record, or of the row that it deletes."""
        return self.before_after == chr(layout.BEFORE)

    def named_user_tokens(self) -> dict[str, bytes]:
        """Return the user tokens by name. Raises TrailError if they cannot be decoded (encrypted, or another format)."""
        try:
            return decode_user_tokens(self.user_tokens)
        except ValueError as error:
            raise TrailError(f"the user tokens cannot be read: {error}") from None

    def ddl(self) -> dict[str, str]:
        """Return the pairs of a DDL record by name; empty for other operations.

        Raises TrailError if the data area is not a sequence of pairs, for example in the first of several fragments."""
        try:
            return ddl_pairs(self.data) if self.io_type == IoType.DDL else {}
        except ValueError as error:
            raise TrailError(str(error), where=f"IOType {self.io_type}") from None

    def columns(self) -> Columns:
        """Return (index, value) of each column: the value's bytes follow its NULL indicator, None is NULL.

        For an update with a before part these are the columns of the after image. Raises TrailError if the data area is
        not a row image, for example in a fragment."""
        return self._images()[1]

    def before_columns(self) -> Columns:
        """Return the columns in the before part of a key update or unified update; empty for other operations."""
        return self._images()[0]

    def _images(self) -> tuple[Columns, Columns]:
        for order in ("<", ">"):  # trails of release 12.1 and earlier have big-endian numbers in the data area
            try:
                return self._split(order)
            except (ValueError, struct.error):
                continue
        raise TrailError(f"the data area of {len(self.data)} bytes is not a row image", where=f"IOType {self.io_type}")

    def _split(self, order: str) -> tuple[Columns, Columns]:
        if self.io_type not in _TWO_IMAGES:
            return [], list(_columns(self.data, order))
        size, first = struct.unpack_from(f"{order}H", self.data)[0], 2
        if size == _LONG:
            size, first = struct.unpack_from(f"{order}I", self.data, 2)[0], 6
        if first + size > len(self.data):
            raise ValueError("a before part longer than the data area")
        before, after = self.data[first : first + size], self.data[first + size :]
        return list(_columns(before, order)), list(_columns(after, order))


def _columns(image: bytes, order: str) -> Iterator[tuple[int, bytes | None]]:
    """Yield an image's columns. Raises ValueError or struct.error if a value extends past the image or a NULL indicator
    is not valid."""
    opening = struct.Struct(f"{order}HH")
    place = 0
    while place < len(image):
        index, length = opening.unpack_from(image, place)
        first = place + 4
        if length == _LONG:
            length = 6 + int(struct.unpack_from(f"{order}I", image, first + 2)[0])
        place = first + length
        indicator = image[first : first + 2]
        if length < 2 or place > len(image) or indicator not in (_NULL, _NOT_NULL):
            raise ValueError("no column")
        if indicator == _NULL and length != 2:
            raise ValueError("a NULL with a value")
        yield index, None if indicator == _NULL else image[first + 2 : place]


class _Parts(NamedTuple):
    """The values of a record's outer tokens."""

    header: bytes
    data: bytes
    tokens: bytes
    user_tokens: bytes


def decode_record(data: bytes, *, rba: int | None = None, file: object = "", checked: bool = True) -> Record:
    """Decode the bytes of one record, from its ``G`` token to the end of its ``Z`` token.

    ``rba`` is the record's place, if known; a record that was written for another place is then rejected. Raises
    TrailError for anything that is not exactly one whole, undamaged record.
    """
    data = bytes(data)
    try:
        order = _byte_order(data)
        parts = _parts(data, order)
        fields, tail = _header(parts)
        tokens = dict(_tokens(parts.tokens, order))
        checksum, place = _seal(data, tokens, rba) if checked else (None, None)
    except (ValueError, struct.error) as error:
        where = f"{file or 'record'}, RBA {rba}" if rba is not None else str(file)
        raise TrailError(f"not a complete trail record: expected {error}", where=where) from None
    return Record(
        hdr_ind=chr(fields[0]),
        partition=fields[1],
        undo_flag=fields[2],
        before_after=chr(fields[3]),
        rec_length=fields[4],
        io_type=fields[5],
        orig_node=fields[6],
        io_time=_moment(fields[7]),
        audit_pos=fields[8],
        audit_rba=fields[9],
        trans_ind=fields[10],
        format_type=chr(fields[11]),
        syskey_len=fields[12],
        incomplete=fields[13],
        continued=fields[14],
        rec_count=fields[15],
        tail=tail,
        data=parts.data,
        tokens=tokens,
        user_tokens=parts.user_tokens,
        checksum=checksum,
        place=place,
    )


def _byte_order(data: bytes) -> str:
    """Find the byte order of a record's lengths from its opening and trailer, which both hold the record's own length."""
    if len(data) < _SMALLEST:
        raise ValueError(f"at least {_SMALLEST} bytes, not {len(data)}")
    if data[:2] != bytes([layout.RECORD, 1]):
        raise ValueError("a record header token (G) at its first byte")
    for order in ("<", ">"):
        size = struct.pack(f"{order}H", len(data) & 0xFFFF)
        if data[2:4] == size and len(data) <= 0xFFFF:
            if data[-4:] != bytes([layout.TRAILER, 1]) + size:
                raise ValueError("a trailer (Z) with the record's own length at its end")
            return order
    raise ValueError(f"a record of {int.from_bytes(data[2:4], 'little')} bytes, not {len(data)}")


def _parts(data: bytes, order: str) -> _Parts:
    found: dict[int, bytes] = {}
    for identity, value in _split(data[4:-4], order):
        if not found and identity != layout.HEADER:
            raise ValueError("a header token (H) after the record's first token")
        if identity in found:
            raise ValueError(f"one token {chr(identity)}, not two")
        found[identity] = value
    if layout.HEADER not in found or len(found[layout.HEADER]) < _FIXED:
        raise ValueError(f"a header of at least {_FIXED} bytes")
    return _Parts(
        found[layout.HEADER],
        found.get(layout.DATA, b""),
        found.get(layout.TOKENS, b""),
        found.get(layout.USER_TOKENS, b""),
    )


def _split(data: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    token = struct.Struct(f"{order}BBH")
    place = 0
    while place < len(data):
        if place + 4 > len(data):
            raise ValueError("complete tokens up to the end")
        identity, _, length = token.unpack_from(data, place)
        place += 4 + length
        if place > len(data):
            raise ValueError(f"token {identity:#04x} inside its container")
        yield identity, data[place - length : place]


def _tokens(area: bytes, order: str) -> Iterator[tuple[str, bytes]]:
    for identity, value in _split(area, order):
        yield chr(identity), value


def _header(parts: _Parts) -> tuple[tuple[int, ...], bytes]:
    """Return the header's fields and tail; big-endian only if the little-endian length does not match the data area."""
    for order in ("<", ">"):
        fields = struct.unpack_from(order + _FIELDS, parts.header)
        if fields[4] == len(parts.data):
            return fields, parts.header[_FIXED:]
    raise ValueError(f"a data area of {int.from_bytes(parts.header[4:6], 'little')} bytes, not {len(parts.data)}")


def _seal(data: bytes, tokens: dict[str, bytes], rba: int | None) -> tuple[int | None, int | None]:
    """Check the checksum token and remove it from the tokens.

    Records of other programs have no checksum token. A damaged ggshell record, whose token was altered or hidden inside
    another token, must not pass as such a record. The token always stands directly before the trailer, so bytes there
    that differ from it in only a few bits are reported as damage.
    """
    name = chr(layout.CHECKSUM)
    if name not in tokens:
        there = int.from_bytes(data[-layout.CLOSING_SIZE :][:4], "little")
        if (there ^ _CHECKSUM_TOKEN).bit_count() <= _FEW_BITS:
            raise ValueError("a checksum token among the GGS tokens")
        return None, None
    last, value = next(reversed(tokens.items()))
    if last != name or len(value) != layout.SEAL:
        raise ValueError(f"a checksum of {layout.SEAL} bytes after the other GGS tokens")
    if not _fits(data):
        raise ValueError("bytes that match their checksum")
    place, checksum = struct.unpack("<II", tokens.pop(name))
    if rba is not None and place != rba & layout.PLACE_MASK:
        raise ValueError(f"a record written for this position, not for RBA {place}")
    return checksum, place


def _fits(data: bytes) -> bool:
    rest = layout.UNSEALED
    return data[-rest : -rest + 4] == struct.pack("<I", crc32(data[:-rest]))


def _moment(io_time: int) -> datetime | None:
    """Return IO Time as an aware datetime; None for a time before year 1 (records of other programs without a time)."""
    try:
        return to_datetime(io_time - JULIAN_EPOCH_MICROSECONDS)
    except OverflowError:
        return None
