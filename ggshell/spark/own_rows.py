"""Rows of a table's own columns as rows of a trail: for ``frame.write.format("ggtrail").option("table", "hr.employees")``.

Every row is an insert, unless the frame has ``op``; ``csn``, ``xid`` and ``commit_ts`` count as the trail's as well, in front
of the table's own columns.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from ggshell.errors import UsageError
from ggshell.record.definition import Column, TableDefinition
from ggshell.spark import values
from ggshell.types import TableName

TRAILS: Final = ("op", "csn", "xid", "commit_ts")
_TEXTS: Final = pa.map_(pa.string(), pa.string())


def table_name(text: str) -> TableName | None:
    """The name in option ``table``; None without one.  Raises UsageError."""
    if not text:
        return None
    try:
        return TableName.parse(text)
    except ValueError as error:
        raise UsageError(str(error)) from None


def as_trail(batch: pa.RecordBatch, table: TableName, key: str) -> tuple[pa.RecordBatch, TableDefinition]:
    """The rows in the trail's columns, and the table's definition by the frame's types.

    ``key``: names with commas.  Raises UsageError for a key that is no column, and for types that no source has.
    """
    names = batch.schema.names
    front = [name for name in TRAILS if name in names[: len(TRAILS)]]
    own = [name for name in names if name not in front]
    definition = _definition(batch.schema, table, own, key)
    arrays = {name: batch.column(names.index(name)) for name in front}
    if "op" not in front:
        arrays["op"] = pa.repeat("Insert", batch.num_rows)
    arrays["owner"] = pa.repeat(table.owner, batch.num_rows)
    arrays["table"] = pa.repeat(table.name, batch.num_rows)
    arrays["columns"] = _maps([values.texts(batch.column(names.index(name))) for name in own], own, batch.num_rows)
    return pa.record_batch(list(arrays.values()), names=list(arrays)), definition


def _definition(schema: pa.Schema, table: TableName, own: list[str], key: str) -> TableDefinition:
    columns = tuple(Column(name, *values.source_type(schema.field(name).type, name)) for name in own)
    wanted = [name.strip() for name in key.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in own]
    if unknown:
        raise UsageError(f"the frame has no column {', '.join(unknown)} for the key of {table}")
    return TableDefinition(table, columns, tuple(own.index(name) for name in wanted))


def _maps(columns: list[pa.Array], names: list[str], count: int) -> pa.Array:
    """A map a row, from columns of texts."""
    width = len(names)
    keys = pa.array(names * count, pa.string())
    together = pa.concat_arrays(columns) if columns else pa.array([], pa.string())
    order = pa.array([column * count + row for row in range(count) for column in range(width)], pa.int64())
    offsets = pa.array(range(0, width * count + 1, width) if width else [0] * (count + 1), pa.int32())
    return pa.MapArray.from_arrays(offsets, keys, together.take(order)).cast(_TEXTS)
