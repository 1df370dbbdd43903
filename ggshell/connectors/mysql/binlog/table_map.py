"""Table map events: the columns of a table as the rows that follow have them, with names, signs, labels and key.

The optional metadata (names and what else a type alone does not say) requires ``binlog_row_metadata = FULL``. Without it,
rows cannot be assigned to columns, and the table is refused with a message that names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Any, Final, NamedTuple

from ggshell.connectors.mysql.binlog.charsets import BINARY, Charset, charset_of
from ggshell.connectors.mysql.binlog.events import HEADER_SIZE, UNSUPPORTED, packed, packed_text
from ggshell.errors import CaptureError
from ggshell.record.definition import Column, TableDefinition
from ggshell.types import TableName


class ColumnType(IntEnum):
    """The types of columns in the log. Those from ENUM on are found in the metadata of a STRING."""

    TINY = 1
    SHORT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    NULL = 6
    TIMESTAMP = 7
    LONGLONG = 8
    INT24 = 9
    DATE = 10
    TIME = 11
    DATETIME = 12
    YEAR = 13
    NEWDATE = 14
    VARCHAR = 15
    BIT = 16
    TIMESTAMP2 = 17
    DATETIME2 = 18
    TIME2 = 19
    VECTOR = 242
    BLOB_COMPRESSED = 140
    VARCHAR_COMPRESSED = 141
    JSON = 245
    NEWDECIMAL = 246
    ENUM = 247
    SET = 248
    BLOB = 252
    VAR_STRING = 253
    STRING = 254
    GEOMETRY = 255


class Field(IntEnum):
    """The kinds of optional metadata."""

    SIGNEDNESS = 1
    DEFAULT_CHARSET = 2
    COLUMN_CHARSET = 3
    COLUMN_NAME = 4
    SET_LABELS = 5
    ENUM_LABELS = 6
    GEOMETRY_TYPE = 7
    PRIMARY_KEY = 8
    PRIMARY_KEY_WITH_PREFIX = 9
    ENUM_AND_SET_DEFAULT_CHARSET = 10
    ENUM_AND_SET_COLUMN_CHARSET = 11


_NUMERIC: Final = frozenset(
    {
        ColumnType.TINY,
        ColumnType.SHORT,
        ColumnType.INT24,
        ColumnType.LONG,
        ColumnType.LONGLONG,
        ColumnType.NEWDECIMAL,
        ColumnType.FLOAT,
        ColumnType.DOUBLE,
    }
)
_TEXTS: Final = frozenset(
    {
        ColumnType.STRING,
        ColumnType.VAR_STRING,
        ColumnType.VARCHAR,
        ColumnType.BLOB,
        ColumnType.BLOB_COMPRESSED,
        ColumnType.VARCHAR_COMPRESSED,
    }
)
_WITH_CHARSET: Final = _TEXTS | {ColumnType.VECTOR}
"""The types that the list of character sets has; that of a VECTOR is binary."""
_LABELED: Final = frozenset({ColumnType.ENUM, ColumnType.SET})
_TWO_BYTES: Final = frozenset(
    {
        ColumnType.VARCHAR,
        ColumnType.VARCHAR_COMPRESSED,
        ColumnType.BIT,
        ColumnType.NEWDECIMAL,
        ColumnType.STRING,
        ColumnType.VAR_STRING,
        ColumnType.ENUM,
        ColumnType.SET,
    }
)
_ONE_BYTE: Final = frozenset(
    {
        ColumnType.FLOAT,
        ColumnType.DOUBLE,
        ColumnType.BLOB,
        ColumnType.BLOB_COMPRESSED,
        ColumnType.GEOMETRY,
        ColumnType.JSON,
        ColumnType.VECTOR,
        ColumnType.TIMESTAMP2,
        ColumnType.DATETIME2,
        ColumnType.TIME2,
    }
)
GEOMETRIES: Final = (
    "geometry",
    "point",
    "linestring",
    "polygon",
    "multipoint",
    "multilinestring",
    "multipolygon",
    "geometrycollection",
)
_INTEGERS: Final = {
    ColumnType.TINY: "tinyint",
    ColumnType.SHORT: "smallint",
    ColumnType.INT24: "mediumint",
    ColumnType.LONG: "int",
    ColumnType.LONGLONG: "bigint",
}
_PLAIN: Final = {
    ColumnType.FLOAT: "float",
    ColumnType.DOUBLE: "double",
    ColumnType.DATE: "date",
    ColumnType.NEWDATE: "date",
    ColumnType.YEAR: "year",
    ColumnType.TIMESTAMP: "timestamp",
    ColumnType.DATETIME: "datetime",
    ColumnType.TIME: "time",
    ColumnType.JSON: "json",
    ColumnType.ENUM: "enum",
    ColumnType.SET: "set",
    ColumnType.VECTOR: "vector",
}
_FRACTIONAL: Final = {ColumnType.TIMESTAMP2: "timestamp", ColumnType.DATETIME2: "datetime", ColumnType.TIME2: "time"}
_BLOBS: Final = {1: "tiny", 2: "", 3: "medium", 4: "long"}


class LogColumn(NamedTuple):
    """One column of the log.

    ``length``: the size in bytes (strings), the bytes of a length (BLOB), the digits of a fraction (times), the precision
    (DECIMAL), the bits (BIT), or the bytes of a number (ENUM, SET). ``scale``: of a DECIMAL.
    """

    name: str
    type: ColumnType
    nullable: bool
    length: int = 0
    scale: int = 0
    unsigned: bool = False
    charset: Charset | None = None
    labels: tuple[bytes, ...] = ()
    geometry: str = "geometry"

    @property
    def is_binary(self) -> bool:
        return self.charset is None or self.charset.name == "binary"

    @property
    def type_name(self) -> str:
        """The type as the database writes it, as far as the log says it."""
        kind = self.type
        if kind in _INTEGERS:
            return _INTEGERS[kind] + (" unsigned" if self.unsigned else "")
        if kind in _FRACTIONAL:
            return _FRACTIONAL[kind] + (f"({self.length})" if self.length else "")
        if kind is ColumnType.NEWDECIMAL:
            return f"decimal({self.length},{self.scale})" + (" unsigned" if self.unsigned else "")
        if kind is ColumnType.BIT:
            return f"bit({self.length})"
        if kind is ColumnType.GEOMETRY:
            return self.geometry
        if kind in (ColumnType.BLOB, ColumnType.BLOB_COMPRESSED):
            return _BLOBS.get(self.length, "") + ("blob" if self.is_binary else "text")
        if kind in _TEXTS:
            return self._string_name(fixed=kind is ColumnType.STRING)
        return _PLAIN.get(kind, kind.name.lower())

    def _string_name(self, *, fixed: bool) -> str:
        if self.is_binary:
            return f"{'binary' if fixed else 'varbinary'}({self.length})"
        width = self.charset.width if self.charset is not None else 1
        return f"{'char' if fixed else 'varchar'}({self.length // width})"


class TableMap(NamedTuple):
    """A table as the rows after the event have it. ``key``: the indexes of the primary key, empty if it has none."""

    number: int
    name: TableName
    columns: tuple[LogColumn, ...]
    key: tuple[int, ...]

    def definition(self, keycols: tuple[str, ...] = ()) -> TableDefinition:
        """The definition for the trail. ``keycols``: the names of KEYCOLS, which replace the primary key."""
        columns = tuple(
            Column(column.name, column.type_name, int(column.type), column.nullable) for column in self.columns
        )
        names = [column.name for column in columns]
        key = tuple(names.index(name) for name in keycols if name in names) if keycols else self.key
        return TableDefinition(self.name, columns, key)


def table_number(event: bytes) -> int:
    return int.from_bytes(event[HEADER_SIZE : HEADER_SIZE + 6], "little")


def table_name(event: bytes) -> TableName:
    """The table of an event, without reading the rest."""
    return _name(event, HEADER_SIZE + 8)[0]


def _name(event: bytes, place: int) -> tuple[TableName, int]:
    size = event[place]
    owner = event[place + 1 : place + 1 + size].decode()
    place += size + 2
    size = event[place]
    return TableName(owner, event[place + 1 : place + 1 + size].decode()), place + size + 2


def column_names(event: bytes) -> tuple[str, ...]:
    """The names of the columns of a table map event; none if the log does not have them."""
    _, place = _name(event, HEADER_SIZE + 8)
    count, place = packed(event, place)
    size, place = packed(event, place + count)
    fields = dict(_fields(event, place + size + (count + 7) // 8))
    return tuple(name.decode() for name in _texts(fields.get(Field.COLUMN_NAME, b"")))


def table_map(event: bytes) -> TableMap:
    """Read a table map event, without its checksum.

    Raises CaptureError for a table without names of columns, and for types that are not supported.
    """
    name, place = _name(event, HEADER_SIZE + 8)
    count, place = packed(event, place)
    types = event[place : place + count]
    size, place = packed(event, place + count)
    columns = list(_columns(types, event[place : place + size], name))
    place += size
    nulls = event[place : place + (count + 7) // 8]
    columns = [
        column._replace(nullable=bool(nulls[index >> 3] & 1 << (index & 7))) for index, column in enumerate(columns)
    ]
    fields = dict(_fields(event, place + len(nulls)))
    if Field.COLUMN_NAME not in fields:
        raise CaptureError(
            f"the binary log has no column names of {name}",
            code="GGS-00473",
            hint="SET GLOBAL binlog_row_metadata = FULL, then ALTER EXTRACT …, BEGIN NOW and load the table again",
        )
    columns = _described(columns, fields)
    return TableMap(table_number(event), name, tuple(columns), _key(fields))


def _columns(types: bytes, metadata: bytes, table: TableName) -> Iterator[LogColumn]:
    place = 0
    for number in types:
        first = metadata[place] if place < len(metadata) else 0
        second = metadata[place + 1] if place + 1 < len(metadata) else 0
        try:
            kind = ColumnType(number)
        except ValueError:
            raise CaptureError(f"{table} has a column of type {number}", code=UNSUPPORTED) from None
        if kind is ColumnType.STRING:
            yield _string(first, second)
        elif kind in (ColumnType.VARCHAR, ColumnType.VARCHAR_COMPRESSED, ColumnType.VAR_STRING):
            yield LogColumn("", kind, True, first | second << 8)
        elif kind is ColumnType.NEWDECIMAL:
            yield LogColumn("", kind, True, first, second)
        elif kind is ColumnType.BIT:
            yield LogColumn("", kind, True, first + 8 * second)
        else:
            yield LogColumn("", kind, True, first if kind in _ONE_BYTE else 0)
        place += 2 if kind in _TWO_BYTES else 1 if kind in _ONE_BYTE else 0


def _string(first: int, second: int) -> LogColumn:
    """A STRING: its metadata has the real type, and for long columns two bits of the length, inverted, in that type."""
    if first & 0x30 != 0x30:
        return LogColumn("", ColumnType(first | 0x30), True, second | ((first & 0x30) ^ 0x30) << 4)
    return LogColumn("", ColumnType(first), True, second)


def _fields(event: bytes, place: int) -> Iterator[tuple[int, bytes]]:
    while place < len(event):
        kind = event[place]
        value, place = packed_text(event, place + 1)
        yield kind, value


def _described(columns: list[LogColumn], fields: dict[int, bytes]) -> list[LogColumn]:
    """Add what the optional metadata says of each column."""
    names = _texts(fields[Field.COLUMN_NAME])
    columns = [column._replace(name=next(names).decode()) for column in columns]
    signs, number = fields.get(Field.SIGNEDNESS, b""), 0
    charsets = _charsets(columns, _WITH_CHARSET, fields, Field.DEFAULT_CHARSET, Field.COLUMN_CHARSET)
    charsets |= _charsets(
        columns, _LABELED, fields, Field.ENUM_AND_SET_DEFAULT_CHARSET, Field.ENUM_AND_SET_COLUMN_CHARSET
    )
    labels = {
        ColumnType.ENUM: _label_lists(fields.get(Field.ENUM_LABELS, b"")),
        ColumnType.SET: _label_lists(fields.get(Field.SET_LABELS, b"")),
    }
    geometries = _numbers(fields.get(Field.GEOMETRY_TYPE, b""))
    found: list[LogColumn] = []
    for index, column in enumerate(columns):
        added: dict[str, Any] = {}
        if column.type in _NUMERIC:
            added["unsigned"] = number >> 3 < len(signs) and bool(signs[number >> 3] & 0x80 >> (number & 7))
            number += 1
        elif column.type in _LABELED:
            charset = charsets.get(index)
            raw = next(labels[column.type], ())
            text = raw if charset is None or charset.direct else tuple(charset.decode(each).encode() for each in raw)
            added = {"charset": charset, "labels": text}
        elif column.type in _TEXTS:
            added["charset"] = charsets.get(index)
        elif column.type is ColumnType.GEOMETRY:
            kind = next(geometries, 0)
            added["geometry"] = GEOMETRIES[kind] if kind < len(GEOMETRIES) else "geometry"
        found.append(column._replace(**added))
    return found


def _charsets(
    columns: list[LogColumn], kinds: frozenset[ColumnType], fields: dict[int, bytes], default: int, each: int
) -> dict[int, Charset]:
    """The character sets of some columns: all given, or one default and the exceptions from it."""
    places = [index for index, column in enumerate(columns) if column.type in kinds]
    if each in fields:
        return dict(zip(places, map(charset_of, _numbers(fields[each])), strict=False))
    numbers = list(_numbers(fields.get(default, b"")))
    found = dict.fromkeys(places, charset_of(numbers[0] if numbers else BINARY))
    for place, collation in zip(numbers[1::2], numbers[2::2], strict=False):
        found[places[place]] = charset_of(collation)
    return found


def _numbers(data: bytes) -> Iterator[int]:
    place = 0
    while place < len(data):
        value, place = packed(data, place)
        yield value


def _texts(data: bytes) -> Iterator[bytes]:
    place = 0
    while place < len(data):
        value, place = packed_text(data, place)
        yield value


def _label_lists(data: bytes) -> Iterator[tuple[bytes, ...]]:
    place = 0
    while place < len(data):
        count, place = packed(data, place)
        found: list[bytes] = []
        for _ in range(count):
            value, place = packed_text(data, place)
            found.append(value)
        yield tuple(found)


def _key(fields: dict[int, bytes]) -> tuple[int, ...]:
    if Field.PRIMARY_KEY in fields:
        return tuple(_numbers(fields[Field.PRIMARY_KEY]))
    return tuple(_numbers(fields.get(Field.PRIMARY_KEY_WITH_PREFIX, b"")))[::2]
