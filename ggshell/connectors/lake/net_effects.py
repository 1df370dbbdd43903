"""The net effect of a sequence of changes on the rows of a table, computed with array operations.

A test compares the result with that of one change at a time; here a whole slice of a trail is reduced at once. Each change
continues the row that its key had before it. So the changes form chains: a chain begins at a row of the table (its *base*)
or at an empty row, follows key changes, and ends where a key is deleted, replaced or left. The net effect of a key is the
last value of each column in the chain that ends at this key.

Net effects are associative: slices can be reduced in parallel and composed in order (``composed``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ggshell.connectors.lake.shapes import continues
from ggshell.connectors.lake.table_keys import is_same_key, key_columns
from ggshell.record.definition import Column, TableDefinition, is_same_column
from ggshell.record.operation import IoType

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
_RESETS = (int(IoType.INSERT), int(IoType.DELETE))


class ColumnTexts(NamedTuple):
    """One column of many rows: its texts, and which rows have it (a row can have it with the value NULL)."""

    column: Column
    texts: pa.Array
    given: Bools


class Changes(NamedTuple):
    """Changes of one table in order: operation, the key before (``old``) and after (``new``), and the columns.

    ``old`` differs from ``new`` for a change of the key only.
    """

    definition: TableDefinition
    io_type: NDArray[np.uint8]
    old: pa.Array
    new: pa.Array
    columns: tuple[ColumnTexts, ...]


class NetEffects(NamedTuple):
    """The effect on each key, at most one for a key.

    ``gone``: no row has the key. Otherwise the given columns are laid over the row that had the key ``base`` before
    (NULL: over an empty row). ``cleared``: a TRUNCATE has deleted all other rows; ``clearing``: the texts of the columns that
    it gives to rows that stay although they are deleted. ``definition`` is the newest one; the columns can include some that
    it no longer has.
    """

    definition: TableDefinition
    key: pa.Array
    base: pa.Array
    gone: Bools
    columns: tuple[ColumnTexts, ...]
    cleared: bool = False
    clearing: Mapping[str, str] = {}

    @property
    def keys(self) -> int:
        return len(self.key)


def net_effects(changes: Changes) -> NetEffects:
    """The net effect of changes."""
    truncates = np.flatnonzero(changes.io_type == int(IoType.PURGE_DATA))
    clearing: Mapping[str, str] = {}
    if len(truncates):
        clearing = _given_at(changes, int(truncates[-1]))
        changes = cut(changes, int(truncates[-1]) + 1, None)
    cleared = bool(len(truncates))
    codes, keys = coded(changes)
    moved = codes.old != codes.new
    touched = touches(codes, moved)
    root, base = chains(changes, codes, moved, touched, has_rows=not cleared)
    last = touched.last_of_key
    final = touched.event[last]
    gone = touched.leaves[last] | (changes.io_type[final] == int(IoType.DELETE))
    columns = _last_values(changes, root, final, gone)
    bases = keys.take(pa.array(np.where(gone, -1, base[root[final]]), mask=gone | (base[root[final]] < 0)))
    key = keys.take(pa.array(touched.key[last]))
    return NetEffects(changes.definition, key, bases, gone, columns, cleared, clearing)


def between_truncates(changes: Changes) -> list[Changes]:
    """The changes in parts, of which all but the first one begin with a TRUNCATE."""
    truncates = np.flatnonzero(changes.io_type == int(IoType.PURGE_DATA)).tolist()
    starts = sorted({0, *truncates})
    return [cut(changes, *span) for span in zip(starts, [*starts[1:], None], strict=True)]


def cut(changes: Changes, first: int, last: int | None) -> Changes:
    """Some of the changes."""
    some = slice(first, last)
    columns = tuple(ColumnTexts(each.column, each.texts[some], each.given[some]) for each in changes.columns)
    return Changes(changes.definition, changes.io_type[some], changes.old[some], changes.new[some], columns)


def _given_at(changes: Changes, row: int) -> Mapping[str, str]:
    """The texts that a change gives."""
    found = {each.column.name: each.texts[row].as_py() for each in changes.columns if each.given[row]}
    return {name: text for name, text in found.items() if text is not None}


class KeyCodes(NamedTuple):
    """The keys of changes as numbers."""

    old: Ints
    new: Ints


def coded(changes: Changes) -> tuple[KeyCodes, pa.Array]:
    """The keys of changes as numbers, and the key of each number."""
    both = pa.chunked_array([changes.new, changes.old], pa.string()).combine_chunks().dictionary_encode()
    numbers = both.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return KeyCodes(numbers[len(changes.new) :], numbers[: len(changes.new)]), both.dictionary


class Touches(NamedTuple):
    """Every change of a key, sorted by key, then by change. A key change touches two keys: it *leaves* the old one."""

    key: Ints
    event: Ints
    leaves: Bools

    @property
    def last_of_key(self) -> Ints:
        """The last touch of each key."""
        return np.flatnonzero(np.append(self.key[1:] != self.key[:-1], len(self.key) > 0)[: len(self.key)])


def touches(codes: KeyCodes, moved: Bools) -> Touches:
    """``moved``: the changes of a key."""
    event, key = np.arange(len(codes.new)), codes.new
    leaves = np.zeros(len(event), np.bool_)
    if moved.any():
        movers = np.flatnonzero(moved)
        event, key = np.append(event, movers), np.append(key, codes.old[movers])
        leaves = np.append(leaves, np.ones(len(movers), np.bool_))
        order = np.argsort(event, kind="stable")
        event, key, leaves = event[order], key[order], leaves[order]
    order = np.argsort(key, kind="stable")
    return Touches(key[order], event[order], leaves[order])


def chains(changes: Changes, codes: KeyCodes, moved: Bools, touched: Touches, *, has_rows: bool) -> tuple[Ints, Ints]:
    """Each change's first change of its chain, and each change's base if it is such a first one (-1: an empty row).

    The change before, in a chain, is the previous touch of the key that a change had before it. Following these links by
    doubling finds the first one.
    """
    count = len(changes.io_type)
    resets = np.isin(changes.io_type, _RESETS)
    follows = np.zeros(len(touched.key), np.bool_)
    follows[1:] = touched.key[1:] == touched.key[:-1]
    before = np.full(len(touched.key), -1)
    before[1:] = np.where(touched.leaves[:-1], -2, touched.event[:-1])
    before[~follows] = -1
    previous = np.full(count, -1)
    incoming = touched.leaves == moved[touched.event]
    previous[touched.event[incoming]] = before[incoming]
    previous[resets] = -2
    base = np.where(previous == -1, codes.old, -1) if has_rows else np.full(count, -1)
    root = np.where(previous < 0, np.arange(count), previous)
    while True:
        further = root[root]
        if np.array_equal(further, root):
            return root, base
        root = further


def _last_values(changes: Changes, root: Ints, final: Ints, gone: Bools) -> tuple[ColumnTexts, ...]:
    """For each key the last given text of each column in its chain; no column of a deleted row is given."""
    count = len(root)
    order = np.argsort(root, kind="stable")
    starts = np.flatnonzero(np.append(True, root[order][1:] != root[order][:-1])[:count])
    chain = np.zeros(count, np.int64)
    chain[root[order][starts]] = np.arange(len(starts))
    deletes = changes.io_type == int(IoType.DELETE)
    found = []
    for column, texts, given in changes.columns:
        place = np.where(given & ~deletes, np.arange(count), -1)[order]
        last = np.maximum.reduceat(place, starts) if count else place
        mine = np.where(gone, -1, last[chain[root[final]]]) if count else place
        found.append(ColumnTexts(column, _taken(texts, mine), mine >= 0))
    return tuple(found)


def _taken(values: pa.Array, place: Ints) -> pa.Array:
    """The values at places; NULL where the place is negative."""
    return values.take(pa.array(place, mask=place < 0))


def composed(first: NetEffects, second: NetEffects) -> NetEffects:
    """The net effect of two sequences of changes, one after the other."""
    first, second = aligned(first, second)
    if second.cleared:
        return second
    places = pc.index_in(second.base, first.key)
    there = places.is_valid().to_numpy(zero_copy_only=False)
    place = np.where(there, places.fill_null(0).to_numpy(zero_copy_only=False), -1).astype(np.int64)
    base = _bases(first, second, place)
    kept = np.flatnonzero(~pc.is_in(first.key, second.key).to_numpy(zero_copy_only=False))
    columns = []
    for ours, theirs in zip(first.columns, second.columns, strict=True):
        inherits = there & ~theirs.given
        inherited = _taken(ours.texts, np.where(inherits, place, -1))
        texts = pc.if_else(pa.array(inherits), inherited, theirs.texts) if inherits.any() else theirs.texts
        given = theirs.given | (inherits & _at(ours.given, place))
        columns.append(
            ColumnTexts(
                theirs.column, _joined(ours.texts.take(pa.array(kept)), texts), np.append(ours.given[kept], given)
            )
        )
    return NetEffects(
        second.definition,
        _joined(first.key.take(pa.array(kept)), second.key),
        _joined(first.base.take(pa.array(kept)), base),
        np.append(first.gone[kept], second.gone),
        tuple(columns),
        first.cleared,
        first.clearing,
    )


def of_one_shape(parts: Sequence[NetEffects], *, keeps_deleted: bool = False) -> list[NetEffects]:
    """Effects in order, composed as long as the table has the same key, and each of its columns.

    ``keeps_deleted``: the table has SOFTDELETES, so the effects before a TRUNCATE remain.
    """
    found = list[NetEffects]()
    for each in parts:
        if found and _composes(found[-1], each, keeps_deleted=keeps_deleted):
            found[-1] = composed(found[-1], each)
        else:
            found.append(each)
    return found


def _composes(first: NetEffects, second: NetEffects, *, keeps_deleted: bool) -> bool:
    if second.cleared:
        return not keeps_deleted
    old, new = first.definition, second.definition
    return is_same_key(key_columns(old), key_columns(new)) and continues(old, new)


def _bases(first: NetEffects, second: NetEffects, place: Ints) -> pa.Array:
    """The bases of the second effects before the first: a row of the first has its own base; a new or deleted one has none."""
    if first.cleared:
        second = second._replace(base=pa.nulls(second.keys, pa.string()))
    if not first.keys:
        return second.base
    return pc.if_else(pa.array(place >= 0), _taken(first.base, place), second.base)


def _at(values: Bools, place: Ints) -> Bools:
    return values[np.maximum(place, 0)] if len(values) else np.zeros(len(place), np.bool_)


def _joined(first: pa.Array, second: pa.Array) -> pa.Array:
    return pa.concat_arrays([first, second])


def aligned(first: NetEffects, second: NetEffects) -> tuple[NetEffects, NetEffects]:
    """The same effects with the same columns: those of the second, then those that only the first has.

    Columns are the same if their numbers are equal, regardless of their names; without numbers, if their names are equal.
    """
    if [each.column for each in first.columns] == [each.column for each in second.columns]:
        return first, second
    theirs = [each.column for each in second.columns]
    pairs = {index: same_column(each.column, theirs) for index, each in enumerate(first.columns)}
    back = {other: index for index, other in pairs.items() if other is not None}
    only = [each for index, each in enumerate(first.columns) if pairs[index] is None]
    ours = [
        first.columns[back[other]]._replace(column=each.column) if other in back else _added(each.column, ~first.gone)
        for other, each in enumerate(second.columns)
    ]
    return (
        first._replace(columns=(*ours, *only)),
        second._replace(columns=(*second.columns, *(_absent(each.column, second.keys) for each in only))),
    )


def aligned_columns(parts: Sequence[Changes]) -> tuple[ColumnTexts, ...]:
    """The columns of changes one after the other: those of the last definition, then those that only earlier ones have."""
    wanted = [each.column for each in parts[-1].columns]
    for part in reversed(parts):
        wanted += [each.column for each in part.columns if same_column(each.column, wanted) is None]
    found: list[list[ColumnTexts]] = [[] for _ in wanted]
    for part in parts:
        mine = {same_column(each.column, wanted): each for each in part.columns}
        for index, column in enumerate(wanted):
            found[index].append(mine.get(index) or _added(column, np.ones(len(part.io_type), np.bool_)))
    return tuple(
        ColumnTexts(
            column, pa.concat_arrays([each.texts for each in same]), np.concatenate([each.given for each in same])
        )
        for column, same in zip(wanted, found, strict=True)
    )


def same_column(column: Column, others: Sequence[Column]) -> int | None:
    """The index of the same column; None if there is none."""
    return next((index for index, other in enumerate(others) if is_same_column(column, other)), None)


def _added(column: Column, present: Bools) -> ColumnTexts:
    """A column in rows that are older than it is: ``present`` ones have the value that the source has there, if it is known."""
    if column.missing is None:
        return _absent(column, len(present))
    return ColumnTexts(column, pa.repeat(pa.scalar(column.missing, pa.string()), len(present)), present)


def _absent(column: Column, count: int) -> ColumnTexts:
    return ColumnTexts(column, pa.nulls(count, pa.string()), np.zeros(count, np.bool_))
