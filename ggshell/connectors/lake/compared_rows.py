"""The rows of a lake's table as COMPARE takes them: the present rows, and each value as the text of its family.

Columns are named by their place (``c0``, ``c1``, …), because SQL ignores the case of names. Binary values are not converted.
The texts are those of ``pipeline.compare.portable``, which databases compute in SQL.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ggshell.connectors.lake.extra_columns import CURRENT, DELETED
from ggshell.pipeline.compare.portable import EXACT_FLOATS, FLOAT_LIMIT, FLOAT_SCALE, Family
from ggshell.query.values import texts

_STEP: Final = Decimal(1).scaleb(-FLOAT_SCALE)
_DIGITS: Final = Context(prec=len(FLOAT_LIMIT) + FLOAT_SCALE + 1)
_ZEROS: Final = r"\.?0+$"


class ComparedColumn(NamedTuple):
    """A column, and the family in which it is compared."""

    name: str
    family: Family


class Compared(NamedTuple):
    """What is compared of a table. ``marks``: the columns that mark rows as deleted or as former versions."""

    columns: tuple[ComparedColumn, ...]
    marks: tuple[str, ...] = ()


def compared_schema(compared: Compared) -> pa.Schema:
    """The columns of ``compared_rows``."""
    kinds = [pa.binary() if each.family is Family.BYTES else pa.string() for each in compared.columns]
    return pa.schema([pa.field(place_name(number), kind) for number, kind in enumerate(kinds)])


def place_name(number: int) -> str:
    """The name of a compared column."""
    return f"c{number}"


def compared_rows(rows: pa.RecordBatch, compared: Compared) -> pa.RecordBatch:
    """The present rows of a batch, without those that are marked as deleted and former versions."""
    if DELETED in compared.marks:
        rows = rows.filter(pc.invert(pc.fill_null(rows.column(DELETED), False)))
    if CURRENT in compared.marks:
        rows = rows.filter(pc.fill_null(rows.column(CURRENT), True))
    arrays = [_text(rows.column(each.name), each.family) for each in compared.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=compared_schema(compared))


def _text(values: pa.Array, family: Family) -> pa.Array:
    kind = values.type
    match family:
        case Family.BYTES:
            return values.cast(pa.binary())
        case Family.TRUTH | Family.INTEGER | Family.DECIMAL if pa.types.is_boolean(kind):
            return values.cast(pa.int8()).cast(pa.string())
        case Family.DECIMAL if pa.types.is_decimal(kind):
            plain = _plain_decimals(values)
            return pc.replace_substring_regex(plain, _ZEROS, "") if kind.scale > 0 else plain
        case Family.FLOAT:
            return pa.array([None if each is None else _float_text(each) for each in _floats(values)], pa.string())
        case Family.MOMENT if pa.types.is_date(kind):
            return values.cast(pa.timestamp("us")).cast(pa.string())
        case Family.MOMENT if pa.types.is_timestamp(kind):
            return values.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).cast(pa.timestamp("us")).cast(pa.string())
        case _ if pa.types.is_decimal(kind):
            return _plain_decimals(values)
        case _:
            return texts(values)


def _plain_decimals(values: pa.Array) -> pa.Array:
    """Decimal numbers with all their digits; Arrow writes small ones with an exponent."""
    found = values.cast(pa.string())
    if not pc.any(pc.match_substring(found, "E")).as_py():
        return found
    return pa.array([None if each is None else f"{each:f}" for each in values.to_pylist()], pa.string())


def _floats(values: pa.Array) -> list[float | None]:
    """The numbers with double precision, as databases widen those with single precision."""
    if pa.types.is_decimal(values.type):
        values = _plain_decimals(values)
    elif pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    return values.cast(pa.float64()).to_pylist()  # type: ignore[no-any-return]


def _float_text(value: float) -> str:
    if math.isnan(value) or abs(value) >= 1e35:
        return f"-{FLOAT_LIMIT}" if value < 0 else FLOAT_LIMIT
    if abs(value) >= EXACT_FLOATS:
        return str(int(value))
    text = repr(value)
    if "e" not in text:
        text = text.removesuffix(".0")
        return "0" if text == "-0" else text
    rounded = Decimal(text).quantize(_STEP, ROUND_HALF_UP, _DIGITS)
    return f"{rounded.normalize(_DIGITS):f}" if rounded else "0"
