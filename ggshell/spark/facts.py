"""The columns of a trail as both engines see them, by Arrow types that Spark knows too, and what the reader gives as those.

Spark has no unsigned numbers, so positions are signed here; times are instants (UTC).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from ggshell.errors import UsageError
from ggshell.trail.arrow import SCHEMA as TRAIL_SCHEMA
from ggshell.trail.columnar import FAULT

_SIGNED: Final = {pa.uint8(): pa.int32(), pa.uint64(): pa.int64()}
_SPARK_NAMES: Final = {
    pa.string(): "string",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.timestamp("us", "UTC"): "timestamp",
}
SCHEMA: Final = pa.schema(
    [*(pa.field(field.name, _SIGNED.get(field.type, field.type)) for field in TRAIL_SCHEMA), (FAULT, pa.string())]
)
"""Every column that a trail can give; ``fault`` only where damage is told."""
COLUMNS: Final = tuple(TRAIL_SCHEMA.names)


def chosen(names: Sequence[str]) -> pa.Schema:
    """The schema of some columns.  Raises UsageError for one that there is not."""
    unknown = [name for name in names if name not in SCHEMA.names]
    if unknown:
        raise UsageError(f"a trail has no column {', '.join(unknown)}", hint=f"its columns are {', '.join(COLUMNS)}")
    return pa.schema([SCHEMA.field(name) for name in names])


def spark_ddl(schema: pa.Schema) -> str:
    """The same as Spark writes schemas."""
    return ", ".join(f"`{field.name}` {_spark_type(field.type)}" for field in schema)


def _spark_type(kind: pa.DataType) -> str:
    return "map<string,string>" if pa.types.is_map(kind) else _SPARK_NAMES[kind]


def fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch in exactly these columns and types; nothing is copied but what changes its type."""
    return pa.record_batch(
        [_as(batch.column(batch.schema.get_field_index(field.name)), field.type) for field in schema], schema=schema
    )


def _as(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.type == kind or pa.types.is_map(kind):
        return column
    return column.cast(kind)
