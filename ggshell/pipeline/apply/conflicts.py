"""Conflict resolution (RESOLVECONFLICT), for a target row that differs from the source's row before its change.

A conflict is detected as a refusal: an insert of a row that exists, or an update or delete that finds no row with the key
and the old values of COMPARECOLS. The target's current row is read and locked, and the winning values are applied instead.

The effect of each method by conflict (the manual's examples of conflict detection and resolution):

================  =====================================================================================================
INSERTROWEXISTS   OVERWRITE, or USEMAX … that wins: an update of every column of the group; else the target's row stays
UPDATEROWEXISTS   the same, with the new values of changed columns and the old values of unchanged columns;
                  USEDELTA adds the difference between the new and the old number to the target's number
UPDATEROWMISSING  OVERWRITE: an insert of the whole row from new and old values; IGNORE: nothing
DELETEROWEXISTS   OVERWRITE: a delete by the key alone; IGNORE: nothing
DELETEROWMISSING  IGNORE: nothing
every conflict    DISCARD: the operation goes to the discard file, the target's row stays
================  =====================================================================================================

A column group is set as a whole or not at all, so it never mixes the values of two sites. A record that lacks the old
values of unchanged columns therefore cannot win; it is refused with the names of these columns.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from ggshell.errors import ApplyError
from ggshell.pipeline.apply.column_groups import ColumnGroup, Groups, column_groups, names_of, without_comparisons
from ggshell.pipeline.apply.error_rules import UNIQUE
from ggshell.pipeline.apply.target import Refusal, TableMapping
from ggshell.pipeline.transform.conflicts import Conflict, Method, Resolutions
from ggshell.pipeline.transform.values import EXACT, number_in
from ggshell.record.change import ChangeBatch
from ggshell.record.image import decode_image, encode_image, join_key_update
from ggshell.record.operation import IoType

Image = dict[int, bytes | None]
Fetch = Callable[[TableMapping, Mapping[int, bytes | None]], Image | None]
"""Returns the target's current row by the values of its key; None if there is none."""


class Answer(NamedTuple):
    """The answer to a conflict.

    ``resolved``: apply ``operations`` instead of the refused one (none: skip it). Otherwise ``discard`` it or refuse it;
    ``refusal`` says why the method cannot be applied, None if no rule names the conflict."""

    conflict: Conflict
    resolved: bool = False
    operations: Sequence[tuple[ChangeBatch, TableMapping]] = ()
    discard: bool = False
    refusal: Refusal | None = None


class Conflicts:
    """Conflict counts for @GETENV ('STATS'), including the conflict being answered; several appliers may count at once."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def add(self, mapping: TableMapping, *, resolved: bool) -> None:
        """Count one conflict."""
        outcome = "CDR_RESOLUTIONS_SUCCEEDED" if resolved else "CDR_RESOLUTIONS_FAILED"
        with self._lock:
            for table in {"", str(mapping.source.name).lower(), str(mapping.target.name).lower()}:
                self._counts.update([(table, "CDR_CONFLICTS"), (table, outcome)])

    def of(self, table: str, statistic: str) -> int:
        """Return a count for one table (as source or target), or for all tables."""
        return self._counts[table.lower(), statistic]


class Resolver:
    """Resolves the conflicts of the tables whose MAP has RESOLVECONFLICT."""

    def __init__(self) -> None:
        self._rules: dict[int, tuple[TableMapping, TableMapping, Groups]] = {}
        self.counts = Conflicts()

    def __bool__(self) -> bool:
        return bool(self._rules)

    def add(self, mapping: TableMapping, rules: Resolutions) -> None:
        """Add the rules of a mapping; operations that resolve a conflict use it without COMPARECOLS.

        Raises ApplyError for rules that are not valid for the table."""
        self._rules[id(mapping)] = (mapping, without_comparisons(mapping), column_groups(mapping, rules))

    def knows(self, mapping: TableMapping) -> bool:
        return id(mapping) in self._rules

    def answer(
        self, batch: ChangeBatch, row: int, mapping: TableMapping, refusal: Refusal, fetch: Fetch
    ) -> Answer | None:
        """Return the answer of the rules to a refused operation; None if the refusal is not a conflict."""
        known = self._rules.get(id(mapping))
        io_type = int(batch.io_type[row])
        if known is None or not (refusal.missing or (refusal.state == UNIQUE and io_type == IoType.INSERT)):
            return None
        _, plain, rules = known
        before, after = _images(batch, row)
        here = fetch(plain, {index: before.get(index, after.get(index)) for index in plain.key})
        conflict = _conflict(io_type, here)
        if conflict is None:
            return None
        answer = _answer(conflict, _Rows(before, after, here or {}), rules.get(conflict, ()), plain, batch, row)
        self.counts.add(plain, resolved=answer.resolved)
        return answer


def _answer(
    conflict: Conflict, rows: _Rows, groups: Sequence[ColumnGroup], mapping: TableMapping, batch: ChangeBatch, row: int
) -> Answer:
    if not groups or any(group.method is Method.DISCARD for group in groups):
        return Answer(conflict, discard=bool(groups))
    try:
        data = _resolved(conflict, rows, groups, mapping)
    except ApplyError as error:
        return Answer(conflict, refusal=Refusal.of(error))
    return Answer(conflict, True, [(batch.one(row, *data), mapping)] if data is not None else ())


def _conflict(io_type: int, here: Image | None) -> Conflict | None:
    if io_type == IoType.INSERT:
        return Conflict.INSERT_EXISTS if here is not None else None
    if io_type == IoType.DELETE:
        return Conflict.DELETE_EXISTS if here is not None else Conflict.DELETE_MISSING
    return Conflict.UPDATE_EXISTS if here is not None else Conflict.UPDATE_MISSING


class _Rows(NamedTuple):
    """The source's row before and after its change, as far as the record holds it, and the target's current row."""

    before: Image
    after: Image
    here: Image

    @property
    def whole(self) -> Image:
        """The source's row after its change; unchanged columns have their old values."""
        return self.before | self.after


def _resolved(
    conflict: Conflict, rows: _Rows, groups: Sequence[ColumnGroup], mapping: TableMapping
) -> tuple[int, bytes] | None:
    """Return the type and data area of the replacing operation; None if there is nothing to apply. Raises ApplyError."""
    if conflict in (Conflict.DELETE_MISSING, Conflict.DELETE_EXISTS, Conflict.UPDATE_MISSING):
        if groups[0].method is not Method.OVERWRITE:
            return None
        if conflict is Conflict.UPDATE_MISSING:
            everything = [index for index in range(len(mapping.columns)) if mapping.writable(index)]
            return int(IoType.INSERT), _encoded(_held(rows.whole, everything, conflict, mapping))
        return int(IoType.DELETE), encode_image((index, rows.before.get(index)) for index in mapping.key)
    taken = _taken(conflict, rows, groups, mapping)
    if not taken:
        return None
    key = {index: rows.here[index] for index in mapping.key}
    return int(IoType.KEY_FIELD_COMP), join_key_update(_encoded(key), _encoded(taken))


def _taken(conflict: Conflict, rows: _Rows, groups: Sequence[ColumnGroup], mapping: TableMapping) -> Image:
    """Return the columns to set, by each group's method; columns that already have the value are left out."""
    taken: Image = {}
    moved = {index: rows.after[index] for index in mapping.key if index in rows.before and index in rows.after}
    for group in groups:
        wins = group.method is Method.DELTA or _wins(conflict, group, rows, mapping)
        if wins and group.key:
            taken |= moved
        if group.method is Method.DELTA:
            taken |= _deltas(rows, group.columns, mapping)
        elif wins:
            taken |= _held(rows.whole, group.columns, conflict, mapping)
    return {index: value for index, value in taken.items() if index not in rows.here or rows.here[index] != value}


def _held(image: Image, columns: Sequence[int] | frozenset[int], conflict: Conflict, mapping: TableMapping) -> Image:
    """Return the values of columns. Raises ApplyError if the record lacks some of them."""
    missing = [index for index in columns if index not in image]
    if missing:
        text = (
            f"{conflict} is resolved with the whole row, but the record does not contain {names_of(mapping, missing)}"
        )
        raise _lacking(mapping, text)
    return {index: image[index] for index in columns}


def _wins(conflict: Conflict, group: ColumnGroup, rows: _Rows, mapping: TableMapping) -> bool:
    """Whether the source's values win. NULL loses against every value, regardless of the method; two NULLs are equal."""
    if group.order is None:
        return group.method is Method.OVERWRITE
    name = mapping.column(group.by).name
    if group.by not in rows.whole:
        raise _lacking(mapping, f"{conflict} is resolved by {name}, but the record does not contain its value")
    mine, theirs = rows.whole[group.by], rows.here.get(group.by)
    equal = group.method in (Method.MAX_EQUAL, Method.MIN_EQUAL)
    if mine is None or theirs is None:
        return mine is not None or (theirs is None and equal)
    try:
        left, right = group.order(mine), group.order(theirs)
    except (ArithmeticError, ValueError) as error:
        raise ApplyError(f"{group.method} cannot compare the values of {name}: {error}", code="OGG-01922") from error
    if left == right:
        return equal
    greater = left > right  # type: ignore[operator]
    return greater is (group.method in (Method.MAX, Method.MAX_EQUAL))


def _deltas(rows: _Rows, columns: frozenset[int], mapping: TableMapping) -> Image:
    """Add the source's differences to the target's numbers; columns that the source did not change are left out."""
    found: Image = {}
    for index in columns:
        if index not in rows.after:
            continue
        name = names_of(mapping, [index])
        if index not in rows.before:
            raise _lacking(mapping, f"USEDELTA needs the old value of {name}, which the record does not contain")
        values = [image.get(index) for image in rows]
        if values[0] == values[1]:
            continue
        numbers = [number_in(value.decode()) for value in values if value is not None]
        if len(numbers) < len(values) or not all(isinstance(number, int | Decimal) for number in numbers):
            text = f"USEDELTA cannot add values of {name}: one of its values is NULL or not a finite number"
            raise ApplyError(text, code="OGG-01907", hint="resolve columns that may be NULL with another method")
        before, after, here = (Decimal(str(number)) for number in numbers)
        found[index] = format(EXACT.add(here, EXACT.subtract(after, before)), "f").encode()
    return found


def _lacking(mapping: TableMapping, text: str) -> ApplyError:
    return ApplyError(
        text,
        code="OGG-01922",
        hint=f"set LOGALLSUPCOLS or UPDATERECORDFORMAT FULL in Extract's parameter file, and ADD TRANDATA"
        f" {mapping.source.name}, ALLCOLS",
    )


def _images(batch: ChangeBatch, row: int) -> tuple[Image, Image]:
    before, after = (dict(decode_image(image)) for image in batch.images(row))
    return (after, {}) if batch.io_type[row] == IoType.DELETE else (before, after)


def _encoded(image: Image) -> bytes:
    return encode_image(sorted(image.items()))
