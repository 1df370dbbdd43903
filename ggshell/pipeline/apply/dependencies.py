"""Dependencies between transactions: the keys that each one writes, and the keys that it relies on.

Two transactions are independent if neither writes a key that the other one writes or relies on. Keys are those of the
target: primary keys, unique keys, KEYCOLS, and the parent keys of foreign keys. If a value is not known (an update's image
does not hold the value that it replaces), the transaction takes the whole index: that costs parallelism, never correctness.
A transaction that knows its values relies on the whole index, so that it waits for those that take it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ggshell.pipeline.apply.target import TableMapping
from ggshell.record.change import ChangeBatch
from ggshell.record.fields import Value, split_image, values_of, walk
from ggshell.record.operation import KEY_UPDATES, TWO_IMAGES, IoType
from ggshell.record.transaction import TransactionPiece
from ggshell.types import TableName


@dataclass(slots=True)
class Touched:
    """Hashes of the keys that a transaction ``writes`` and ``reads``; ``alone``: no other may run at the same time."""

    writes: set[int] = field(default_factory=set)
    reads: set[int] = field(default_factory=set)
    alone: bool = False

    def join(self, other: Touched) -> None:
        """Add what another piece of the same transaction touches."""
        self.writes |= other.writes
        self.reads |= other.reads
        self.alone |= other.alone


class _Key(NamedTuple):
    """A key of a table: a hash that identifies it, the hash that stands for all of its values, and its source columns.

    The columns are None if the values cannot be compared as text or are not all mapped."""

    seed: int
    every: int
    columns: tuple[int, ...] | None


class _Parent(NamedTuple):
    """A key of a parent that rows refer to; ``released`` stands for every reference to its rows.

    ``takes``: a reference takes the whole index. Its value is not known, but that of the parent may be."""

    key: _Key
    released: int
    takes: bool


class _Plan(NamedTuple):
    """The keys to examine in the rows of one table; ``released`` stands for every reference to the table's rows.

    ``referred``: the keys that other tables refer to, if rows are not found by them: an update to a new value is possible only
    after the last reference to the old one.
    ``removers``: what a transaction writes whose deletes cascade to rows of the table. The log of some sources does not have
    these rows, so that nothing else says that the same key can be inserted only afterwards.
    """

    keys: tuple[_Key, ...]
    found_by: _Key
    parents: tuple[_Parent, ...]
    released: int | None
    referred: tuple[_Key, ...]
    removers: tuple[int, ...]


class _Images(NamedTuple):
    """Rows whose images hold the same columns: the row numbers, and each column's known values before and after."""

    rows: list[int]
    before: dict[int, list[Value]]
    after: dict[int, list[Value]]


class KeyFinder:
    """Finds the keys that transactions touch; caches the plan of each mapping."""

    def __init__(self) -> None:
        self._plans: dict[int, tuple[TableMapping, _Plan]] = {}

    def touched(
        self, batch: ChangeBatch, pieces: Sequence[TransactionPiece], mappings: dict[int, TableMapping]
    ) -> list[Touched]:
        """Return what each piece touches, in the order of the pieces."""
        found = [Touched() for _ in pieces]
        owner = np.full(len(batch), -1, dtype=np.int64)
        for number, piece in enumerate(pieces):
            owner[piece.first : piece.first + piece.count] = number
        for table, mapping in mappings.items():
            rows = np.flatnonzero((batch.table == table) & (owner >= 0))
            if len(rows):
                self._table(batch, rows, owner, self._plan(mapping), found)
        return found

    def _plan(self, mapping: TableMapping) -> _Plan:
        known = self._plans.get(id(mapping))
        if known is None:
            known = self._plans[id(mapping)] = (mapping, _plan(mapping))
        return known[1]

    def _table(
        self, batch: ChangeBatch, rows: NDArray[np.int64], owner: NDArray[np.int64], plan: _Plan, found: list[Touched]
    ) -> None:
        kinds = batch.io_type[rows]
        for io_type in np.unique(kinds).tolist():
            mine = rows[kinds == io_type]
            if io_type in (IoType.PURGE_DATA, IoType.SEQUENCE_OP):
                for row in mine.tolist():
                    found[int(owner[row])].alone = True
                continue
            for images in _images(batch, mine, io_type):
                _mark(plan, io_type, images, [found[number] for number in owner[images.rows].tolist()])


def _plan(mapping: TableMapping) -> _Plan:
    target = mapping.target
    place = {column.name: index for index, column in enumerate(mapping.columns) if column is not None}
    exact = {column.name for column in target.columns if column.exact and column.comparable}

    def key(table: TableName, names: Sequence[str], own: Sequence[str]) -> _Key:
        """``names``: the columns in the table that has the key; ``own``: the columns of this table with the same values."""
        pairs = sorted(zip(names, own, strict=True))
        seed = hash((table, tuple(name for name, _ in pairs)))
        usable = all(mine in place and mine in exact for _, mine in pairs)
        return _Key(seed, hash((seed, "*")), tuple(place[mine] for _, mine in pairs) if usable else None)

    referred = [key(target.name, names, names) for names in map(sorted, target.referred)]
    keys = [key(target.name, names, names) for names in map(sorted, target.unique)] + referred
    finding = [column.name for index in mapping.key if (column := mapping.columns[index]) is not None]
    found_by = key(target.name, finding, finding)
    if target.opaque:
        every = hash((target.name, "opaque"))
        keys.append(_Key(every, every, None))
    parents = tuple(
        _Parent(
            key(each.parent, each.parent_columns, each.columns),
            hash((each.parent, "released")),
            takes=not each.same_text or not all(name in place for name in each.columns),
        )
        for each in target.foreign
    )
    others = tuple(each for each in dict.fromkeys(keys) if each.seed != found_by.seed)
    released = hash((target.name, "released")) if target.referenced else None
    removers = tuple(hash((each, "released")) for each in target.cascades)
    return _Plan(others, found_by, parents, released, tuple(each for each in referred if each in others), removers)


def _images(batch: ChangeBatch, rows: NDArray[np.int64], io_type: int) -> Iterator[_Images]:
    if io_type not in TWO_IMAGES:
        fields = walk(np.frombuffer(batch.buffer, dtype=np.uint8), batch.start[rows], batch.length[rows])
        if fields is not None:
            values = {each.column: values_of(batch.buffer, each) for each in fields}
            yield _Images(rows.tolist(), values if io_type == IoType.DELETE else {}, values)
            return
    for row in rows.tolist():
        old, new = (_by_column(image) for image in batch.images(row))
        yield _Images([row], new if io_type == IoType.DELETE else old, new)


def _by_column(image: bytes) -> dict[int, list[Value]]:
    columns, values = split_image(image)
    return {column: [value] for column, value in zip(columns, values, strict=True)}


def _mark(plan: _Plan, io_type: int, images: _Images, owners: list[Touched]) -> None:
    insert, delete = io_type == IoType.INSERT, io_type == IoType.DELETE
    old = images.before or (images.after if io_type not in TWO_IMAGES else {})
    _write(plan.found_by, old if not insert else images.after, owners)
    if io_type in TWO_IMAGES:
        _write(plan.found_by, images.after, owners, absent=False)
    for key in plan.keys:
        _other_key(key, images, owners, insert=insert, delete=delete)
    for parent in plan.parents:
        _reference(parent, images, owners, insert=insert)
    if plan.removers:
        for owner in owners:
            owner.reads.update(plan.removers)
    releases = delete or io_type in KEY_UPDATES or (not insert and any(_changes(key, images) for key in plan.referred))
    if plan.released is not None and releases:
        for owner in owners:
            owner.writes.add(plan.released)


def _other_key(key: _Key, images: _Images, owners: list[Touched], *, insert: bool, delete: bool) -> None:
    """Mark a key that does not identify rows; an update whose image lacks its columns leaves it unchanged."""
    if not insert and not delete and not _changes(key, images):
        return
    if insert or delete:
        _write(key, images.after, owners)
        return
    _write(key, images.before, owners)
    _write(key, images.after, owners)


def _changes(key: _Key, images: _Images) -> bool:
    """Whether an update may change a key: its image has one of the columns, or these are not known."""
    return key.columns is None or any(index in images.after for index in key.columns)


def _write(key: _Key, values: dict[int, list[Value]], owners: list[Touched], *, absent: bool = True) -> None:
    """Mark a key's values as written, or the whole index if they are not known.

    With ``absent`` False, values that the image does not hold are unchanged, and nothing is marked for them."""
    if key.columns is None or not all(index in values for index in key.columns):
        if absent or key.columns is None:
            for owner in owners:
                owner.writes.add(key.every)
        return
    seed, every = key.seed, key.every
    for owner, value in zip(owners, zip(*(values[index] for index in key.columns), strict=True), strict=True):
        owner.writes.add(hash((seed, value)))
        owner.reads.add(every)


def _reference(parent: _Parent, images: _Images, owners: list[Touched], *, insert: bool) -> None:
    """Mark a row's reliance on its parent; a change may release the old reference, so that the parent can be deleted."""
    seed, every, columns = parent.key
    if not insert or columns is None or parent.takes:
        for owner in owners:
            owner.reads.add(parent.released)
    if columns is None or parent.takes:
        for owner in owners:
            (owner.writes if parent.takes else owner.reads).add(every)
        return
    for values in (images.before, images.after):
        if all(index in values for index in columns):
            for owner, value in zip(owners, zip(*(values[index] for index in columns), strict=True), strict=True):
                if None not in value:
                    owner.reads.update((hash((seed, value)), every))
