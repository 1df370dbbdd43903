"""The change of a current table from a batch's effects: complete new rows in Arrow, with the table's columns.

Columns follow the source: a new column is added; a renamed one is renamed, if the source numbers its columns and the form
records the numbers; one with a wider type is widened, if the form can; a dropped one keeps its values and is NULL in new
rows. If a type has changed otherwise, the whole table is rewritten, with each value converted again from its text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ggshell.connectors.lake.forms import KEY, HeldTable, TableChange
from ggshell.connectors.lake.net_effects import NetEffects
from ggshell.errors import ApplyError
from ggshell.query.values import arrow_type, texts, typed
from ggshell.record.definition import TableDefinition

_WIDER = {
    (pa.int16(), pa.int32()),
    (pa.int16(), pa.int64()),
    (pa.int32(), pa.int64()),
    (pa.float32(), pa.float64()),
}
_PLAIN = {
    **dict.fromkeys([pa.large_string(), pa.string_view()], pa.string()),
    **dict.fromkeys([pa.large_binary(), pa.binary_view()], pa.binary()),
}


def plain(schema: pa.Schema) -> pa.Schema:
    """A schema without large and view types: libraries return different ones, and not all functions accept them."""
    return pa.schema([(field.name, _PLAIN.get(field.type, field.type)) for field in schema])


class Rules(NamedTuple):
    """What a form can do: the type that it has for an Arrow type, and whether a column can be widened in place."""

    fitting: Callable[[pa.DataType], pa.DataType] = lambda kind: kind
    widens: Callable[[pa.DataType, pa.DataType], bool] = lambda old, new: False


def is_wider(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether a type holds all values of another one, in the same kind of number: what formats can promote."""
    if pa.types.is_decimal(old) and pa.types.is_decimal(new):
        return bool(new.scale == old.scale and new.precision >= old.precision)
    return (old, new) in _WIDER


def table_change(effects: NetEffects, held: HeldTable | None, rules: Rules) -> TableChange:
    """The change that applies a batch to a table (None: it does not exist yet)."""
    definition = effects.definition
    wanted = _schema(definition, rules.fitting)
    numbers = {column.name: column.number for column in definition.columns if column.number}
    if held is None:
        rows = _laid(wanted.empty_table(), effects, wanted)
        return TableChange(definition, rows, effects.key, cleared=True, numbers=numbers)
    renamed = _renamed(definition, held)
    names = dict(renamed)
    there = {names.get(field.name, field.name): field.type for field in plain(held.schema)}
    other = [field for field in wanted if there.get(field.name, field.type) != field.type]
    widened = tuple(field for field in other if rules.widens(there[field.name], field.type))
    changed = tuple(field.name for field in other if field not in widened)
    added = tuple(field for field in wanted if field.name not in there)
    schema = pa.schema([*((name, _type(wanted, name, kind)) for name, kind in there.items()), *added])
    dropped = tuple(name for name in there if name not in wanted.names)
    kept = {names.get(name, name): number for name, number in held.numbers.items()}
    change = TableChange(
        definition,
        schema.empty_table(),
        effects.key,
        effects.cleared or bool(changed),
        added,
        changed,
        renamed,
        widened,
        dropped,
        {**kept, **numbers},
    )
    if effects.cleared:
        return change._replace(rows=_laid(schema.empty_table(), effects, schema))
    bases = None if changed else _needed(effects, schema)
    before = schema.empty_table()
    if bases is None or len(bases):
        before = _retyped(_read(held, bases, names), schema)
    rows = _laid(before, effects, schema)
    if changed:
        untouched = pc.invert(pc.is_in(before[KEY], effects.key))
        rows = pa.concat_tables([before.filter(untouched), rows])
    return change._replace(rows=rows)


def _renamed(definition: TableDefinition, held: HeldTable) -> tuple[tuple[str, str], ...]:
    """The columns whose number is that of a column that the source does not have any more."""
    names = {column.name for column in definition.columns}
    gone = {number: name for name, number in held.numbers.items() if name in held.schema.names and name not in names}
    return tuple(
        (gone[column.number], column.name)
        for column in definition.columns
        if column.number in gone and column.name not in held.schema.names
    )


def _needed(effects: NetEffects, schema: pa.Schema) -> pa.Array:
    """The keys of the earlier rows that are needed, because a later one does not have all columns."""
    given = {each.column.name: each.given for each in effects.columns}
    complete = np.ones(effects.keys, np.bool_)
    for name in schema.names:
        if name != KEY:
            complete &= given.get(name, False)
    wants = pc.and_(effects.base.is_valid(), pa.array(~complete & ~effects.gone))
    return effects.base.filter(wants).unique()


def _schema(definition: TableDefinition, fit: Callable[[pa.DataType], pa.DataType]) -> pa.Schema:
    if any(column.name == KEY for column in definition.columns):
        raise ApplyError(
            f"column {KEY} of {definition.name} has a name that is reserved for the lake", hint="exclude the table"
        )
    own = [(column.name, fit(arrow_type(column.type_name))) for column in definition.columns]
    return pa.schema([(KEY, pa.string()), *own])


def _type(schema: pa.Schema, name: str, otherwise: pa.DataType) -> pa.DataType:
    return schema.field(name).type if name in schema.names else otherwise


def _read(held: HeldTable, keys: pa.Array | None, renamed: Mapping[str, str]) -> pa.Table:
    found = held.rows(keys)
    return found.cast(plain(found.schema)).rename_columns([renamed.get(name, name) for name in found.column_names])


def _retyped(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Convert rows to a schema: missing columns are NULL, columns of another type are converted from their text."""
    arrays = []
    for field in schema:
        if field.name not in rows.column_names:
            arrays.append(pa.nulls(rows.num_rows, field.type))
            continue
        column = rows[field.name].combine_chunks()
        if column.type != field.type and is_wider(column.type, field.type):
            column = column.cast(field.type)
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
