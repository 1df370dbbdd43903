"""Partitions of Delta tables and of Parquet files, which have only columns: the columns that stand for transforms."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ggshell.errors import ApplyError
from ggshell.files import read_json
from ggshell.parameters.lake_tables import PartitionField, Transform

_LENGTHS = {Transform.YEAR: "%Y", Transform.MONTH: "%Y-%m", Transform.HOUR: "%Y-%m-%d-%H"}
Values = tuple[tuple[str, str | None], ...]
"""The values of the fields of a partition, as texts."""


class Part(NamedTuple):
    """The rows of one partition."""

    values: Values
    rows: pa.Table


def derived(fields: Sequence[PartitionField]) -> tuple[PartitionField, ...]:
    """The fields whose columns the source does not have."""
    return tuple(field for field in fields if field.transform is not Transform.IDENTITY)


def partitioned(rows: pa.Table, fields: Sequence[PartitionField]) -> Iterator[Part]:
    """Divide rows by partition, with the derived columns. Raises ApplyError for a column that is missing or of a wrong type."""
    require_free_names(rows.column_names, fields)
    values = {field.name: field_values(rows, field) for field in fields}
    for field in derived(fields):
        rows = rows.append_column(field.name, values[field.name])
    if not fields or not rows.num_rows:
        yield Part((), rows)
        return
    names = [field.name for field in fields]
    numbers = [_codes(rows[name]) for name in names]
    keys = pc.binary_join_element_wise(*(each.cast(pa.string()) for each in numbers), ",")
    groups = (
        keys.combine_chunks().dictionary_encode() if isinstance(keys, pa.ChunkedArray) else keys.dictionary_encode()
    )
    for number in range(len(groups.dictionary)):
        mine = rows.filter(pc.equal(groups.indices, number))
        yield Part(tuple((name, value_text(mine[name][0].as_py())) for name in names), mine)


def _codes(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks().dictionary_encode(null_encoding="encode").indices


def _require(rows: pa.Table, names: Sequence[str]) -> None:
    missing = [name for name in names if name not in rows.column_names]
    if missing:
        raise ApplyError(f"PARTITIONBY {missing[0]}: the table has no such column", hint="correct LAKETABLE")


def require_free_names(columns: Sequence[str], fields: Sequence[PartitionField]) -> None:
    """Raise ApplyError if the source has a column with the name of a derived one."""
    for field in derived(fields):
        if field.name in columns:
            raise ApplyError(
                f"PARTITIONBY {field.transform.name} ({field.column}): the source has a column {field.name}, which is the name"
                " of this partition",
                hint="use another transform in LAKETABLE, or exclude the table",
            )


def field_values(rows: pa.Table, field: PartitionField) -> pa.Array:
    """The values of a transform. Readers do not agree on the text of binary values, so they are refused."""
    _require(rows, [field.column])
    column = rows[field.column].combine_chunks()
    try:
        match field.transform:
            case Transform.IDENTITY if not pa.types.is_binary(column.type):
                return column
            case Transform.DAY if pa.types.is_temporal(column.type):
                return column.cast(pa.date32())
            case Transform.BUCKET:
                values = column if pa.types.is_binary(column.type) else column.cast(pa.string()).cast(pa.binary())
                return pa.array([_bucket(each, field.number) for each in values.to_pylist()], pa.int32())
            case Transform.TRUNCATE if pa.types.is_integer(column.type):
                return pa.array(
                    [None if each is None else each - each % field.number for each in column.to_pylist()], column.type
                )
            case Transform.TRUNCATE:
                return pc.utf8_slice_codeunits(column, 0, field.number)
            case _:
                return pc.strftime(column, _LENGTHS.get(field.transform, ""))  # Arrow refuses what is not a time.
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        name = "" if field.transform is Transform.IDENTITY else f"{field.transform.name} "
        raise ApplyError(
            f"PARTITIONBY {name}({field.column}): a column of type {column.type} has no such partitions",
            hint="correct LAKETABLE",
        ) from error


def possible(fields: Sequence[PartitionField], schema: pa.Schema) -> tuple[PartitionField, ...]:
    """The fields that columns of these types have: a text has no day."""
    rows, found = schema.empty_table(), []
    for field in fields:
        with suppress(ApplyError):
            field_values(rows, field)
            found.append(field)
    return tuple(found)


def _bucket(value: bytes | None, buckets: int) -> int | None:
    return None if value is None else zlib.crc32(value) % buckets


def value_text(value: Any) -> str | None:
    """The value of a partition as Delta and Hive write it."""
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case datetime():
            return value.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
        case date():
            return value.isoformat()
        case Decimal():
            return format(value, "f")
        case _:
            return str(value)


def fields_text(fields: Sequence[PartitionField]) -> str:
    """The fields as a property of a table keeps them."""
    return json.dumps([[field.column, field.transform.value, field.number] for field in fields])


def fields_of(text: str) -> tuple[PartitionField, ...]:
    return tuple(PartitionField(column, Transform(name), number) for column, name, number in read_json(text))
