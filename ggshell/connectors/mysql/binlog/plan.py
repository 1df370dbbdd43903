"""How the rows of one table are read: where each row and each value begins, and how a column becomes text.

A plan is made once for a table map. Finding the rows is the only step that is done row by row: a row of the log does not
say how long it is. The columns of all rows are then read together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ggshell.connectors.mysql.binlog import moments, numbers, strings
from ggshell.connectors.mysql.binlog.cells import WINDOW, Bytes, Cells, Flags, Ints, Step, padded
from ggshell.connectors.mysql.binlog.charsets import BINARY, charset_of
from ggshell.connectors.mysql.binlog.events import DAMAGED, UNSUPPORTED
from ggshell.connectors.mysql.binlog.json_binary import json_text
from ggshell.connectors.mysql.binlog.single_values import single_value
from ggshell.connectors.mysql.binlog.table_map import ColumnType, LogColumn, TableMap
from ggshell.errors import CaptureError
from ggshell.record.ragged import everywhere
from ggshell.record.update_images import UNCHANGED, Value

_INTEGERS: Final = {
    ColumnType.TINY: ("<i1", "<u1"),
    ColumnType.SHORT: ("<i2", "<u2"),
    ColumnType.LONG: ("<i4", "<u4"),
    ColumnType.LONGLONG: ("<i8", "<u8"),
}
_FIXED: Final = {
    ColumnType.TINY: 1,
    ColumnType.SHORT: 2,
    ColumnType.INT24: 3,
    ColumnType.LONG: 4,
    ColumnType.LONGLONG: 8,
    ColumnType.FLOAT: 4,
    ColumnType.DOUBLE: 8,
    ColumnType.YEAR: 1,
    ColumnType.DATE: 3,
    ColumnType.NEWDATE: 3,
    ColumnType.TIMESTAMP: 4,
    ColumnType.DATETIME: 8,
    ColumnType.TIME: 3,
}
_STRINGS: Final = frozenset(
    {ColumnType.VARCHAR, ColumnType.VARCHAR_COMPRESSED, ColumnType.VAR_STRING, ColumnType.STRING}
)
_LONG_STRINGS: Final = frozenset(
    {ColumnType.BLOB, ColumnType.BLOB_COMPRESSED, ColumnType.JSON, ColumnType.GEOMETRY, ColumnType.VECTOR}
)

Convert = Callable[[Bytes, Ints, Ints], Cells]
"""The text of values, from the buffer, their places and their sizes."""
RawValues = list[bytes | None]
"""The values of one image as the log has them, in the order of its columns; None is NULL."""
Pattern = tuple[tuple[int, int], ...]
"""The columns of a row: bytes to skip, then the bytes of a length that says how much more to skip (0: none)."""


class Width(NamedTuple):
    """The size of a column's values: ``fixed`` bytes or, if ``prefix`` is not 0, a length of so many bytes before them."""

    fixed: int
    prefix: int = 0


class TablePlan:
    """The plan of one table."""

    def __init__(self, table: TableMap) -> None:
        self.table = table
        self._widths = [_width(column) for column in table.columns]
        self._converts = [_convert(column, table) for column in table.columns]
        self._singles = [
            single_value(column) or partial(_one_of_array, convert)
            for column, convert in zip(table.columns, self._converts, strict=True)
        ]
        self._known: dict[tuple[int, ...], dict[bytes, Pattern]] = {}

    def starts(self, data: bytes, place: int, end: int, images: Sequence[tuple[int, ...]]) -> list[int]:
        """Return where the images begin that an event has between two places; each row has one of each of ``images``.

        Raises CaptureError if the rows do not end where the event does.
        """
        found: list[int] = []
        known = [(columns, (len(columns) + 7) // 8, self._by_nulls(columns)) for columns in images]
        while place < end:
            for columns, size, patterns in known:
                found.append(place)
                nulls = data[place : place + size]
                place += size
                pattern = patterns.get(nulls)
                if pattern is None:
                    pattern = patterns[nulls] = self._pattern(columns, nulls)
                for skip, width in pattern:
                    place += skip
                    if width == 1:
                        place += data[place] + 1
                    elif width == 2:
                        place += (data[place] | data[place + 1] << 8) + 2
                    elif width:
                        place += int.from_bytes(data[place : place + width], "little") + width
        if place != end:
            raise CaptureError(f"the rows of {self.table.name} in the binary log do not fit its columns", code=DAMAGED)
        return found

    def _by_nulls(self, columns: tuple[int, ...]) -> dict[bytes, Pattern]:
        found = self._known.get(columns)
        if found is None:
            found = self._known[columns] = {}
        return found

    def _pattern(self, columns: tuple[int, ...], nulls: bytes) -> Pattern:
        steps: list[tuple[int, int]] = []
        skip = 0
        for bit, index in enumerate(columns):
            if nulls[bit >> 3] & 1 << (bit & 7):
                continue
            width = self._widths[index]
            skip += width.fixed
            if width.prefix:
                steps.append((skip, width.prefix))
                skip = 0
        return (*steps, (skip, 0)) if skip else tuple(steps)

    def values(self, raw: Bytes, starts: Ints, columns: tuple[int, ...]) -> list[RawColumn]:
        """Find the values of images that begin at some places; ``raw`` has room for a window after the last one."""
        place = starts + (len(columns) + 7) // 8
        found: list[RawColumn] = []
        for bit, index in enumerate(columns):
            value, size = _values(raw, place, self._widths[index])
            null = raw[starts + (bit >> 3)] & (1 << (bit & 7)) != 0
            if null.any():
                place = np.where(null, place, value + size)
                size = np.where(null, -1, size)
            else:
                place = value + size
            found.append(RawColumn(index, value, size))
        return found

    def raw_values(self, data: bytes, place: int, columns: tuple[int, ...]) -> tuple[RawValues, int]:
        """The values of one image as the log has them, without their lengths, and the place after the image."""
        nulls, place = data[place : place + (len(columns) + 7) // 8], place + (len(columns) + 7) // 8
        found: RawValues = []
        for bit, index in enumerate(columns):
            if nulls[bit >> 3] & 1 << (bit & 7):
                found.append(None)
                continue
            size, prefix = self._widths[index]
            if prefix:
                size = int.from_bytes(data[place : place + prefix], "little")
                place += prefix
            found.append(data[place : place + size])
            place += size
        if place > len(data):
            raise CaptureError(f"the rows of {self.table.name} in the binary log do not fit its columns", code=DAMAGED)
        return found, place

    def prefix(self, column: int) -> int:
        """How many bytes of length precede the values of a column; 0 if all have the same size."""
        return self._widths[column].prefix

    def row(self, data: bytes, place: int, columns: tuple[int, ...]) -> list[Value]:
        """The values of one image, UNCHANGED for columns that it does not have. Slower for many rows than ``values``."""
        found: list[Value] = [UNCHANGED] * len(self.table.columns)
        values, _ = self.raw_values(data, place, columns)
        for index, value in zip(columns, values, strict=True):
            found[index] = None if value is None else self._singles[index](value)
        return found

    def step(self, raw: Bytes, column: RawColumn, keep: Flags | None = None) -> Step:
        """Convert a column. ``keep``: the rows whose images have it (None: all)."""
        _, place, size = column
        null = size < 0
        if keep is None and not null.any():
            return Step(column.column, None, self._converts[column.column](raw, place, size))
        rows = np.flatnonzero(~null if keep is None else keep & ~null)
        nulls = np.flatnonzero(null if keep is None else keep & null)
        return Step(column.column, rows, self._converts[column.column](raw, place[rows], size[rows]), nulls)


class RawColumn(NamedTuple):
    """One column of many images as the log has it: the places of the values, and their sizes (-1 for NULL)."""

    column: int
    place: Ints
    size: Ints

    def taken(self, rows: Ints) -> RawColumn:
        return RawColumn(self.column, self.place[rows], self.size[rows])

    def differs(self, raw: Bytes, other: RawColumn) -> Flags:
        """Where the value is another one than that of the same column in other images."""
        found: Flags = np.not_equal(self.size, other.size)
        size = np.where(found, 0, self.size)
        longest = int(size.max(initial=0))
        if longest > WINDOW:
            for row in np.flatnonzero(size > WINDOW).tolist():
                mine, theirs, count = int(self.place[row]), int(other.place[row]), int(size[row])
                found[row] = raw[mine : mine + count].tobytes() != raw[theirs : theirs + count].tobytes()
            size = np.where(size > WINDOW, 0, size)
            longest = int(size.max(initial=0))
        words: NDArray[np.uint64] = everywhere(raw, "<u8")  # type: ignore[assignment]
        for at in range(0, longest, 8):
            unequal = words[self.place + at] ^ words[other.place + at]
            found |= np.not_equal(unequal & _MASKS[np.clip(size - at, 0, 8)], 0)
        return found


_MASKS: Final = np.array([(1 << 8 * count) - 1 for count in range(9)], dtype=np.uint64)
"""The bits of the first bytes of a little-endian word."""


def _values(raw: Bytes, place: Ints, width: Width) -> tuple[Ints, Ints]:
    """The places and sizes of values."""
    if not width.prefix:
        return place, np.full(len(place), width.fixed, dtype=np.int64)
    if width.prefix == 1:
        return place + 1, raw[place].astype(np.int64)
    if width.prefix == 2:
        return place + 2, everywhere(raw, "<u2")[place].astype(np.int64)
    size = everywhere(raw, "<u4")[place].astype(np.int64)
    return place + width.prefix, size & (1 << 8 * width.prefix) - 1


def _width(column: LogColumn) -> Width:
    kind = column.type
    if kind in _FIXED:
        return Width(_FIXED[kind])
    if kind in _STRINGS:
        return Width(0, 1 if column.length < 256 else 2)
    if kind in _LONG_STRINGS:
        return Width(0, column.length)
    if kind in (ColumnType.ENUM, ColumnType.SET):
        return Width(column.length)
    if kind is ColumnType.NEWDECIMAL:
        return Width(numbers.decimal_size(column.length, column.scale))
    if kind is ColumnType.BIT:
        return Width((column.length + 7) // 8)
    if kind is ColumnType.NULL:
        return Width(0)
    seconds = {ColumnType.TIMESTAMP2: 4, ColumnType.DATETIME2: 5, ColumnType.TIME2: 3}
    return Width(seconds[kind] + moments.fraction_size(column.length))


def _convert(column: LogColumn, table: TableMap) -> Convert:
    """The function that turns the values of a column into text."""
    kind, length = column.type, column.length
    found: Convert | None = _convert_number(column) or _convert_moment(column) or _convert_string(column)
    if kind in (ColumnType.ENUM, ColumnType.SET):
        cells, labels = (strings.label_cells if kind is ColumnType.ENUM else strings.set_cells), column.labels
        found = lambda raw, place, size: cells(_little(raw, place, length), labels)  # noqa: E731
    if found is None:
        raise CaptureError(
            f"column {column.name} of {table.name} has the type {kind.name}, which is not supported",
            code=UNSUPPORTED,
            hint="leave the table out, or change the type",
        )
    return found


def _convert_number(column: LogColumn) -> Convert | None:
    kind, length, scale, unsigned = column.type, column.length, column.scale, column.unsigned
    if kind in _INTEGERS:
        form = _INTEGERS[kind][unsigned]
        return lambda raw, place, size: numbers.integer_cells(everywhere(raw, form)[place])
    if kind is ColumnType.INT24:
        return lambda raw, place, size: numbers.integer_cells(_medium(raw, place, unsigned=unsigned))
    if kind is ColumnType.NEWDECIMAL:
        return lambda raw, place, size: numbers.decimal_cells(raw, place, length, scale)
    if kind in (ColumnType.FLOAT, ColumnType.DOUBLE):
        code = "<f4" if kind is ColumnType.FLOAT else "<f8"
        return lambda raw, place, size: numbers.float_cells(everywhere(raw, code)[place])  # type: ignore[arg-type]
    if kind is ColumnType.BIT:
        return lambda raw, place, size: numbers.bit_cells(raw, place, length)
    return None


def _convert_moment(column: LogColumn) -> Convert | None:
    digits = column.length
    found: dict[ColumnType, Convert] = {
        ColumnType.YEAR: lambda raw, place, size: moments.year_cells(raw, place),
        ColumnType.DATE: lambda raw, place, size: moments.date_cells(raw, place),
        ColumnType.NEWDATE: lambda raw, place, size: moments.date_cells(raw, place),
        ColumnType.TIMESTAMP2: lambda raw, place, size: moments.timestamp_cells(raw, place, digits),
        ColumnType.DATETIME2: lambda raw, place, size: moments.datetime_cells(raw, place, digits),
        ColumnType.TIME2: lambda raw, place, size: moments.time_cells(raw, place, digits),
        ColumnType.TIMESTAMP: lambda raw, place, size: moments.timestamp_cells(raw, place, 0, big=False),
        ColumnType.DATETIME: lambda raw, place, size: moments.old_datetime_cells(raw, place),
        ColumnType.TIME: lambda raw, place, size: moments.old_time_cells(raw, place),
    }
    return found.get(column.type)


def _convert_string(column: LogColumn) -> Convert | None:
    kind, length, charset = column.type, column.length, column.charset or charset_of(BINARY)
    if kind in (ColumnType.BLOB_COMPRESSED, ColumnType.VARCHAR_COMPRESSED):
        return lambda raw, place, size: strings.compressed_cells(raw, place, size, charset)
    if kind is ColumnType.JSON:
        return lambda raw, place, size: strings.each_cells(raw, place, size, json_text)
    if kind is ColumnType.GEOMETRY:
        return strings.shape_cells
    if kind is ColumnType.VECTOR:
        return strings.bytes_cells
    if kind not in _STRINGS and kind is not ColumnType.BLOB:
        return None
    if not column.is_binary:
        return lambda raw, place, size: strings.text_cells(raw, place, size, charset)
    if kind is ColumnType.STRING:
        return lambda raw, place, size: strings.fixed_bytes_cells(raw, place, size, length)
    return strings.bytes_cells


def _one_of_array(convert: Convert, value: bytes) -> bytes:
    """The text of one value of a type that has no function for single values."""
    return convert(padded(value), np.zeros(1, np.int64), np.array([len(value)])).values()[0]


def _medium(raw: Bytes, place: Ints, *, unsigned: bool) -> Ints:
    value = everywhere(raw, "<u4")[place].astype(np.int64) & 0xFFFFFF
    return value if unsigned else np.where(value >= 1 << 23, value - (1 << 24), value)


def _little(raw: Bytes, place: Ints, size: int) -> Ints:
    """Unsigned little-endian numbers of 1 to 8 bytes; those of 8 bytes wrap to negative ones."""
    found = np.zeros(len(place), dtype=np.int64)
    for byte in range(size):
        found |= raw[place + byte].astype(np.int64) << 8 * byte
    return found
