"""The change of a current table from a batch's effects: complete new rows in Arrow, with the table's columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ggshell.connectors.lake.columns import Rules, earlier_rows, evolved, placed, values_of
from ggshell.connectors.lake.extra_columns import CURRENT, DELETED
from ggshell.connectors.lake.forms import KEY, HeldTable, TableChange
from ggshell.connectors.lake.history import VersionChanges, joined_versions, versions
from ggshell.connectors.lake.net_effects import NetEffects, aligned
from ggshell.connectors.lake.rekeying import rekeyed
from ggshell.connectors.lake.steps import in_steps
from ggshell.connectors.lake.table_keys import KeyColumn, is_same_key, key_columns
from ggshell.record.definition import TableDefinition
from ggshell.record.operation import IoType


class Laid(NamedTuple):
    """Rows, and the columns with values that their types cannot hold."""

    rows: pa.Table
    nulled: tuple[str, ...]


def table_change(parts: Sequence[NetEffects], held: HeldTable | None, rules: Rules) -> TableChange:
    """The change that applies a batch to a table (``held`` None: it does not exist yet).

    ``parts``: effects in order; a part ends where the key or the columns of the table change. Raises ApplyError.
    """
    return in_steps(parts, lambda part: part.definition, _table_step, held, rules)


def _table_step(parts: Sequence[NetEffects], held: HeldTable | None, rules: Rules) -> TableChange:
    last = parts[-1]
    remains = not parts[0].cleared or any(column.name == DELETED for column in last.definition.columns)
    change = evolved(last.definition, held, rules, has_rows=remains)
    stored_as, schema = dict(change.stored_as), change.rows.schema
    parts = [each._replace(columns=placed(aligned(each, last)[0].columns, stored_as)) for each in parts]
    keys = _keys(held, [each.definition for each in parts])
    change = change._replace(rekeyed=len(keys) > 1)
    if held is None or change.rekeyed or change.changed or change.reused or any(each.cleared for each in parts):
        return _whole(parts, keys, held, change)
    effects = parts[0]
    bases, before = _needed(effects, schema), schema.empty_table()
    if len(bases):
        before = earlier_rows(held, bases, change)
    laid = _laid(before, effects, schema)
    return change._replace(rows=laid.rows, nulled=laid.nulled, replaced=effects.key)


def _whole(
    parts: Sequence[NetEffects], keys: Sequence[Sequence[KeyColumn]], held: HeldTable | None, change: TableChange
) -> TableChange:
    """The change of a table that is rewritten."""
    schema, stored_as, nulled = change.rows.schema, dict(change.stored_as), dict[str, None]()
    rows = schema.empty_table()
    if held is not None and (DELETED in schema.names or not parts[0].cleared):
        rows = earlier_rows(held, None, change)
    known = keys[0]
    for effects in parts:
        if effects.cleared:
            rows = _marked(rows, effects.clearing) if DELETED in schema.names else schema.empty_table()
        key = key_columns(effects.definition) or known
        if not is_same_key(known, key):
            rows, known = rekeyed(rows, effects.definition.name, known, key, stored_as), key
        laid = _laid(rows, effects, schema)
        nulled |= dict.fromkeys(laid.nulled)
        rows = pa.concat_tables([rows.filter(pc.invert(pc.is_in(rows[KEY], effects.key))), laid.rows])
    return change._replace(rows=rows, nulled=tuple(nulled), replaced=parts[-1].key, cleared=True)


def version_change(parts: Sequence[VersionChanges], held: HeldTable | None, rules: Rules) -> TableChange:
    """The change that adds the versions of a batch to a table with HISTORY. Raises ApplyError."""
    return in_steps(parts, lambda part: part.changes.definition, _version_step, held, rules)


def _version_step(parts: Sequence[VersionChanges], held: HeldTable | None, rules: Rules) -> TableChange:
    joined = joined_versions(parts)
    change = evolved(joined.changes.definition, held, rules)
    stored_as, schema = dict(change.stored_as), change.rows.schema
    keys = _keys(held, [each.changes.definition for each in parts])
    change = change._replace(rekeyed=len(keys) > 1)
    is_rewritten = bool(change.changed or change.reused) or change.rekeyed
    every = is_rewritten or bool((joined.changes.io_type == int(IoType.PURGE_DATA)).any())
    touched = pa.concat_arrays([joined.changes.old, joined.changes.new]).unique()
    before = schema.empty_table()
    if held is not None:
        before = earlier_rows(held, None if every else touched, change)
    is_present = before[CURRENT].combine_chunks().fill_null(True)  # NULL: HISTORY is new for the table
    if not every:
        is_present = pc.and_(is_present, pc.is_in(before[KEY].combine_chunks(), touched))
    present, rows = before.filter(is_present), list[pa.Table]()
    replaced = pa.concat_arrays([touched, present[KEY].combine_chunks()]).unique()
    nulled, known = dict[str, None](), keys[0]
    for key, part in _of_one_key(parts, joined, stored_as):
        if key and not is_same_key(known, key):
            present, known = rekeyed(present, change.definition.name, known, key, stored_as), key
        found = versions(present, part)
        rows.append(found.closed)
        present = found.present
        nulled |= dict.fromkeys(found.nulled)
    cleared = held is None or is_rewritten
    if cleared:
        rows.insert(0, before.filter(pc.invert(is_present)))
    return change._replace(
        rows=pa.concat_tables([*rows, present]), nulled=tuple(nulled), replaced=replaced, cleared=cleared
    )


def _of_one_key(
    parts: Sequence[VersionChanges], joined: VersionChanges, stored_as: Mapping[str, str]
) -> list[tuple[tuple[KeyColumn, ...], VersionChanges]]:
    """The changes, with the columns of the table, in parts that end where the key of the table changes."""
    changes = joined.changes._replace(columns=placed(joined.changes.columns, stored_as))
    joined, found, first = joined._replace(changes=changes), list[tuple[tuple[KeyColumn, ...], int]](), 0
    for each in parts:
        key = key_columns(each.changes.definition)
        if not found or (key and found[-1][0] and not is_same_key(found[-1][0], key)):
            found.append((key, first))
        elif not found[-1][0]:
            found[-1] = (key, found[-1][1])
        first += len(each.times)
    ends = [*(start for _, start in found[1:]), first]
    return [(key, joined.cut(start, end)) for (key, start), end in zip(found, ends, strict=True)]


def _keys(held: HeldTable | None, definitions: Sequence[TableDefinition]) -> list[tuple[KeyColumn, ...]]:
    """The keys that a table has one after the other; an earlier version did not record the first one."""
    found = list[tuple[KeyColumn, ...]]()
    for key in [held.key or () if held is not None else (), *map(key_columns, definitions)]:
        if key and not (found and is_same_key(found[-1], key)):
            found.append(key)
    return found or [()]


def _marked(rows: pa.Table, clearing: Mapping[str, str]) -> pa.Table:
    """The rows of a table with SOFTDELETES after a TRUNCATE. ``clearing``: the texts that the rows get that it deletes."""
    deleted = rows[DELETED].combine_chunks().fill_null(False)
    for name, text in {**clearing, DELETED: "t"}.items():
        place = rows.schema.get_field_index(name)
        value, _ = values_of(pa.array([text], pa.string()), rows.schema.field(place))
        before = rows[name].combine_chunks()
        rows = rows.set_column(place, rows.schema.field(place), pc.if_else(deleted, before, value[0]))
    return rows


def _needed(effects: NetEffects, schema: pa.Schema) -> pa.Array:
    """The keys of the earlier rows that are needed, because a later one does not have all columns."""
    given = {each.column.name: each.given for each in effects.columns}
    complete = np.ones(effects.keys, np.bool_)
    for name in schema.names:
        if name != KEY:
            complete &= given.get(name, False)
    wants = pc.and_(effects.base.is_valid(), pa.array(~complete & ~effects.gone))
    return effects.base.filter(wants).unique()


def _laid(before: pa.Table, effects: NetEffects, schema: pa.Schema) -> Laid:
    """The remaining rows among those that a batch touches."""
    left = np.flatnonzero(~effects.gone)
    place = pc.index_in(effects.base.take(pa.array(left)), before[KEY].combine_chunks())
    columns = {each.column.name: each for each in effects.columns}
    arrays: list[Any] = [effects.key.take(pa.array(left))]
    nulled = []
    for field in schema:
        if field.name == KEY:
            continue
        mine = columns.get(field.name)
        if mine is None:
            arrays.append(before[field.name].combine_chunks().take(place))
            continue
        given = mine.given[left]
        fresh, lossy = values_of(mine.texts.take(pa.array(left)), field)
        if lossy:
            nulled.append(field.name)
        if not given.all():
            fresh = pc.if_else(pa.array(given), fresh, before[field.name].combine_chunks().take(place))
        arrays.append(fresh)
    return Laid(pa.table(arrays, schema=schema), tuple(nulled))
