"""The change of a current table from a batch's effects: complete new rows in Arrow, with the table's columns.

Columns follow the source: a new column is added; a column that the source has dropped keeps its values; if a type has
changed, the whole table is rewritten, with each value converted again from its text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ggshell.connectors.lake.forms import KEY, HeldTable, TableChange
from ggshell.connectors.lake.net_effects import NetEffects
from ggshell.errors import ApplyError
from ggshell.query.values import arrow_type, texts, typed
from ggshell.record.definition import TableDefinition

Fit = Callable[[pa.DataType], pa.DataType]
_PLAIN = {
    **dict.fromkeys([pa.large_string(), pa.string_view()], pa.string()),
    **dict.fromkeys([pa.large_binary(), pa.binary_view()], pa.binary()),
}


def plain(schema: pa.Schema) -> pa.Schema:
    """A schema without large and view types: libraries return different ones, and not all functions accept them."""
    return pa.schema([(field.name, _PLAIN.get(field.type, field.type)) for field in schema])


def table_change(effects: NetEffects, held: HeldTable | None, fit: Fit = lambda kind: kind) -> TableChange:
    """The change that applies a batch to a table (None: it does not exist yet).

    ``fit`` replaces types that a form does not have.
    """
    definition = effects.definition
    wanted = _schema(definition, fit)
    if held is None:
        rows = _laid(wanted.empty_table(), effects, wanted)
        return TableChange(definition, rows, effects.key, cleared=True)
    there = {field.name: field.type for field in plain(held.schema)}
    added = tuple(field for field in wanted if field.name not in there)
    changed = tuple(field.name for field in wanted if there.get(field.name, field.type) != field.type)
    schema = pa.schema([*((name, _type(wanted, name, kind)) for name, kind in there.items()), *added])
    if effects.cleared:
        rows = _laid(schema.empty_table(), effects, schema)
        return TableChange(definition, rows, effects.key, cleared=True, added=added, changed=changed)
    bases = None if changed else _needed(effects, schema)
    before = schema.empty_table() if bases is not None and not len(bases) else _retyped(_read(held, bases), schema)
    rows = _laid(before, effects, schema)
    if not changed:
        return TableChange(definition, rows, effects.key, added=added)
    untouched = pc.invert(pc.is_in(before[KEY], effects.key))
    rows = pa.concat_tables([before.filter(untouched), rows])
    return TableChange(definition, rows, effects.key, cleared=True, added=added, changed=changed)


def _needed(effects: NetEffects, schema: pa.Schema) -> pa.Array:
    """The keys of the earlier rows that are needed, because a later one does not have all columns."""
    given = {each.column.name: each.given for each in effects.columns}
    complete = np.ones(effects.keys, np.bool_)
    for name in schema.names:
        if name != KEY:
            complete &= given.get(name, False)
    wants = pc.and_(effects.base.is_valid(), pa.array(~complete & ~effects.gone))
    return effects.base.filter(wants).unique()


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


def _laid(before: pa.Table, effects: NetEffects, schema: pa.Schema) -> pa.Table:
    """The remaining rows among those that a batch touches."""
    left = np.flatnonzero(~effects.gone)
    place = pc.index_in(effects.base.take(pa.array(left)), before[KEY].combine_chunks())
    columns = {each.column.name: each for each in effects.columns}
    arrays: list[Any] = [effects.key.take(pa.array(left))]
    for field in schema:
        if field.name == KEY:
            continue
        mine = columns.get(field.name)
        if mine is None:
            arrays.append(before[field.name].combine_chunks().take(place))
            continue
        given = mine.given[left]
        fresh = typed(mine.texts.take(pa.array(left)), field.type, field.name, strict=False)
        if not given.all():
            fresh = pc.if_else(pa.array(given), fresh, before[field.name].combine_chunks().take(place))
        arrays.append(fresh)
    return pa.table(arrays, schema=schema)
