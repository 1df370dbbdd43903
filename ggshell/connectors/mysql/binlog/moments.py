"""Dates and times of the log as text, for all rows of a column at once. TIMESTAMP values are in UTC."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ggshell.connectors.mysql.binlog.cells import Bytes, Cells, Ints, matrix
from ggshell.record.ragged import everywhere

DATETIME_OFFSET: Final = 0x8000000000
TIME_OFFSETS: Final = {
    0: 0x800000,
    1: 0x80000000,
    2: 0x80000000,
    3: 0x8000000000,
    4: 0x8000000000,
    5: 0x800000000000,
    6: 0x800000000000,
}
_DAY: Final = 86_400
_EPOCH: Final = datetime(1970, 1, 1)
_YEARS: Final = 1900
_DIGITS: Final = np.array([f"{number:04d}" for number in range(10_000)], dtype="S4").view(np.uint8).reshape(-1, 4)
_PAIRS: Final = _DIGITS[:128, 2:]


def fraction_size(digits: int) -> int:
    """The bytes of a fraction of a second."""
    return (digits + 1) // 2


def date_cells(raw: Bytes, place: Ints) -> Cells:
    """DATE: day, month and year in three bytes."""
    packed = _little(raw, place, 3)
    buffer, text = matrix(len(place), 10)
    _put_date(text, packed >> 9, packed >> 5 & 15, packed & 31)
    return _fixed(buffer, len(place), 10)


def year_cells(raw: Bytes, place: Ints) -> Cells:
    value = raw[place].astype(np.int64)
    buffer, text = matrix(len(place), 4)
    text[:] = _DIGITS[np.where(value == 0, 0, value + _YEARS)]
    return _fixed(buffer, len(place), 4)


def datetime_cells(raw: Bytes, place: Ints, digits: int) -> Cells:
    """DATETIME(n): year and month, day, hour, minute and second as bits of five bytes, and the fraction."""
    packed = _big(raw, place, 5) - DATETIME_OFFSET
    width = 19 + (1 + digits if digits else 0)
    buffer, text = matrix(len(place), width)
    months = packed >> 22
    _put_date(text, months // 13, months % 13, packed >> 17 & 31)
    text[:, 10] = 0x20
    _put_clock(text[:, 11:], packed >> 12 & 31, packed >> 6 & 63, packed & 63)
    if digits:
        _put_fraction(text[:, 19:], _big(raw, place + 5, fraction_size(digits)), digits)
    return _fixed(buffer, len(place), width)


def timestamp_cells(raw: Bytes, place: Ints, digits: int, *, big: bool = True) -> Cells:
    """TIMESTAMP(n): seconds since 1970, and the fraction. Zero stands for the zero date."""
    seconds = _big(raw, place, 4) if big else _little(raw, place, 4)
    width = 19 + (1 + digits if digits else 0)
    buffer, text = matrix(len(place), width)
    text[:, :10] = _days()[np.minimum(seconds // _DAY, len(_days()) - 1)]
    text[:, 10] = 0x20
    clock = seconds % _DAY
    _put_clock(text[:, 11:], clock // 3600, clock // 60 % 60, clock % 60)
    zero = seconds == 0
    if digits:
        fraction = _big(raw, place + 4, fraction_size(digits))
        _put_fraction(text[:, 19:], fraction, digits)
        zero &= fraction == 0
    text[zero, :19] = np.frombuffer(b"0000-00-00 00:00:00", dtype=np.uint8)
    return _fixed(buffer, len(place), width)


def time_cells(raw: Bytes, place: Ints, digits: int) -> Cells:
    """TIME(n): a signed number of hours, minutes, seconds and fractions."""
    extra = fraction_size(digits)
    value = _big(raw, place, 3 + extra) - TIME_OFFSETS[digits]
    return _distinct(value, lambda number: packed_time(number, extra, digits))


def packed_time(number: int, extra: int, digits: int) -> bytes:
    """The text of a TIME(n) from its bits; ``extra``: the bytes of its fraction."""
    sign, number = ("-", -number) if number < 0 else ("", number)
    fraction = number & (1 << 8 * extra) - 1
    clock = number >> 8 * extra
    text = f"{sign}{clock >> 12 & 1023:02d}:{clock >> 6 & 63:02d}:{clock & 63:02d}"
    return (f"{text}.{fraction_text(fraction, digits)}" if digits else text).encode()


def fraction_text(fraction: int, digits: int) -> str:
    """The digits of a fraction; the log has an even number of them."""
    return f"{fraction:0{2 * fraction_size(digits)}d}"[:digits]


def time_text(packed: int) -> str:
    """The text of a time in binary JSON: the bits of TIME(6), with the fraction in the lower 24."""
    sign, packed = ("-", -packed) if packed < 0 else ("", packed)
    clock = packed >> 24
    return f"{sign}{clock >> 12 & 1023:02d}:{clock >> 6 & 63:02d}:{clock & 63:02d}.{packed & 0xFFFFFF:06d}"


def datetime_text(packed: int, *, date: bool) -> str:
    """The text of a date, or of a date and time, in binary JSON: the bits of DATETIME(6)."""
    clock, day, months = packed >> 24 & 0x1FFFF, packed >> 41 & 31, packed >> 46
    text = f"{months // 13:04d}-{months % 13:02d}-{day:02d}"
    return text if date else f"{text} {clock >> 12:02d}:{clock >> 6 & 63:02d}:{clock & 63:02d}.{packed & 0xFFFFFF:06d}"


def old_datetime_cells(raw: Bytes, place: Ints) -> Cells:
    """DATETIME of tables that were created before MySQL 5.6 or MariaDB 10.1: the digits as a number."""
    value = everywhere(raw, "<i8")[place].astype(np.int64)
    return _distinct(value, _old_datetime_text)


def _old_datetime_text(number: int) -> bytes:
    day, clock = divmod(number, 1_000_000)
    date = f"{day // 10_000:04d}-{day // 100 % 100:02d}-{day % 100:02d}"
    return f"{date} {clock // 10_000:02d}:{clock // 100 % 100:02d}:{clock % 100:02d}".encode()


def old_time_cells(raw: Bytes, place: Ints) -> Cells:
    """TIME of such tables: the digits as a signed number of three bytes."""
    value = _little(raw, place, 3)
    return _distinct(np.where(value >= 1 << 23, value - (1 << 24), value), _old_time_text)


def _old_time_text(number: int) -> bytes:
    sign, number = ("-", -number) if number < 0 else ("", number)
    return f"{sign}{number // 10_000:02d}:{number // 100 % 100:02d}:{number % 100:02d}".encode()


def _distinct(values: Ints, text: Callable[[int], bytes]) -> Cells:
    """Cells of values that are formatted one by one, each distinct one once."""
    known, index = np.unique(values, return_inverse=True)
    return Cells.table([text(int(value)) for value in known], index)


def _put_date(text: Bytes, year: Ints, month: Ints, day: Ints) -> None:
    text[:, :4] = _DIGITS[year]
    text[:, 4] = text[:, 7] = 0x2D
    text[:, 5:7] = _PAIRS[month]
    text[:, 8:10] = _PAIRS[day]


def _put_clock(text: Bytes, hour: Ints, minute: Ints, second: Ints) -> None:
    text[:, 0:2] = _PAIRS[hour]
    text[:, 2] = text[:, 5] = 0x3A
    text[:, 3:5] = _PAIRS[minute]
    text[:, 6:8] = _PAIRS[second]


def _put_fraction(text: Bytes, fraction: Ints, digits: int) -> None:
    text[:, 0] = 0x2E
    even = 2 * fraction_size(digits)
    for pair in range(even // 2):
        two = _PAIRS[fraction // 100 ** (even // 2 - 1 - pair) % 100]
        text[:, 1 + 2 * pair : 3 + 2 * pair] = two[:, : min(2, digits - 2 * pair)]


def _fixed(buffer: Bytes, rows: int, width: int) -> Cells:
    return Cells(buffer, np.arange(rows, dtype=np.int64) * width, np.full(rows, width, dtype=np.int64))


def _big(raw: Bytes, place: Ints, size: int) -> Ints:
    found = np.zeros(len(place), dtype=np.int64)
    for byte in range(size):
        found = found << 8 | raw[place + byte]
    return found


def _little(raw: Bytes, place: Ints, size: int) -> Ints:
    return everywhere(raw, "<u4")[place].astype(np.int64) & (1 << 8 * size) - 1


@cache
def _days() -> NDArray[np.uint8]:
    """The text of each day from 1970 to 2106, the range of TIMESTAMP."""
    days = [f"{_EPOCH + timedelta(days=day):%Y-%m-%d}" for day in range((1 << 32) // _DAY + 1)]
    return np.array(days, dtype="S10").view(np.uint8).reshape(-1, 10)
