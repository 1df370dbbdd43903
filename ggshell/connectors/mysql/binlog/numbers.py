"""Numbers of the log as decimal text, for all rows of a column at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ggshell.connectors.mysql.binlog.cells import WINDOW, Bytes, Cells, Ints, matrix

_CHUNK: Final = 10_000
_DIGITS: Final = np.array([f"{number:04d}" for number in range(_CHUNK)], dtype="S4").view("<u4")
"""The four digits of each number below 10,000."""
_POWERS: Final = np.array([10**power for power in range(1, 20)], dtype=np.uint64)
_MINUS, _ZERO, _DOT = 0x2D, 0x30, 0x2E
_GROUP: Final = 9
_GROUP_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
"""The bytes that hold so many digits of a DECIMAL."""
_EXACT: Final = 15
"""A decimal number of up to so many digits is the shortest text of the DOUBLE that it is read as; of a FLOAT, 6."""
_EXACT_SINGLE: Final = 6
_LARGEST_POINT: Final = 15
"""The server writes numbers with more digits before the point, and those with as many zeros after it, with an exponent."""


def integer_cells(values: NDArray[np.integer]) -> Cells:
    """The decimal text of integers, signed or not."""
    negative: NDArray[np.bool_] | None = None
    if values.dtype.kind == "i":
        negative = values < 0
        if negative.any():
            values = np.where(negative, (~values).astype(np.uint64) + np.uint64(1), values.astype(np.uint64))
        else:
            negative = None
    largest = int(values.max(initial=0))
    count = np.searchsorted(_POWERS, values.astype(np.uint64), side="right") + 1
    chunks = (len(str(largest)) + 3) // 4
    rest: NDArray[Any] = values.astype(np.uint32 if largest < 1 << 32 else np.uint64)
    divisor = rest.dtype.type(_CHUNK)
    buffer = np.empty(len(values) * (chunks + 1) * 4 + WINDOW, dtype=np.uint8)
    table = buffer[: len(values) * (chunks + 1) * 4].view("<u4").reshape(len(values), chunks + 1)
    for chunk in range(chunks, 1, -1):
        quotient = rest // divisor
        table[:, chunk] = _DIGITS[rest - quotient * divisor]
        rest = quotient
    table[:, 1] = _DIGITS[rest]
    place = np.arange(1, len(values) + 1, dtype=np.int64) * ((chunks + 1) * 4) - count
    if negative is None:
        return Cells(buffer, place, count)
    place -= negative
    buffer[place[negative]] = _MINUS
    return Cells(buffer, place, count + negative)


def decimal_size(precision: int, scale: int) -> int:
    """The bytes of a DECIMAL in the log."""
    return sum(size for _, size in decimal_groups(precision, scale))


def decimal_groups(precision: int, scale: int) -> list[tuple[int, int]]:
    """The groups of digits of a DECIMAL, before and after its point: (digits, bytes). The odd group is the outer one."""
    whole, fraction = ([_GROUP] * (digits // _GROUP) for digits in (precision - scale, scale))
    counts = [(precision - scale) % _GROUP, *whole, *fraction, scale % _GROUP]
    return [(count, _GROUP_BYTES[count]) for count in counts if count]


def decimal_cells(raw: Bytes, place: Ints, precision: int, scale: int) -> Cells:
    """The text of DECIMAL values: groups of nine digits, big-endian; all bits of a negative number are inverted."""
    whole, rows = precision - scale, len(place)
    data = raw[place[:, None] + np.arange(decimal_size(precision, scale))]
    negative = data[:, 0] < 0x80
    data[negative] ^= 0xFF
    data[:, 0] ^= 0x80
    digits = max(whole, 1)
    width = 1 + digits + (1 + scale if scale else 0)
    buffer, text = matrix(rows, width)
    text[:, :2] = _ZERO
    if scale:
        text[:, 1 + digits] = _DOT
    _put_groups(data, text, whole, decimal_groups(precision, scale), 1 + digits - whole)
    nonzero = text[:, 1 : 1 + digits] != _ZERO
    nonzero[:, -1] = True
    shift = nonzero.argmax(axis=1)
    start = np.arange(rows, dtype=np.int64) * width + 1 + shift - negative
    buffer[start[negative]] = _MINUS
    return Cells(buffer, start, width - 1 - shift + negative)


def _put_groups(data: Bytes, text: Bytes, whole: int, groups: Sequence[tuple[int, int]], column: int) -> None:
    """Write the groups of digits from a column on; the point is after ``whole`` digits."""
    at = done = 0
    for count, size in groups:
        if done == whole:
            column += 1
        value = np.zeros(len(data), dtype=np.uint32)
        for byte in range(at, at + size):
            value = value << np.uint32(8) | data[:, byte]
        text[:, column : column + count] = _nine_digits(value, count)
        at += size
        column += count
        done += count


def _nine_digits(value: NDArray[np.uint32], count: int) -> Bytes:
    """The last digits of numbers, padded with zeros."""
    chunks = (count + 3) // 4
    table = np.empty((len(value), chunks), dtype="<u4")
    for chunk in range(chunks - 1, 0, -1):
        quotient = value // np.uint32(_CHUNK)
        table[:, chunk] = _DIGITS[value - quotient * np.uint32(_CHUNK)]
        value = quotient
    table[:, 0] = _DIGITS[value]
    return table.view(np.uint8)[:, 4 * chunks - count :]


def bit_cells(raw: Bytes, place: Ints, bits: int) -> Cells:
    """The digits 0 and 1 of BIT values."""
    size = (bits + 7) // 8
    found = np.unpackbits(raw[place[:, None] + np.arange(size)], axis=1)[:, 8 * size - bits :]
    buffer, text = matrix(len(place), bits)
    np.add(found, _ZERO, out=text)
    return Cells(buffer, np.arange(len(place), dtype=np.int64) * bits, np.full(len(place), bits, dtype=np.int64))


def float_cells(values: NDArray[np.floating]) -> Cells:
    """The shortest text that is read as the same number, in the server's form.

    The server itself shows only six digits of a FLOAT; the log has the whole value, and so has its text here.
    """
    single = values.dtype.itemsize == 4
    exact = values.astype(np.float64)
    power, plain = _decimals(exact, single=single)
    if not plain.all():
        write = _single_text if single else double_text
        texts = (
            [write(value).encode() for value in values[~plain].tolist()]
            if not single
            else [write(value).encode() for value in values[~plain]]
        )
        if not plain.any():
            return Cells.of(texts)
        return _merged(_plain_cells(exact[plain], power[plain]), Cells.of(texts), plain)
    return _plain_cells(exact, power)


def _decimals(values: NDArray[np.float64], *, single: bool) -> tuple[Ints, NDArray[np.bool_]]:
    """How many decimals each number has, and whether its text follows from them: it is short enough to be exact."""
    limit = 10.0 ** (_EXACT_SINGLE if single else _EXACT)
    power = np.full(len(values), -1, dtype=np.int64)
    with np.errstate(all="ignore"):
        for decimals in range(7):
            open_ = power < 0
            if not open_.any():
                break
            scaled = np.rint(values[open_] * 10.0**decimals)
            back = scaled / 10.0**decimals
            same = (back.astype(np.float32) if single else back) == values[open_]
            fits = same & (np.abs(scaled) < limit)
            power[np.flatnonzero(open_)[fits]] = decimals
    return power, (power >= 0) & ~((values == 0) & np.signbit(values))


def _plain_cells(values: NDArray[np.float64], power: Ints) -> Cells:
    """The text of numbers with a given count of decimals: the digits as an integer, and a point among them."""
    scale = int(power.max(initial=0))
    own = 10**power  # a number has few enough digits at its own count of decimals, not at that of another one
    digits = np.rint(np.abs(values) * own).astype(np.int64)
    whole, fraction = digits // own, digits % own * 10 ** (scale - power)
    left = (
        integer_cells(np.where(np.signbit(values), -whole, whole)) if not (values < 0).any() else _signed(whole, values)
    )
    if not scale:
        return left
    rows, wide = len(values), int(left.length.max(initial=0))
    buffer, text = matrix(rows, wide + 1 + scale)
    columns = np.arange(wide)
    shift = wide - left.length
    text[:, :wide] = left.buffer[np.maximum(left.place[:, None] + columns - shift[:, None], 0)]
    text[:, wide] = _DOT
    text[:, wide + 1 :] = _nine_digits(fraction.astype(np.uint32), scale)
    length = left.length + np.where(power > 0, power + 1, 0)
    return Cells(buffer, np.arange(rows, dtype=np.int64) * (wide + 1 + scale) + shift, length)


def _signed(whole: Ints, values: NDArray[np.float64]) -> Cells:
    """The text of integers with the signs of other numbers, so that -0.5 begins with ``-0``."""
    cells = integer_cells(whole)
    negative = values < 0
    place = cells.place - negative
    cells.buffer[place[negative]] = _MINUS
    return Cells(cells.buffer, place, cells.length + negative)


def _merged(first: Cells, second: Cells, of_first: NDArray[np.bool_]) -> Cells:
    place, length = np.empty(len(of_first), dtype=np.int64), np.empty(len(of_first), dtype=np.int64)
    place[of_first], length[of_first] = first.place, first.length
    place[~of_first], length[~of_first] = second.place + len(first.buffer), second.length
    return Cells(np.concatenate([first.buffer, second.buffer]), place, length)


def double_text(value: float) -> str:
    """The text of a DOUBLE as the server writes it."""
    return _server_form(repr(value))


def _single_text(value: np.float32) -> str:
    return _server_form(np.format_float_scientific(value, unique=True, trim="-"))


def _server_form(text: str) -> str:
    """Write a number's digits and exponent in the server's form: ``1e15``, ``0.001``, ``123.5``."""
    digits, _, exponent = text.lower().partition("e")
    sign, digits = ("-", digits[1:]) if digits.startswith("-") else ("", digits)
    whole, _, fraction = digits.partition(".")
    point = len(whole) + int(exponent or 0)
    plain = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(plain)
    plain = plain.rstrip("0")
    if not plain:
        return f"{sign}0"
    if point > _LARGEST_POINT or point < 1 - _LARGEST_POINT:
        mantissa = plain[0] + (f".{plain[1:]}" if len(plain) > 1 else "")
        return f"{sign}{mantissa}e{point - 1}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{plain}"
    if point >= len(plain):
        return f"{sign}{plain}{'0' * (point - len(plain))}"
    return f"{sign}{plain[:point]}.{plain[point:]}"
