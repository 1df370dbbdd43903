"""Every version of the rows of a table (slowly changing dimension, type 2).

A version is valid from the commit of the transaction that made it until the commit of the one that replaced or deleted it. The
present version has the key of its row in ``_key``; an earlier one has the key and the time from which it was valid, so a change
of a row replaces its present version only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ggshell.connectors.lake.columns import values_of
from ggshell.connectors.lake.extra_columns import CURRENT, VALID_FROM, VALID_TO
from ggshell.connectors.lake.forms import KEY
from ggshell.connectors.lake.net_effects import (
    Bools,
    Changes,
    ColumnTexts,
    Ints,
    aligned_columns,
    chains,
    coded,
    cut,
    touches,
)
from ggshell.record.operation import IoType
from ggshell.trail.arrow import TIME

_SEPARATOR = "\x03"


class VersionChanges(NamedTuple):
    """Changes of one table with the commit time (microseconds since 1970) and the transaction of each."""

    changes: Changes
    times: Ints
    transactions: pa.Array

    def cut(self, first: int, last: int | None) -> VersionChanges:
        """Some of the changes."""
        each = slice(first, last)
        return VersionChanges(cut(self.changes, first, last), self.times[each], self.transactions[each])


class Versions(NamedTuple):
    """The result of changes: closed versions, and the present rows of all keys that were given or changed.

    ``nulled``: the columns with values that their types cannot hold.
    """

    closed: pa.Table
    present: pa.Table
    nulled: frozenset[str] = frozenset()


def joined_versions(parts: Sequence[VersionChanges]) -> VersionChanges:
    """Changes one after the other, in the columns of the last definition and those that only earlier ones have."""
    changes = [each.changes for each in parts]
    columns = aligned_columns(changes)
    every = Changes(
        next((each.definition for each in reversed(changes) if each.definition.columns), changes[-1].definition),
        np.concatenate([each.io_type for each in changes]),
        pa.concat_arrays([each.old for each in changes]),
        pa.concat_arrays([each.new for each in changes]),
        columns,
    )
    times = np.concatenate([each.times for each in parts])
    return VersionChanges(every, times, pa.concat_arrays([each.transactions for each in parts]))


def versions(present: pa.Table, parts: VersionChanges) -> Versions:
    """Apply changes to present rows, which must include those with any key of the changes; all rows if there is a TRUNCATE."""
    closed, nulled = [present.schema.empty_table()], set[str]()
    truncates = np.flatnonzero(parts.changes.io_type == int(IoType.PURGE_DATA)).tolist()
    first = 0
    for place in [*truncates, None]:
        segment = parts.cut(first, place)
        if len(segment.times):
            found = _applied(present, segment)
            closed.append(found.closed)
            present = found.present
            nulled |= found.nulled
        if place is not None:
            ended = pa.array(np.full(present.num_rows, parts.times[place]), pa.int64()).cast(TIME)
            closed.append(_closed(present, ended))
            present, first = present.schema.empty_table(), place + 1
    return Versions(pa.concat_tables(closed), present, frozenset(nulled))


def _applied(present: pa.Table, parts: VersionChanges) -> Versions:
    changes = parts.changes
    codes, keys = coded(changes)
    moved = codes.old != codes.new
    touched = touches(codes, moved)
    root, base = chains(changes, codes, moved, touched, has_rows=True)
    ends = _ends(touched.key, touched.event, touched.leaves, len(changes.io_type))
    made, nulled = _made(present, parts, keys, root, base)
    made = made.set_column(made.column_names.index(VALID_TO), VALID_TO, _times(parts.times, ends))
    alive = (changes.io_type != int(IoType.DELETE)) & ~_same_transaction(parts.transactions, ends)
    ended = ends >= 0
    first = np.flatnonzero(np.append(True, touched.key[1:] != touched.key[:-1])[: len(touched.key)])
    known = pc.index_in(present[KEY].combine_chunks(), keys.take(pa.array(touched.key[first])))
    stays = present.filter(pc.is_null(known))
    old = present.filter(pc.is_valid(known))
    time = pa.array(parts.times[touched.event[first]], pa.int64()).cast(TIME).take(known.drop_null())
    closed = [_closed(old, time), _closed_made(made, alive & ended)]
    rows = pa.concat_tables([stays, made.filter(pa.array(alive & ~ended))])
    return Versions(pa.concat_tables(closed), rows, nulled)


def _ends(key: Ints, event: Ints, leaves: Bools, count: int) -> Ints:
    """The change that ends the version that each change makes: the next one of its key; -1 if there is none."""
    following = np.full(len(key), -1)
    same = key[1:] == key[:-1]
    following[:-1][same] = event[1:][same]
    ends = np.full(count, -1)
    ends[event[~leaves]] = following[~leaves]
    return ends


def _same_transaction(transactions: pa.Array, ends: Ints) -> Bools:
    """Which versions end in the transaction that made them: no reader has ever seen these."""
    later = transactions.take(pa.array(ends, mask=ends < 0))
    found: Bools = pc.equal(transactions, later).fill_null(False).to_numpy(zero_copy_only=False)
    return found


def _times(times: Ints, ends: Ints) -> pa.Array:
    return pa.array(times[np.maximum(ends, 0)], pa.int64(), mask=ends < 0).cast(TIME)


def _made(
    present: pa.Table, parts: VersionChanges, keys: pa.Array, root: Ints, base: Ints
) -> tuple[pa.Table, frozenset[str]]:
    """The row after each change, with all columns of the table: those that its chain has given, else those of its base.

    Also returns the columns with values that their types cannot hold.
    """
    changes, count = parts.changes, len(root)
    order = np.argsort(root, kind="stable")
    starts = np.append(True, root[order][1:] != root[order][:-1])[:count]
    begin = np.maximum.accumulate(np.where(starts, np.arange(count), 0))
    bases = keys.take(pa.array(base[root], mask=base[root] < 0))
    place = pc.index_in(bases, present[KEY].combine_chunks())
    place = pc.if_else(pc.is_valid(bases), place, pa.scalar(None, pa.int32()))
    given = {each.column.name: each for each in changes.columns}
    deletes = changes.io_type == int(IoType.DELETE)
    arrays, nulled = list[pa.Array](), set[str]()
    for field in present.schema:
        before = present[field.name].combine_chunks().take(place)
        if field.name == KEY:
            arrays.append(changes.new)
        elif field.name == VALID_FROM:
            arrays.append(pa.array(parts.times, pa.int64()).cast(TIME))
        elif field.name in (VALID_TO, CURRENT):
            arrays.append(pa.nulls(count, field.type) if field.name == VALID_TO else pa.repeat(True, count))
        elif field.name in given:
            each = given[field.name]
            source = _last_given(each, order, begin, ~deletes)
            values, lossy = values_of(each.texts.take(pa.array(source, mask=source < 0)), field)
            arrays.append(pc.if_else(pa.array(source >= 0), values, before))
            if lossy:
                nulled.add(field.name)
        else:
            arrays.append(before)
    return pa.table(arrays, schema=present.schema), frozenset(nulled)


def _last_given(each: ColumnTexts, order: Ints, begin: Ints, counts: Bools) -> Ints:
    """The change that has given the value of a column after each change, in its chain; -1 if none has."""
    last = np.maximum.accumulate(np.where((each.given & counts)[order], np.arange(len(order)), -1))
    place = np.empty(len(order), np.int64)
    place[order] = np.where(last >= begin, order[np.maximum(last, 0)], -1)
    return place


def _closed_made(made: pa.Table, which: Bools) -> pa.Table:
    rows = made.filter(pa.array(which))
    return _closed(rows, rows[VALID_TO].combine_chunks())


def _closed(rows: pa.Table, ended: pa.Array) -> pa.Table:
    """Versions that no longer exist."""
    since = rows[VALID_FROM].combine_chunks().cast(pa.int64()).cast(pa.string()).fill_null("")
    values = {
        KEY: pc.binary_join_element_wise(rows[KEY].combine_chunks(), since, _SEPARATOR),
        VALID_TO: ended,
        CURRENT: pa.repeat(False, rows.num_rows),
    }
    arrays = [values.get(field.name, rows[field.name]) for field in rows.schema]
    return pa.table(arrays, schema=rows.schema)
