"""The change of a current table from a batch's effects: complete new rows in Arrow, with the table's columns.

Columns follow the source: a new column is added; a column that the source has dropped keeps its values; if a type has
changed, the whole table is rewritten, with each value converted again from its text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ggshell.connectors.lake.effects import Effects
from ggshell.connectors.lake.forms import KEY, HeldTable, TableChange
from ggshell.errors import ApplyError
from ggshell.query.trail_read import COLUMNS, chosen
from ggshell.query.values import arrow_type, texts, typed
from ggshell.record.definition import TableDefinition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Fit = Callable[[pa.DataType], pa.DataType]
_PLAIN = {
    **dict.fromkeys([pa.large_string(), pa.string_view()], pa.string()),
    **dict.fromkeys([pa.large_binary(), pa.binary_view()], pa.binary()),
}


def log_rows(rows: DataFrame) -> pa.Table:
    """The changes for the log: every column of the trail."""
    return rows.select(*COLUMNS).toArrow().cast(chosen(COLUMNS))


def plain(schema: pa.Schema) -> pa.Schema:
    """A schema without large and view types: libraries return different ones, and not all functions accept them."""
    return pa.schema([(field.name, _PLAIN.get(field.type, field.type)) for field in schema])


def table_change(
    definition: TableDefinition, effects: Effects, held: HeldTable | None, fit: Fit = lambda kind: kind
) -> TableChange:
    """The change that applies a batch to a table (None: it does not exist yet).

    ``fit`` replaces types that a form does not have.
    """
    wanted = _schema(definition, fit)
    keys = pa.array(list(effects.by_key), pa.string())
    if held is None:
        return TableChange(definition, _laid(wanted.empty_table(), effects, wanted), keys, cleared=True)
    there = {field.name: field.type for field in plain(held.schema)}
    added = tuple(field for field in wanted if field.name not in there)
    changed = tuple(field.name for field in wanted if there.get(field.name, field.type) != field.type)
    schema = pa.schema([*((name, _type(wanted, name, kind)) for name, kind in there.items()), *added])
    if effects.cleared:
        rows = _laid(schema.empty_table(), effects, schema)
        return TableChange(definition, rows, keys, cleared=True, added=added, changed=changed)
    bases = {each.base for each in effects.by_key.values() if each.base is not None and each.values is not None}
    wants = None if changed else pa.array(sorted(bases), pa.string())
    before = _retyped(_read(held, wants), schema) if changed or bases else schema.empty_table()
    rows = _laid(before, effects, schema)
    if not changed:
        return TableChange(definition, rows, keys, added=added)
    untouched = pc.invert(pc.is_in(before[KEY], keys))
    rows = pa.concat_tables([before.filter(untouched), rows])
    return TableChange(definition, rows, keys, cleared=True, added=added, changed=changed)


def _schema(definition: TableDefinition, fit: Fit) -> pa.Schema:
    if any(column.name == KEY for column in definition.columns):
        raise ApplyError(
            f"column {KEY} of {definition.name} has a name that is reserved for the lake", hint="exclude the table"
        )
    own = [(column.name, fit(arrow_type(column.type_name))) for column in definition.columns]
    return pa.schema([(KEY, pa.string()), *own])


def _type(schema: pa.Schema, name: str, otherwise: pa.DataType) -> pa.DataType:
    return schema.field(name).type if name in schema.names else otherwise


def _read(held: HeldTable, keys: pa.Array | None) -> pa.Table:
    found = held.rows(keys)
    return found.cast(plain(found.schema))


def _retyped(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Convert rows to a schema: missing columns are NULL, columns of another type are converted from their text."""
    arrays = []
    for field in schema:
        if field.name not in rows.column_names:
            arrays.append(pa.nulls(rows.num_rows, field.type))
            continue
        column = rows[field.name].combine_chunks()
        arrays.append(
            column if column.type == field.type else typed(texts(column), field.type, field.name, strict=False)
        )
    return pa.table(arrays, schema=schema)


def _laid(before: pa.Table, effects: Effects, schema: pa.Schema) -> pa.Table:
    """The remaining rows among those that a batch touches."""
    left = [(key, each.base, each.values) for key, each in effects.by_key.items() if each.values is not None]
    place = {key: number for number, key in enumerate(before[KEY].to_pylist())}
    base = pa.array([place.get(each) if each is not None else None for _, each, _ in left], pa.int64())
    arrays: list[Any] = [pa.array([key for key, _, _ in left], pa.string())]
    for field in schema:
        if field.name == KEY:
            continue
        fresh = typed(
            pa.array([values.get(field.name) for _, _, values in left], pa.string()),
            field.type,
            field.name,
            strict=False,
        )
        given = pa.array([field.name in values for _, _, values in left], pa.bool_())
        arrays.append(pc.if_else(given, fresh, before[field.name].combine_chunks().take(base)))
    return pa.table(arrays, schema=schema)
