"""The change of a current table from a batch's effects: complete new rows in Arrow, with the table's columns.

Columns follow the source: a new column is added; a renamed one is renamed, if the source numbers its columns and the form
records the numbers; one with a wider type is widened, if the form can; a dropped one keeps its values and is NULL in new
rows. If a type has changed otherwise, the whole table is rewritten, with each value converted again from its text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ggshell.connectors.lake.extra_columns import CURRENT, DELETED
from ggshell.connectors.lake.forms import KEY, HeldTable, TableChange
from ggshell.connectors.lake.history import VersionChanges, joined_versions, versions
from ggshell.connectors.lake.net_effects import NetEffects
from ggshell.errors import ApplyError
from ggshell.query.values import arrow_type, texts, typed
from ggshell.record.definition import TableDefinition
from ggshell.record.operation import IoType

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


_NO_KEYS = pa.array([], pa.string())


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
    change = _evolved(effects.definition, held, rules)._replace(replaced=effects.key)
    schema = change.rows.schema
    if held is None:
        return change._replace(rows=_laid(schema.empty_table(), effects, schema), cleared=True)
    if effects.cleared and DELETED not in schema.names:
        return change._replace(rows=_laid(schema.empty_table(), effects, schema), cleared=True)
    every = bool(change.changed) or effects.cleared
    bases = None if every else _needed(effects, schema)
    before = schema.empty_table()
    if bases is None or len(bases):
        before = _retyped(_read(held, bases, dict(change.renamed)), schema)
    rows = _laid(schema.empty_table() if effects.cleared else before, effects, schema)
    if every:
        untouched = before.filter(pc.invert(pc.is_in(before[KEY], effects.key)))
        rows = pa.concat_tables([_marked(untouched) if effects.cleared else untouched, rows])
    return change._replace(rows=rows, cleared=every)


def version_change(parts: Sequence[VersionChanges], held: HeldTable | None, rules: Rules) -> TableChange:
    """The change that adds the versions of a batch to a table with HISTORY."""
    joined = joined_versions(parts)
    change = _evolved(joined.changes.definition, held, rules)
    schema = change.rows.schema
    truncated = bool((joined.changes.io_type == int(IoType.PURGE_DATA)).any())
    keys = pa.concat_arrays([joined.changes.old, joined.changes.new]).unique()
    before = schema.empty_table()
    if held is not None:
        found = _read(held, None if truncated or change.changed else keys, dict(change.renamed))
        before = _retyped(found, schema)
    is_present = before[CURRENT].combine_chunks().fill_null(True)  # NULL: HISTORY is new for the table
    if not (truncated or change.changed):
        is_present = pc.and_(is_present, pc.is_in(before[KEY].combine_chunks(), keys))
    present = before.filter(is_present)
    found_versions = versions(present, joined)
    rows = [found_versions.closed, found_versions.present]
    if change.changed:
        rows.insert(0, before.filter(pc.invert(is_present)))
    replaced = pa.concat_arrays([keys, present[KEY].combine_chunks()]).unique()
    return change._replace(rows=pa.concat_tables(rows), replaced=replaced, cleared=held is None or bool(change.changed))


def _evolved(definition: TableDefinition, held: HeldTable | None, rules: Rules) -> TableChange:
    """What a batch changes in the columns of a table; the rows of the result are empty."""
    wanted = _schema(definition, rules.fitting)
    numbers = {column.name: column.number for column in definition.columns if column.number}
    if held is None:
        return TableChange(definition, wanted.empty_table(), _NO_KEYS, numbers=numbers)
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
    return TableChange(
        definition,
        schema.empty_table(),
        _NO_KEYS,
        added=added,
        changed=changed,
        renamed=renamed,
        widened=widened,
        dropped=dropped,
        numbers={**kept, **numbers},
    )


def _marked(rows: pa.Table) -> pa.Table:
    """Rows that a TRUNCATE has deleted, in a table with SOFTDELETES."""
    return rows.set_column(rows.column_names.index(DELETED), DELETED, pa.repeat(True, rows.num_rows))


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
