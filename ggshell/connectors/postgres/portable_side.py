"""A PostgreSQL table that is compared with a table of another kind of database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ggshell.connectors.postgres.compare_connection import CompareConnection
from ggshell.connectors.postgres.compared_columns import ComparedColumn, family_of
from ggshell.pipeline.compare.portable import (
    DIGESTED,
    EXACT_FLOATS,
    FLOAT_LIMIT,
    FLOAT_PART,
    FLOAT_SCALE,
    HASH_DIGITS,
    Family,
    PortableColumn,
    PortableSide,
)
from ggshell.types import TableName, quote, quote_table

if TYPE_CHECKING:
    import psycopg


def portable_side(
    connection: psycopg.Connection[Any],
    table: TableName,
    columns: Sequence[ComparedColumn],
    families: Mapping[str, Family],
    key: Sequence[str],
    *,
    partitioned: bool,
) -> PortableSide:
    """``columns``: those of this table; ``families``: the names to compare, with the common families."""
    own = {column.name: column for column in columns}
    found = [_portable(own[name], family) for name, family in families.items()]
    rows = f"{'' if partitioned else 'ONLY '}{quote_table(table).replace('%', '%%')}"
    return PortableSide(_Dialect(connection), rows, found, key)


def _portable(column: ComparedColumn, family: Family) -> PortableColumn:
    text = _text(column, family)
    hashed = quote(column.name).replace("%", "%%") if family is Family.BYTES else text
    return PortableColumn(column.name, text, family, f"md5({hashed})" if family in DIGESTED else "")


def _text(column: ComparedColumn, family: Family) -> str:
    name = quote(column.name).replace("%", "%%")
    own = family_of(column.type)
    match family:
        case Family.TRUTH if own is Family.TRUTH:
            return f"{name}::int::text"
        case Family.INTEGER if own is Family.BITS:
            return f"{name}::bit(64)::bigint::text"
        case Family.DECIMAL:
            return f"trim_scale({name}::numeric)::text"
        case Family.FLOAT:
            return _float_text(f"{name}::float8")
        case Family.BYTES:
            return f"encode({name}, 'hex')"
        case Family.DOCUMENT if column.type == "json":
            return f"{name}::jsonb::text"
        case Family.DATE:
            return _moment(name, f"to_char({name}, 'YYYY-MM-DD')")
        case Family.TIME:
            return f"to_char({name}, 'HH24:MI:SS.US')"
        case Family.DURATION:
            seconds = f"extract(epoch FROM {name})"
            sign = f"CASE WHEN {seconds} < 0 THEN '-' ELSE '' END"
            return f"{sign} || to_char(make_interval(secs => abs({seconds})::float8), 'HH24:MI:SS.US')"
        case Family.MOMENT:
            zoned = f"{name} AT TIME ZONE 'UTC'" if "with time zone" in column.type else name
            return _moment(zoned, f"to_char({zoned}, 'YYYY-MM-DD HH24:MI:SS.US')")
        case Family.SOURCE_TEXT:
            # The cast of char(n) to text would drop its blanks.
            return f"CASE WHEN {name} IS NOT NULL THEN concat({name}) END"
        case _:
            return f"{name}::text"


def _float_text(value: str) -> str:
    """The text of a floating-point number; NULL for NULL."""
    high = f"trunc({value} / {FLOAT_PART}::float8)"
    low = f"({value} - {high} * {FLOAT_PART}::float8)"
    return (
        f"CASE WHEN abs({value}) >= 1e35 THEN CASE WHEN {value} < 0 THEN '-' ELSE '' END || '{FLOAT_LIMIT}'"
        f" WHEN abs({value}) >= {EXACT_FLOATS} THEN ({high}::bigint::numeric * {FLOAT_PART} + {low}::bigint::numeric)::text"
        f" ELSE trim_scale(round({value}::text::numeric, {FLOAT_SCALE}))::text END"
    )


def _moment(value: str, text: str) -> str:
    """The text of a date or a time. ``to_char`` would return NULL for infinity, and years BC as years AD."""
    return f"CASE WHEN isfinite({value}) AND extract(year FROM {value}) > 0 THEN {text} ELSE ({value})::text END"


class _Dialect(CompareConnection):
    def row(self, columns: Sequence[PortableColumn]) -> str:
        parts = [each.digest or f"char_length({each.text}) || ':' || {each.text}" for each in columns]
        parts = [f"coalesce({part}, '~')" for part in parts]
        return f"array_to_string(ARRAY[{', '.join(parts)}], '')"

    def hash(self, text: str) -> str:
        return f"('x0' || substr(md5({text}), 1, {HASH_DIGITS}))::bit(64)::bigint"

    def total(self, number: str) -> str:
        return f"coalesce(sum({number}), 0)::text"

    def ordered(self, column: PortableColumn) -> str:
        return f"({column.text})::bigint" if column.family is Family.INTEGER else f'({column.text}) COLLATE "C"'

    def mark(self, column: PortableColumn) -> str:
        return "%s::bigint" if column.family is Family.INTEGER else "%s::text"
