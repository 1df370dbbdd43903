"""The text values of a trail as SQL literals for the columns of a MariaDB or MySQL table.

The server would change some values with no more than a note: it rounds numbers, cuts off fractions of seconds, the time of a
date, and spaces, reads digits as the number of a label, and small numbers as years of two digits. Such values are refused here,
with a message that names the column (GGS-00482). Other values that do not fit are refused by the server, whose mode is strict.
A literal contains no backslash escapes: the session has NO_BACKSLASH_ESCAPES.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from ggshell.connectors.mysql.literal_columns import (
    Literal,
    Literals,
    PlainValues,
    by_column,
    text_literal,
    text_literals,
)
from ggshell.errors import ApplyError
from ggshell.pipeline.apply.target import TargetColumn
from ggshell.record.families import family
from ggshell.record.fields import Value

INTEGERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
BINARIES: Final = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "vector"})
GEOMETRIES: Final = frozenset(
    {
        "geometry",
        "point",
        "linestring",
        "polygon",
        "multipoint",
        "multilinestring",
        "multipolygon",
        "geometrycollection",
        "geomcollection",
    }
)
LABELED: Final = frozenset({"enum", "set"})
_FLOATS: Final = frozenset({"float", "double"})
_MOMENTS: Final = frozenset({"datetime", "timestamp"})
_BOUNDED: Final = frozenset({"char", "varchar"})
_HEXADECIMAL_SOURCES: Final = BINARIES | {"bytea", "raw", "long raw"}
_LONG: Final = 1000
"""From this number of bytes on, a binary value is written as it is instead of as digits, which are twice as long."""
_NUMERIC: Final = b"0123456789-+.eE"
_INTEGER: Final = re.compile(rb"-?\d+")
_NUMBER: Final = re.compile(rb"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_MOMENT: Final = re.compile(
    rb"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d(?::?\d\d)?(?::\d\d)?)?"
)
_TIME: Final = re.compile(rb"(-?\d{1,3}:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]00(?::?00)?)?")
_TRUTHS: Final = {b"t": b"1", b"f": b"0", b"true": b"1", b"false": b"0"}
_EXTENDED: Final = 0x20000000
_LONGITUDE_FIRST: Final = b" /*!80000 , 'axis-order=long-lat' */"
"""The order of the values of a point, for MySQL, which otherwise reads the latitude first. MariaDB ignores this comment."""
LARGEST_FLOAT: Final = math.ldexp(2 - 2**-23, 127)
_FLOAT_STEP: Final = math.ldexp(1, 127 - 23)
"""The shortest text of the largest FLOAT, 3.4028235e38, is a number above it, which the server refuses."""
_LABEL: Final = re.compile(r"'((?:[^']|'')*)'")
_ESCAPED: Final = re.compile(r"\\(.)")
_ESCAPES: Final = {"n": "\n", "r": "\r", "0": "\0"}


def literals_of(source: str, column: TargetColumn) -> Literals:
    """Return the function that makes literals of values of a source type for a target column. It raises ApplyError."""
    if _is_text(column.base_type) and column.base_type not in LABELED and not _may_lose_spaces(source, column):
        return text_literals
    return by_column(_plain_values(source, column), _one(source, column))


def bytes_literal(value: bytes) -> bytes:
    return b"x'" + value.hex().encode() + b"'" if len(value) < _LONG else b"_binary" + text_literal(value)


def type_word(type_name: str) -> str:
    """The first word of a type, in lower case: ``decimal`` for ``DECIMAL(10,2) unsigned``."""
    return type_name.lower().partition("(")[0].partition(" ")[0]


def size_of(type_name: str) -> tuple[int, ...]:
    """The numbers in the parentheses of a type."""
    inner = type_name.partition("(")[2].partition(")")[0]
    return tuple(int(part) for part in inner.split(",") if part.strip().isdigit())


def does_not_fit(column: TargetColumn, value: bytes, reason: str = "") -> ApplyError:
    shown = value[:60].decode(errors="replace") + ("…" if len(value) > 60 else "")
    return ApplyError(
        f"value {shown!r} cannot be stored in column {column.name}, {column.type_name}, without a change"
        + (f": {reason}" if reason else ""),
        code="GGS-00482",
        hint="change the type of the target column, or map the column with a function",
    )


def _plain_values(source: str, column: TargetColumn) -> Sequence[PlainValues]:
    """The frequent forms of a column's values, which ``_one`` does not change."""
    base, digits = column.base_type, (*size_of(column.type_name), 0)[0]
    fraction = rb"(?:\.\d{1,%d})?" % digits if digits else b""
    if base in INTEGERS:
        return (PlainValues(rb"-?\d+"),)
    if base == "year":
        return (PlainValues(rb"(?:19|20|21)\d\d"),)
    if base == "enum":
        labels = _plain_labels(column)
        return (PlainValues(b"(?:%s)" % b"|".join(map(re.escape, labels)), b"'", b"'"),) if labels else ()
    if base == "decimal":
        scale = (*size_of(column.type_name), 0, 0)[1]
        return (PlainValues(rb"-?\d+(?:\.\d{1,%d})?" % scale if scale else rb"-?\d+"),)
    if base in _FLOATS:
        return (PlainValues(rb"-?\d{1,38}(?:\.\d+)?", suffix=b"e0"),)
    if base in _MOMENTS:
        moment = rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d" + fraction
        return tuple(PlainValues(moment, b"'", b"'", zone) for zone in (b"", b"+00"))
    if base == "date":
        return (PlainValues(rb"\d{4}-\d\d-\d\d", b"'", b"'"),)
    if base == "time":
        return (PlainValues(rb"-?\d{1,3}:\d\d:\d\d" + fraction, b"'", b"'"),)
    return ()


def _is_text(base: str) -> bool:
    return base not in INTEGERS | _FLOATS | BINARIES | GEOMETRIES | _MOMENTS and base not in (
        "decimal",
        "bit",
        "date",
        "time",
        "year",
    )


def _may_lose_spaces(source: str, column: TargetColumn) -> bool:
    """Whether a value may be longer than its column by spaces, which the server cuts off."""
    if column.base_type not in _BOUNDED:
        return False
    mine, theirs = size_of(source), size_of(column.type_name)
    return not (mine and theirs and type_word(source) in ("char", "varchar", "character") and mine[0] <= theirs[0])


def _one(source: str, column: TargetColumn) -> Literal:
    base, kind = column.base_type, family(source)
    truth = kind == "truth"
    if base in INTEGERS:
        return lambda value: _integer(_TRUTHS.get(value, value) if truth else value, column)
    if base == "decimal":
        scale = (*size_of(column.type_name), 0, 0)[1]
        return lambda value: _decimal(_TRUTHS.get(value, value) if truth else value, scale, column)
    if base in _FLOATS:
        return lambda value: _float(value, column)
    if base == "bit":
        return _bits(column, as_bits=kind == "bits" or truth)
    if base in _MOMENTS or base in ("date", "time"):
        digits = (*size_of(column.type_name), 0)[0]
        part = _time if base == "time" else _date if base == "date" else _moment
        return lambda value: part(value, digits, column)
    if base in BINARIES:
        return _binary(source)
    if base in GEOMETRIES:
        return lambda value: _shape(value, column)
    if base == "year":
        return lambda value: _year(value, column)
    if base in LABELED:
        return _labels(column)
    size = size_of(column.type_name)
    return lambda value: _bounded(value, size[0] if size else 0, column)


def _integer(value: bytes, column: TargetColumn) -> bytes:
    if _INTEGER.fullmatch(value):
        return value
    whole, _, fraction = value.partition(b".")
    if _NUMBER.fullmatch(value) and b"e" not in value.lower() and not fraction.strip(b"0"):
        return whole or b"0"
    raise does_not_fit(column, value, "it is not an integer")


def _decimal(value: bytes, scale: int, column: TargetColumn) -> bytes:
    if _NUMBER.fullmatch(value) is None:
        raise does_not_fit(column, value, "it is not a number")
    if b"e" in value or b"E" in value:
        value = _plain(value)
    fraction = value.partition(b".")[2]
    if len(fraction) > scale and fraction[scale:].strip(b"0"):
        raise does_not_fit(column, value, f"the column has {scale} decimal places")
    return value[: len(value) - (len(fraction) - scale)] if len(fraction) > scale > 0 else value


def _plain(value: bytes) -> bytes:
    """A number without an exponent."""
    from decimal import Decimal

    return format(Decimal(value.decode()), "f").encode()


def _float(value: bytes, column: TargetColumn) -> bytes:
    if value.translate(None, _NUMERIC) or _NUMBER.fullmatch(value) is None:
        raise does_not_fit(column, value, "it is not a finite number")
    number = value if b"e" in value or b"E" in value else value + b"e0"
    if column.base_type == "float" and abs(float(number)) > LARGEST_FLOAT >= abs(float(number)) - _FLOAT_STEP / 2:
        return repr(math.copysign(LARGEST_FLOAT, float(number))).encode()
    return number


def _year(value: bytes, column: TargetColumn) -> bytes:
    """A year as a number, with which only 0 is the year 0000. The server takes 1 to 99 for other years."""
    digits = _integer(value, column)
    if 1 <= int(digits) <= 99:
        raise does_not_fit(column, value, "it is not a year")
    return b"%d" % int(digits)


def labels_of(type_name: str) -> list[str]:
    """The labels of an ENUM or SET type, in their order."""
    return [
        _ESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[1]), label.replace("''", "'"))
        for label in _LABEL.findall(type_name)
    ]


def _plain_labels(column: TargetColumn) -> list[bytes]:
    """The labels that are literals with no more than quotes."""
    return [label.encode() for label in labels_of(column.type_name) if not {"'", "\n"} & set(label)]


def _labels(column: TargetColumn) -> Literal:
    """A label of an ENUM, or the labels of a SET in their order: exactly as the column has them, not by their collation."""
    labels = [label.encode() for label in labels_of(column.type_name)]
    places = {label: place for place, label in enumerate(labels)}
    several = column.base_type == "set"

    def literal(value: bytes) -> bytes:
        parts = [] if several and not value else value.split(b",") if several else [value]
        found = [places.get(part, -1) for part in parts]
        if -1 in found:
            raise does_not_fit(column, value, "the column has no such label")
        if found != sorted(set(found)):
            raise does_not_fit(column, value, "the column has its labels once and in another order")
        return text_literal(value)

    return literal


def _bits(column: TargetColumn, *, as_bits: bool) -> Literal:
    def literal(value: bytes) -> bytes:
        digits = _TRUTHS.get(value, value)
        if as_bits and digits and not digits.strip(b"01"):
            return b"b'" + digits + b"'"
        return _integer(value, column)

    return literal


def _moment(value: bytes, digits: int, column: TargetColumn) -> bytes:
    match = _MOMENT.fullmatch(value)
    if match is None:
        raise does_not_fit(column, value, "it is not a date from year 0 to 9999")
    date, time, fraction, zone = match.groups()
    if zone is not None and zone.strip(b"+-0:Z"):
        date, time = _in_utc(date, time or b"00:00:00", zone, column)
    return b"'" + date + b" " + (time or b"00:00:00") + _fraction(fraction, digits, value, column) + b"'"


def _date(value: bytes, digits: int, column: TargetColumn) -> bytes:
    match = _MOMENT.fullmatch(value)
    if match is None:
        raise does_not_fit(column, value, "it is not a date from year 0 to 9999")
    if (match[2] or b"").strip(b"0:") or (match[3] or b"").strip(b"0"):
        raise does_not_fit(column, value, "it has a time")
    return b"'" + match[1] + b"'"


def _time(value: bytes, digits: int, column: TargetColumn) -> bytes:
    match = _TIME.fullmatch(value)
    if match is None:
        raise does_not_fit(column, value, "it is not a time without a zone")
    return b"'" + match[1] + _fraction(match[2], digits, value, column) + b"'"


def _fraction(fraction: bytes | None, digits: int, value: bytes, column: TargetColumn) -> bytes:
    if not fraction:
        return b""
    kept = fraction if len(fraction) <= digits else fraction.rstrip(b"0")
    if len(kept) > digits:
        raise does_not_fit(column, value, f"the column has {digits} digits of a fraction of a second")
    return b"." + kept if kept else b""


def _in_utc(date: bytes, time: bytes, zone: bytes, column: TargetColumn) -> tuple[bytes, bytes]:
    text = b"%s %s%s" % (date, time, zone if b":" in zone or len(zone) > 3 else zone + b":00")
    try:
        found = datetime.fromisoformat(text.decode()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise does_not_fit(column, text) from None
    return found.strftime("%Y-%m-%d").rjust(10, "0").encode(), found.strftime("%H:%M:%S").encode()


def _binary(source: str) -> Literal:
    """A binary value: the digits of a binary source, or the bytes of any other text."""
    if type_word(source) not in _HEXADECIMAL_SOURCES:
        return text_literal

    def literal(value: bytes) -> bytes:
        if value[:2] != b"\\x":
            return bytes_literal(value)
        return b"x'" + value[2:] + b"'" if len(value) < 2 * _LONG else bytes_literal(bytes.fromhex(value[2:].decode()))

    return literal


def _shape(value: bytes, column: TargetColumn) -> bytes:
    """A geometry: the digits of its well-known binary form, which may contain an SRID."""
    try:
        shape = bytes.fromhex(value.decode())
    except (ValueError, UnicodeDecodeError):
        raise does_not_fit(column, value, "it is not a geometry in hexadecimal digits") from None
    kind = int.from_bytes(shape[1:5], "little")
    if shape[:1] != b"\1" or not kind & _EXTENDED:
        return b"ST_GeomFromWKB(" + bytes_literal(shape) + b")"
    srid = int.from_bytes(shape[5:9], "little")
    plain = shape[:1] + (kind & ~_EXTENDED).to_bytes(4, "little") + shape[9:]
    return b"ST_GeomFromWKB(" + bytes_literal(plain) + b", %d%s)" % (srid, _LONGITUDE_FIRST)


def _bounded(value: bytes, most: int, column: TargetColumn) -> bytes:
    if most and len(value) > most and value.endswith(b" ") and len(value.decode(errors="replace")) > most:
        raise does_not_fit(column, value, f"the column has {most} characters")
    return text_literal(value)


def rows_of_literals(columns: Sequence[Literals], rows: Sequence[Sequence[Value]]) -> list[bytes]:
    """Rows as lists of literals in parentheses. Raises ApplyError."""
    each = [make(values) for make, values in zip(columns, zip(*rows, strict=True), strict=True)]
    return [b"(" + b",".join(row) + b")" for row in zip(*each, strict=True)]
