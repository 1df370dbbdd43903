"""A batch's rows in Arrow, as forms write them that change a table in place: those of the log, and a table's after the batch.

Beside a table's own columns there is ``_key``, the key's values as one text, by which rows are found.  Columns come and go as
the source's do: a new one is added, one that the source has dropped stays with what it holds, and where a type has changed
the whole table is written anew, each value read from its text again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ggshell.errors import ApplyError
from ggshell.lake.effects import Effects
from ggshell.record.definition import TableDefinition
from ggshell.spark import facts
from ggshell.spark.values import arrow_type, texts, typed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEY = "_key"
Fit = Callable[[pa.DataType], pa.DataType]
Read = Callable[[Collection[str] | None], pa.Table]
_PLAIN = {
    **dict.fromkeys([pa.large_string(), pa.string_view()], pa.string()),
    **dict.fromkeys([pa.large_binary(), pa.binary_view()], pa.binary()),
}


class Held(NamedTuple):
    """A table as it is: its columns, and what reads its rows by their keys, or all (None)."""

    schema: pa.Schema
    read: Read


class Next(NamedTuple):
    """What to write: ``rows`` in place of those with the keys ``touched``, or, where that is None, of all rows.

    ``added`` are columns that the table has not; ``changed`` the names of those whose type is another than it has.
    """

    rows: pa.Table
    touched: list[str] | None
    added: list[pa.Field]
    changed: list[str]


def log_rows(rows: DataFrame) -> pa.Table:
    """Changes as the log has them: every column of the trail."""
    return rows.select(*facts.COLUMNS).toArrow().cast(facts.chosen(facts.COLUMNS))


def plain(schema: pa.Schema) -> pa.Schema:
    """A schema without large and view types: libraries differ in which of them they give, and not all can be computed with."""
    return pa.schema([(field.name, _PLAIN.get(field.type, field.type)) for field in schema])


def next_rows(definition: TableDefinition, effects: Effects, held: Held | None, fit: Fit = lambda kind: kind) -> Next:
    """The write that brings a table (None: there is none yet) behind a batch; ``fit``: a form's type for one it has not."""
    wanted = _schema(definition, fit)
    if held is None:
        return Next(_laid(wanted.empty_table(), effects, wanted), None, [], [])
    there = {field.name: field.type for field in plain(held.schema)}
    added = [field for field in wanted if field.name not in there]
    changed = [field.name for field in wanted if there.get(field.name, field.type) != field.type]
    schema = pa.schema([*((name, _type(wanted, name, kind)) for name, kind in there.items()), *added])
    if effects.cleared:
        return Next(_laid(schema.empty_table(), effects, schema), None, added, changed)
    bases = {each.base for each in effects.by_key.values() if each.base is not None and each.values is not None}
    before = _retyped(_read(held, None if changed else bases), schema) if changed or bases else schema.empty_table()
    rows = _laid(before, effects, schema)
    if not changed:
        return Next(rows, list(effects.by_key), added, changed)
    untouched = pc.invert(pc.is_in(before[KEY], pa.array(list(effects.by_key), pa.string())))
    return Next(pa.concat_tables([before.filter(untouched), rows]), None, added, changed)


def _schema(definition: TableDefinition, fit: Fit) -> pa.Schema:
    if any(column.name == KEY for column in definition.columns):
        raise ApplyError(f"{definition.name} has a column {KEY}, which is the lake's own", hint="leave the table out")
    own = [(column.name, fit(arrow_type(column.type_name))) for column in definition.columns]
    return pa.schema([(KEY, pa.string()), *own])


def _type(schema: pa.Schema, name: str, otherwise: pa.DataType) -> pa.DataType:
    return schema.field(name).type if name in schema.names else otherwise


def _read(held: Held, keys: Collection[str] | None) -> pa.Table:
    found = held.read(keys)
    return found.cast(plain(found.schema))


def _retyped(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows in the columns of a schema: NULL in those that they have not, read again from the text where the type is another."""
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
    """The rows that a batch leaves, of those that it touches."""
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
