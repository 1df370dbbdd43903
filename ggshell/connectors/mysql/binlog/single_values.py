"""The texts of single values of the log, for batches of so few rows that array operations would cost more than they save.

A test compares them with the texts that the columns of many rows have (``plan``). Rare types have no function here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from ggshell.connectors.mysql.binlog.charsets import BINARY, Charset, charset_of
from ggshell.connectors.mysql.binlog.moments import (
    DATETIME_OFFSET,
    TIME_OFFSETS,
    fraction_size,
    fraction_text,
    packed_time,
)
from ggshell.connectors.mysql.binlog.numbers import decimal_groups, double_text
from ggshell.connectors.mysql.binlog.table_map import ColumnType, LogColumn

Single = Callable[[bytes], bytes]
"""The text of a value, from its bytes in the log."""

_INTEGERS: Final = frozenset(
    {ColumnType.TINY, ColumnType.SHORT, ColumnType.INT24, ColumnType.LONG, ColumnType.LONGLONG}
)
_TEXTS: Final = frozenset({ColumnType.VARCHAR, ColumnType.VAR_STRING, ColumnType.STRING, ColumnType.BLOB})
_EPOCH: Final = datetime(1970, 1, 1)
_DOUBLE: Final = struct.Struct("<d")


def single_value(column: LogColumn) -> Single | None:
    """The function for a column's values; None if its type has none."""
    kind, digits = column.type, column.length
    if kind in _INTEGERS:
        signed = not column.unsigned
        return lambda value: b"%d" % int.from_bytes(value, "little", signed=signed)
    if kind in _TEXTS:
        return _text(column)
    found: dict[ColumnType, Single] = {
        ColumnType.NEWDECIMAL: lambda value: _decimal(value, column.length, column.scale),
        ColumnType.DOUBLE: lambda value: double_text(_DOUBLE.unpack(value)[0]).encode(),
        ColumnType.DATE: _date,
        ColumnType.NEWDATE: _date,
        ColumnType.DATETIME2: lambda value: _datetime(value, digits),
        ColumnType.TIMESTAMP2: lambda value: _timestamp(value, digits),
        ColumnType.TIME2: lambda value: _time(value, digits),
        ColumnType.ENUM: lambda value: _label(value, column.labels),
        ColumnType.SET: lambda value: _labels(value, column.labels),
    }
    return found.get(kind)


def _text(column: LogColumn) -> Single:
    charset = column.charset or charset_of(BINARY)
    if column.is_binary:
        width = column.length if column.type is ColumnType.STRING else 0  # the log omits zero bytes at its end
        return lambda value: b"\\x" + value.ljust(width, b"\0").hex().encode()
    return lambda value: _decoded(value, charset)


def _decoded(value: bytes, charset: Charset) -> bytes:
    if charset.direct or (charset.ascii and value.isascii()):
        return value
    return charset.decode(value).encode()


def _decimal(value: bytes, precision: int, scale: int) -> bytes:
    """Groups of up to nine digits, big-endian; all bits of a negative number are inverted."""
    sign = b"" if value[0] & 0x80 else b"-"
    if sign:
        value = bytes(byte ^ 0xFF for byte in value)
    data, digits, at = bytes([value[0] ^ 0x80]) + value[1:], b"", 0
    for count, size in decimal_groups(precision, scale):
        digits += b"%0*d" % (count, int.from_bytes(data[at : at + size], "big"))
        at += size
    whole = digits[: precision - scale].lstrip(b"0") or b"0"
    return sign + whole + (b"." + digits[precision - scale :] if scale else b"")


def _date(value: bytes) -> bytes:
    packed = int.from_bytes(value, "little")
    return b"%04d-%02d-%02d" % (packed >> 9, packed >> 5 & 15, packed & 31)


def _datetime(value: bytes, digits: int) -> bytes:
    packed = int.from_bytes(value[:5], "big") - DATETIME_OFFSET
    months = packed >> 22
    date = b"%04d-%02d-%02d" % (months // 13, months % 13, packed >> 17 & 31)
    clock = b" %02d:%02d:%02d" % (packed >> 12 & 31, packed >> 6 & 63, packed & 63)
    return date + clock + _fraction(value[5:], digits)


def _timestamp(value: bytes, digits: int) -> bytes:
    seconds, fraction = int.from_bytes(value[:4], "big"), _fraction(value[4:], digits)
    if not any(value):
        return b"0000-00-00 00:00:00" + fraction
    return str(_EPOCH + timedelta(seconds=seconds)).encode() + fraction


def _time(value: bytes, digits: int) -> bytes:
    return packed_time(int.from_bytes(value, "big") - TIME_OFFSETS[digits], fraction_size(digits), digits)


def _fraction(value: bytes, digits: int) -> bytes:
    return b"." + fraction_text(int.from_bytes(value, "big"), digits).encode() if digits else b""


def _label(value: bytes, labels: tuple[bytes, ...]) -> bytes:
    number = int.from_bytes(value, "little")
    return labels[number - 1] if 0 < number <= len(labels) else b""


def _labels(value: bytes, labels: tuple[bytes, ...]) -> bytes:
    bits = int.from_bytes(value, "little")
    return b",".join(label for bit, label in enumerate(labels) if bits >> bit & 1)
