"""A table's own columns with types: maps source types to Arrow types, and converts values from and to the source's texts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from ggshell.errors import TrailError, UsageError

_SIMPLE: Final[dict[str, pa.DataType]] = {
    "smallint": pa.int16(),
    "int2": pa.int16(),
    "integer": pa.int32(),
    "int4": pa.int32(),
    "bigint": pa.int64(),
    "int8": pa.int64(),
    "real": pa.float32(),
    "float4": pa.float32(),
    "double precision": pa.float64(),
    "float8": pa.float64(),
    "boolean": pa.bool_(),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "timestamp without time zone": pa.timestamp("us"),
    "timestamp with time zone": pa.timestamp("us", "UTC"),
    "bytea": pa.binary(),
    "tinyint": pa.int16(),
    "tinyint unsigned": pa.int16(),
    "smallint unsigned": pa.int32(),
    "mediumint": pa.int32(),
    "mediumint unsigned": pa.int32(),
    "int": pa.int32(),
    "int unsigned": pa.int64(),
    "bigint unsigned": pa.decimal128(20, 0),
    "float": pa.float32(),
    "double": pa.float64(),
    "datetime": pa.timestamp("us"),
    "timestamp": pa.timestamp("us", "UTC"),
    **dict.fromkeys(["tinyblob", "blob", "mediumblob", "longblob"], pa.binary()),
}
"""Those of PostgreSQL and of MariaDB; no name means different types in the two."""
_ORACLE: Final = {"DATE": pa.timestamp("us")}
"""A DATE of Oracle has a time. Numbers of any length are text."""
_PRECISION = re.compile(r"(timestamp|datetime)\(\d+\)")
_BYTES = re.compile(r"(?:var)?binary\(\d+\)")
_NUMERIC = re.compile(r"(?:numeric|decimal)\((\d+)(?:,\s*(\d+))?\)(?: unsigned)?")
MOST_DIGITS: Final = 38
_SPARK: Final = {
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp_ntz",
    pa.timestamp("us", "UTC"): "timestamp",
    pa.binary(): "binary",
    pa.string(): "string",
}


def arrow_type(type_text: str) -> pa.DataType:
    """The Arrow type of a source type (``Column.known_type``); text if no Arrow type can hold all its values.

    Oracle has its types in upper case.
    """
    if type_text.isupper():
        return _ORACLE.get(type_text, pa.string())
    name = _PRECISION.sub(r"\1", type_text.lower())
    match = _NUMERIC.fullmatch(name)
    if match:
        scale = int(match[2] or 0)
        digits = max(int(match[1]), scale)  # numeric(2,5) has values such as 0.00099
        return pa.decimal128(digits, scale) if digits <= MOST_DIGITS else pa.string()
    return pa.binary() if _BYTES.fullmatch(name) else _SIMPLE.get(name, pa.string())


def spark_type(kind: pa.DataType) -> str:
    """The same type in Spark's notation."""
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return _SPARK[kind]


def typed(texts: pa.Array, kind: pa.DataType, column: str, *, strict: bool = True) -> pa.Array:
    """Convert texts to values. Raises TrailError that names column and value.

    A text that cannot be converted (``infinity`` as a date, ``NaN`` as a number) is an error, or NULL if not ``strict``.
    """
    if kind == pa.string():
        return texts
    try:
        return _all_at_once(texts, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError):
        found = list[Any]()
    for text in texts.to_pylist():
        try:
            found.append(None if text is None else _all_at_once(pa.array([text]), kind)[0].as_py())
        except (ValueError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            if strict:
                raise TrailError(
                    f"column {column}: {text!r} is not a valid {spark_type(kind)}",
                    hint="use mode DROPMALFORMED or PERMISSIVE to get NULL, or omit table= to get texts",
                ) from error
            found.append(None)
    return pa.array(found, kind)


def _all_at_once(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    import pyarrow.compute as pc

    if pa.types.is_boolean(kind):
        known = pc.is_in(texts, pa.array(["t", "f", "true", "false"]))
        if not pc.all(pc.or_(known, pc.is_null(texts))).as_py():
            raise ValueError("not a truth value")
        return pc.or_(pc.equal(texts, "t"), pc.equal(texts, "true"))
    if pa.types.is_binary(kind):
        return pa.array([None if text is None else _bytes(text) for text in texts.to_pylist()], kind)
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        # PostgreSQL writes offsets with hours only (+00), and MariaDB none (in UTC); Arrow also requires minutes.
        texts = pc.replace_substring_regex(texts, r"([+-]\d\d)$", r"\1:00")
        texts = pc.replace_substring_regex(texts, r"( \d\d:\d\d:\d\d(\.\d+)?)$", r"\1Z")
    return texts.cast(kind)


def _bytes(text: str) -> bytes:
    if not text.startswith("\\x"):
        raise ValueError("not hexadecimal bytes")
    return bytes.fromhex(text[2:])


_SOURCES: Final[tuple[tuple[Callable[[pa.DataType], bool], str, int], ...]] = (
    (pa.types.is_boolean, "boolean", 16),
    (pa.types.is_int8, "smallint", 21),
    (pa.types.is_int16, "smallint", 21),
    (pa.types.is_int32, "integer", 23),
    (pa.types.is_int64, "bigint", 20),
    (pa.types.is_float32, "real", 700),
    (pa.types.is_float64, "double precision", 701),
    (pa.types.is_date, "date", 1082),
    (pa.types.is_binary, "bytea", 17),
    (pa.types.is_large_binary, "bytea", 17),
    (pa.types.is_string, "text", 25),
    (pa.types.is_large_string, "text", 25),
)
"""PostgreSQL's type text and type number for Arrow types."""


def source_type(kind: pa.DataType, column: str) -> tuple[str, int]:
    """The source type that holds the values of an Arrow type. Raises UsageError if there is none."""
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision},{kind.scale})", 1700
    if pa.types.is_timestamp(kind):
        return ("timestamp with time zone", 1184) if kind.tz is not None else ("timestamp without time zone", 1114)
    for fits, name, number in _SOURCES:
        if fits(kind):
            return name, number
    raise UsageError(
        f"column {column} has type {kind}, which a table in a trail cannot have", hint="convert it to text with to_json"
    )


def texts(column: pa.Array) -> pa.Array:
    """Convert values to the source's text form."""
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_boolean(kind):
        return pc.if_else(column, "t", "f")
    if pa.types.is_timestamp(kind):
        plain = column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).cast(pa.timestamp("us")).cast(pa.string())
        return pc.binary_join_element_wise(plain, "+00", "") if kind.tz is not None else plain
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.array([None if each is None else "\\x" + each.hex() for each in column.to_pylist()], pa.string())
    return column.cast(pa.string())
