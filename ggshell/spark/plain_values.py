"""Arrow's values as plain ones, the same whichever engine they come from."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa


def plain_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of a table."""
    columns = [_column(column) for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else []


def _column(column: pa.ChunkedArray) -> list[Any]:
    kind = column.type
    if pa.types.is_timestamp(kind):
        # As numbers: Arrow would look for a time zone's name in a package that need not be there.
        moments = column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).to_pylist()
        return [None if each is None else _moment(each, zoned=kind.tz is not None) for each in moments]
    if pa.types.is_map(kind):
        return [None if each is None else {key: plain(value) for key, value in each} for each in column.to_pylist()]
    return [plain(value) for value in column.to_pylist()]


def _moment(microseconds: int, *, zoned: bool) -> str:
    moment = datetime.fromtimestamp(microseconds // 1_000_000, UTC).replace(microsecond=microseconds % 1_000_000)
    return (moment if zoned else moment.replace(tzinfo=None)).isoformat(timespec="microseconds")


def plain(value: Any) -> Any:
    """One value: whole decimals are numbers, times are text, spans of time are seconds (with months: text)."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() and value.as_tuple().exponent == 0 else str(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, pa.MonthDayNano):
        months, days, nanoseconds = value
        if months:
            return f"{months} months {days} days {nanoseconds} ns"
        return timedelta(days, microseconds=nanoseconds // 1000).total_seconds()
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value
