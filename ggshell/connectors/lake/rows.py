"""A batch's rows in Arrow, for forms that change a table in place: the rows of the log, and a table's rows after the batch.

In addition to a table's own columns there is ``_key``, the key's values as one text, which identifies rows. Columns follow
the source: a new column is added; a column that the source has dropped keeps its values; if a type has changed, the whole
table is rewritten, with each value converted again from its text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ggshell.connectors.lake.effects import Effects
from ggshell.errors import ApplyError
from ggshell.query.trail_read import COLUMNS, chosen
from ggshell.query.values import arrow_type, texts, typed
from ggshell.record.definition import TableDefinition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEY = "_key"
Fit = Callable[[pa.DataType], pa.DataType]
Read = Callable[[Collection[str] | None], pa.Table]
_PLAIN = {
    **dict.fromkeys([pa.large_string(), pa.string_view()], pa.string()),
    **dict.fromkeys([pa.large_binary(), pa.binary_view()], pa.binary()),
}


class HeldTable(NamedTuple):
    """An existing table: its columns, and a function that reads its rows by key, or all rows (None)."""

    schema: pa.Schema
    read: Read


class TableWrite(NamedTuple):
    """A write: ``rows`` replace those with the keys ``touched``, or all rows if ``touched`` is None.

    ``added``: columns that the table does not have; ``changed``: the names of columns with another type.
    """

    rows: pa.Table
    touched: list[str] | None
    added: list[pa.Field]
    changed: list[str]


def log_rows(rows: DataFrame) -> pa.Table:
    """The changes for the log: every column of the trail."""
    return rows.select(*COLUMNS).toArrow().cast(chosen(COLUMNS))


def plain(schema: pa.Schema) -> pa.Schema:
    """A schema without large and view types: libraries return different ones, and not all functions accept them."""
    return pa.schema([(field.name, _PLAIN.get(field.type, field.type)) for field in schema])


def next_rows(
    definition: TableDefinition, effects: Effects, held: HeldTable | None, fit: Fit = lambda kind: kind
) -> TableWrite:
    """The write that applies a batch to a table (None: it does not exist yet).

    ``fit`` replaces types that a form does not have.
    """
    wanted = _schema(definition, fit)
    if held is None:
        return TableWrite(_laid(wanted.empty_table(), effects, wanted), None, [], [])
    there = {field.name: field.type for field in plain(held.schema)}
    added = [field for field in wanted if field.name not in there]
    changed = [field.name for field in wanted if there.get(field.name, field.type) != field.type]
    schema = pa.schema([*((name, _type(wanted, name, kind)) for name, kind in there.items()), *added])
    if effects.cleared:
        return TableWrite(_laid(schema.empty_table(), effects, schema), None, added, changed)
    bases = {each.base for each in effects.by_key.values() if each.base is not None and each.values is not None}
    before = _retyped(_read(held, None if changed else bases), schema) if changed or bases else schema.empty_table()
    rows = _laid(before, effects, schema)
    if not changed:
        return TableWrite(rows, list(effects.by_key), added, changed)
    untouched = pc.invert(pc.is_in(before[KEY], pa.array(list(effects.by_key), pa.string())))
    return TableWrite(pa.concat_tables([before.filter(untouched), rows]), None, added, changed)


def _schema(definition: TableDefinition, fit: Fit) -> pa.Schema:
    if any(column.name == KEY for column in definition.columns):
        raise ApplyError(
            f"column {KEY} of {definition.name} has a name that is reserved for the lake", hint="exclude the table"
        )
    own = [(column.name, fit(arrow_type(column.type_name))) for column in definition.columns]
    return pa.schema([(KEY, pa.string()), *own])


def _type(schema: pa.Schema, name: str, otherwise: pa.DataType) -> pa.DataType:
    return schema.field(name).type if name in schema.names else otherwise


def _read(held: HeldTable, keys: Collection[str] | None) -> pa.Table:
    found = held.read(keys)
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
