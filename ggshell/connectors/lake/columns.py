"""The columns of a current table, and how a batch changes them.

Columns follow the source: a new column is added, with the value that the source has in earlier rows; a renamed one is renamed,
if the source numbers its columns and the form can rename; one with a wider type is widened, if the form can; a dropped one
keeps its values and is NULL in new rows. If a type has changed otherwise, the table is rewritten, provided that the new type
holds each of its values. If not, the column does not change, and the values of the new type have a column of their own
(``price_int``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from ggshell.connectors.lake.forms import KEY, HeldTable, LakeTables, TableChange
from ggshell.connectors.lake.net_effects import ColumnTexts
from ggshell.connectors.lake.table_keys import key_columns
from ggshell.connectors.lake.type_changes import is_wider
from ggshell.errors import ApplyError
from ggshell.query.values import arrow_type, spark_type, texts, typed
from ggshell.record.definition import TableDefinition, no_column, same_number

_PLAIN = {
    **dict.fromkeys([pa.large_string(), pa.string_view()], pa.string()),
    **dict.fromkeys([pa.large_binary(), pa.binary_view()], pa.binary()),
}
_NO_KEYS = pa.array([], pa.string())


def plain(schema: pa.Schema) -> pa.Schema:
    """A schema without large and view types: libraries return different ones, and not all functions accept them."""
    return pa.schema([(field.name, _PLAIN.get(field.type, field.type)) for field in schema])


class Rules(NamedTuple):
    """What a form can do: the type that it has for an Arrow type, whether a column can be widened in place, or renamed."""

    fitting: Callable[[pa.DataType], pa.DataType] = lambda kind: kind
    widens: Callable[[pa.DataType, pa.DataType], bool] = lambda old, new: False
    renames: bool = True

    @classmethod
    def of(cls, tables: LakeTables) -> Rules:
        return cls(tables.fitting, tables.widens, tables.renames)


def evolved(definition: TableDefinition, held: HeldTable | None, rules: Rules, *, has_rows: bool = True) -> TableChange:
    """What a batch changes in the columns of a table; the rows of the result are empty.

    ``has_rows``: rows that the table has before the batch remain. Raises ApplyError if a column has a reserved name.
    """
    if not definition.columns and held is not None:
        return TableChange(
            definition, plain(held.schema).empty_table(), _NO_KEYS, numbers=held.numbers, key=held.key or ()
        )
    wanted, key = _schema(definition, rules.fitting), key_columns(definition)
    numbers = {column.name: column.number for column in definition.columns if column.number}
    if held is None:
        return TableChange(definition, wanted.empty_table(), _NO_KEYS, numbers=numbers, key=key)
    renamed = _renamed(definition, held) if rules.renames else ()
    reused = _reused(definition, held)
    new_names, former_names = dict(renamed), dict(reused)
    existing = {new_names.get(field.name, field.name): field.type for field in plain(held.schema)}
    same = pa.schema([field for field in wanted if field.name not in former_names])
    stored_as = _stored_as(same, existing, _Values(held, new_names if has_rows else None), rules)
    wanted = pa.schema([field.with_name(stored_as.get(field.name, field.name)) for field in wanted])
    added = tuple(field for field in wanted if field.name not in existing)
    widened, changed = _retyped_columns(wanted, existing, former_names, rules)
    without_values = (*added, *(wanted.field(name) for name, former in reused if not former))
    return TableChange(
        definition,
        _after(existing, wanted).empty_table(),
        _NO_KEYS,
        added=added,
        changed=changed,
        renamed=renamed,
        widened=widened,
        dropped=tuple(name for name in existing if name not in wanted.names and name not in stored_as),
        stored_as=tuple(stored_as.items()),
        filled=_filled(definition, stored_as, without_values),
        reused=reused,
        numbers=_numbers(held, new_names, {stored_as.get(name, name): number for name, number in numbers.items()}),
        key=key,
    )


def _retyped_columns(
    wanted: pa.Schema, existing: Mapping[str, pa.DataType], reused: Mapping[str, str], rules: Rules
) -> tuple[tuple[pa.Field, ...], tuple[str, ...]]:
    """The columns whose type becomes a wider one in place, and the names of those whose type changes otherwise."""
    retyped = [field for field in wanted if existing.get(field.name, field.type) != field.type]
    widened = tuple(
        field for field in retyped if field.name not in reused and rules.widens(existing[field.name], field.type)
    )
    return widened, tuple(field.name for field in retyped if field not in widened)


def _after(existing: Mapping[str, pa.DataType], wanted: pa.Schema) -> pa.Schema:
    """The columns of a table after a change: those that it has, in the wanted types, and then new ones."""
    kept = [(name, wanted.field(name).type if name in wanted.names else kind) for name, kind in existing.items()]
    return pa.schema([*kept, *(field for field in wanted if field.name not in existing)])


def _numbers(held: HeldTable, new_names: Mapping[str, str], numbers: Mapping[str, int]) -> dict[str, int]:
    """The source's numbers of a table's columns: the present ones, and those of columns that the source has dropped.

    If the lake has the column of a number under another name now, the former name stays in the table, as no column of the
    source: a later column of that name is a different one.
    """
    used = set(numbers.values())
    kept = {
        new_names.get(name, name): no_column(number) if number in used else number
        for name, number in held.numbers.items()
    }
    return {**{name: number for name, number in kept.items() if number}, **numbers}


def placed(columns: Sequence[ColumnTexts], stored_as: Mapping[str, str]) -> tuple[ColumnTexts, ...]:
    """Columns with the names that they have in the lake."""
    return tuple(
        each._replace(column=each.column._replace(name=stored_as.get(each.column.name, each.column.name)))
        for each in columns
    )


def values_of(column: pa.Array, field: pa.Field) -> tuple[pa.Array, bool]:
    """Values from the source's texts, and whether the type cannot hold some of them, which are then NULL."""
    values = typed(column, field.type, field.name, strict=False)
    return values, values.null_count > column.null_count


def _filled(
    definition: TableDefinition, stored_as: Mapping[str, str], added: Sequence[pa.Field]
) -> Mapping[str, pa.Scalar]:
    """The values of added columns in earlier rows, if the trail has them and the types hold them."""
    fields, found = {field.name: field for field in added}, {}
    for column in definition.columns:
        field = fields.get(stored_as.get(column.name, column.name))
        if field is not None and column.missing is not None:
            values, lossy = values_of(pa.array([column.missing], pa.string()), field)
            if not lossy:
                found[field.name] = values[0]
    return found


def with_filled(rows: pa.Table, filled: Mapping[str, pa.Scalar]) -> pa.Table:
    """Earlier rows with the values of added columns."""
    for name, value in filled.items():
        place = rows.schema.get_field_index(name)
        field = rows.schema.field(place)
        rows = rows.set_column(place, field, pa.repeat(value.cast(field.type), rows.num_rows))
    return rows


def earlier_rows(held: HeldTable, keys: pa.Array | None, change: TableChange) -> pa.Table:
    """Rows of a table by key, or all rows (None), in the columns that it has after a change."""
    rows = held_rows(held, keys, {})
    columns = dict(zip(rows.column_names, rows.columns, strict=True))
    names = {new: old for old, new in change.renamed} | dict(change.reused)
    wanted = [(field.name, names.get(field.name, field.name)) for field in change.rows.schema]
    found = pa.table({name: columns[former] for name, former in wanted if former in columns})
    return with_filled(retyped(found, change.rows.schema), change.filled)


def held_rows(held: HeldTable, keys: pa.Array | None, renamed: Mapping[str, str]) -> pa.Table:
    """Rows of a table by key, or all rows (None), in its plain types and under the new names of renamed columns."""
    found = held.rows(keys)
    return found.cast(plain(found.schema)).rename_columns([renamed.get(name, name) for name in found.column_names])


def retyped(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Convert rows to a schema: missing columns are NULL, columns of another type are converted from their text."""
    arrays = []
    for field in schema:
        if field.name not in rows.column_names:
            arrays.append(pa.nulls(rows.num_rows, field.type))
            continue
        column = rows[field.name].combine_chunks()
        if column.type != field.type and is_wider(column.type, field.type):
            column = column.cast(field.type)
        arrays.append(column if column.type == field.type else values_of(texts(column), field)[0])
    return pa.table(arrays, schema=schema)


class _Values:
    """The values of a table, which are read when they are asked for. ``names``: those of renamed columns; None: no rows."""

    def __init__(self, held: HeldTable, names: Mapping[str, str] | None) -> None:
        self._held = held
        self._names = names
        self._rows: pa.Table | None = None

    def fit(self, name: str, kind: pa.DataType) -> bool:
        """Whether a type holds each value of a column."""
        if self._names is None:
            return True
        if self._rows is None:
            self._rows = held_rows(self._held, None, self._names)
        _, lossy = values_of(texts(self._rows[name].combine_chunks()), pa.field(name, kind))
        return not lossy


def _stored_as(wanted: pa.Schema, existing: Mapping[str, pa.DataType], values: _Values, rules: Rules) -> dict[str, str]:
    """The columns whose values have a column of another name in the lake, because theirs has another type."""
    found = {}
    for field in wanted:
        kind = existing.get(field.name, field.type)
        if kind == field.type or rules.widens(kind, field.type) or is_wider(kind, field.type):
            continue
        name = _free_name(field, wanted, existing)
        if name in existing or not (field.type == pa.string() or values.fit(field.name, field.type)):
            found[field.name] = name
    return found


def _free_name(field: pa.Field, wanted: pa.Schema, existing: Mapping[str, pa.DataType]) -> str:
    """The name of a column for the values of a type: always the same one, so that no record of it is necessary."""
    name = f"{field.name}_{re.sub('[^a-z0-9]+', '_', spark_type(field.type)).strip('_')}"
    while name in wanted.names or existing.get(name, field.type) != field.type:
        name += "_"
    return name


def _renamed(definition: TableDefinition, held: HeldTable) -> tuple[tuple[str, str], ...]:
    """The columns whose number is that of a column that the source no longer has."""
    names = {column.name for column in definition.columns}
    gone = {number: name for name, number in held.numbers.items() if name in held.schema.names and name not in names}
    return tuple(
        (gone[column.number], column.name)
        for column in definition.columns
        if column.number in gone and column.name not in held.schema.names
    )


def _reused(definition: TableDefinition, held: HeldTable) -> tuple[tuple[str, str], ...]:
    """The columns with the name that another one has in the lake, and what they are called there, if they are there.

    Also columns whose own name there is taken in this way.
    """
    numbers = {name: number for name, number in held.numbers.items() if name in held.schema.names}
    names, found = {column.name for column in definition.columns}, []
    for column in definition.columns:
        former = next((name for name, number in numbers.items() if same_number(number, column.number)), "")
        own = numbers.get(column.name, 0)
        # A column that has left its name comes back, or has the values of another type elsewhere.
        has_left = own == no_column(own) and former and former not in names
        is_other = not has_left and same_number(own, column.number) is False
        if is_other or (former in names and former != column.name):
            found.append((column.name, former))
    return tuple(found)


def _schema(definition: TableDefinition, fit: Callable[[pa.DataType], pa.DataType]) -> pa.Schema:
    if any(column.name == KEY for column in definition.columns):
        raise ApplyError(
            f"column {KEY} of {definition.name} has a name that is reserved for the lake", hint="exclude the table"
        )
    own = [(column.name, fit(arrow_type(column.known_type))) for column in definition.columns]
    return pa.schema([(KEY, pa.string()), *own])
