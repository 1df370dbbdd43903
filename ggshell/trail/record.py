"""One record, taken apart for looking at: every header field by its name, data, columns, tokens.

For Logdump, for tests, for whoever holds the bytes of one record.  Batches of rows go through ``decode``, which gives the
same values without an object a record.  Records as public listings show them (no checksum, older ones big-endian) are
understood as well.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from ggshell.clock import JULIAN_EPOCH_MICROSECONDS, to_datetime
from ggshell.errors import TrailError
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
    """The parts of one record.  ``tail`` is what follows the header's fixed bytes: a table index, or a name."""

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
        """The index of the table's definition; None where the tail is a name."""
        if not self.partition & layout.INDEXED or len(self.tail) != 2:
            return None
        return int.from_bytes(self.tail, "little")

    @property
    def name(self) -> str:
        """The table's name where the tail is one (Metadata, DDL, older trails)."""
        return "" if self.partition & layout.INDEXED else self.tail.rstrip(b"\0").decode(errors="replace")

    @property
    def is_before(self) -> bool:
        """Whether the record is the image before the update that the next record is (of a delete, its own row)."""
        return self.before_after == chr(layout.BEFORE)

    def named_user_tokens(self) -> dict[str, bytes]:
        """The user's tokens by name.  Raises TrailError when they cannot be taken apart (encrypted, another producer's)."""
        try:
            return decode_user_tokens(self.user_tokens)
        except ValueError as error:
            raise TrailError(f"user tokens that cannot be read: {error}") from None

    def columns(self) -> Columns:
        """(index, value behind its NULL indicator; None for NULL) of each column; of an update with a before part, the
        columns after.  Raises TrailError when the data area is no image, a fragment's for example."""
        return self._images()[1]

    def before_columns(self) -> Columns:
        """The columns of the before part of a key update or a unified update; none elsewhere."""
        return self._images()[0]

    def _images(self) -> tuple[Columns, Columns]:
        for order in ("<", ">"):  # trails of 12.1 and before hold big-endian numbers in the data area
            try:
                return self._split(order)
            except (ValueError, struct.error):
                continue
        raise TrailError(f"a data area of {len(self.data)} bytes that is no row image", where=f"IOType {self.io_type}")

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
    """Raises ValueError or struct.error when the lengths lead outside the image, or an indicator is none."""
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
    """Take apart the bytes of one record, from its ``G`` token to the end of its ``Z`` token.

    ``rba`` is the record's place, where it is known: a record that was written for another place is then refused.  Raises
    TrailError for anything that is not one whole, undamaged record.
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
        raise TrailError(f"not a whole trail record: expected {error}", where=where) from None
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
    """The order of a record's lengths, from the two that must be its own."""
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
            raise ValueError("a header token (H) behind the record's first token")
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
            raise ValueError("whole tokens up to the end")
        identity, _, length = token.unpack_from(data, place)
        place += 4 + length
        if place > len(data):
            raise ValueError(f"token {identity:#04x} inside what holds it")
        yield identity, data[place - length : place]


def _tokens(area: bytes, order: str) -> Iterator[tuple[str, bytes]]:
    for identity, value in _split(area, order):
        yield chr(identity), value


def _header(parts: _Parts) -> tuple[tuple[int, ...], bytes]:
    """The header's fields; big-endian only where that alone gives the data area's length."""
    for order in ("<", ">"):
        fields = struct.unpack_from(order + _FIELDS, parts.header)
        if fields[4] == len(parts.data):
            return fields, parts.header[_FIXED:]
    raise ValueError(f"a data area of {int.from_bytes(parts.header[4:6], 'little')} bytes, not {len(parts.data)}")


def _seal(data: bytes, tokens: dict[str, bytes], rba: int | None) -> tuple[int | None, int | None]:
    """Check the checksum token and take it out of the tokens.

    Records of other programs have none.  A record of ours whose checksum token only seems to be missing, because damage
    changed it or hid it in another, does not pass for one of those: the token has its fixed place before the trailer.
    """
    name = chr(layout.CHECKSUM)
    if name not in tokens:
        there = int.from_bytes(data[-layout.CLOSING_SIZE :][:4], "little")
        if (there ^ _CHECKSUM_TOKEN).bit_count() <= _FEW_BITS:
            raise ValueError("a checksum token among the GGS tokens")
        return None, None
    last, value = next(reversed(tokens.items()))
    if last != name or len(value) != layout.SEAL:
        raise ValueError(f"a checksum of {layout.SEAL} bytes behind the other GGS tokens")
    if not _fits(data):
        raise ValueError("bytes that fit their checksum")
    place, checksum = struct.unpack("<II", tokens.pop(name))
    if rba is not None and place != rba & layout.PLACE_MASK:
        raise ValueError(f"a record written for this place, not one for RBA {place}")
    return checksum, place


def _fits(data: bytes) -> bool:
    rest = layout.UNSEALED
    return data[-rest : -rest + 4] == struct.pack("<I", zlib.crc32(data[:-rest]))


def _moment(io_time: int) -> datetime | None:
    """IO Time as an aware datetime; None for times before year 1 (records of others that carry no time)."""
    try:
        return to_datetime(io_time - JULIAN_EPOCH_MICROSECONDS)
    except OverflowError:
        return None
