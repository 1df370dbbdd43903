"""Conflicts: the target's row is not as the source's was before its change; RESOLVECONFLICT says what is applied then.

A conflict shows as a refusal: an insert of a row that exists, or an update or delete that finds no row with the key and the old
values of COMPARECOLS.  The target's present row is read, and what wins is applied in place of the refused operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from ggshell.apply.error_rules import UNIQUE
from ggshell.apply.responses import one_row
from ggshell.apply.target import Refusal, TableMapping
from ggshell.columns.conflicts import Compared, Conflict, Extent, Method, Resolution, Resolutions
from ggshell.columns.values import EXACT, number_in
from ggshell.record.change import ChangeBatch
from ggshell.record.families import family
from ggshell.record.image import decode_image, encode_image, join_key_update
from ggshell.record.operation import IoType

Image = dict[int, bytes | None]
Fetch = Callable[[TableMapping, Mapping[int, bytes | None]], Image | None]
"""The target's present row by the values of its key; None where there is none."""


class Answer(NamedTuple):
    """What to do: discard the operation, or apply others in its place (none: leave it out)."""

    discard: bool
    operations: Sequence[tuple[ChangeBatch, TableMapping]] = ()


@dataclass(slots=True)
class Conflicts:
    """Counts, as @GETENV STATS tells them."""

    found: int = 0
    resolved: int = 0
    failed: int = 0


class Resolver:
    """Resolves the conflicts of the tables whose MAP has RESOLVECONFLICT."""

    def __init__(self) -> None:
        self._rules: dict[int, tuple[TableMapping, TableMapping, Resolutions]] = {}
        self.counts = Conflicts()

    def __bool__(self) -> bool:
        return bool(self._rules)

    def add(self, mapping: TableMapping, rules: Resolutions) -> None:
        """``mapping`` compares columns; what resolves a conflict must not."""
        plain = mapping._replace(compared_updates=frozenset(), compared_deletes=frozenset())
        self._rules[id(mapping)] = (mapping, plain, rules)

    def knows(self, mapping: TableMapping) -> bool:
        return id(mapping) in self._rules

    def answer(
        self, batch: ChangeBatch, row: int, mapping: TableMapping, refusal: Refusal, fetch: Fetch
    ) -> Answer | None:
        """What a refused operation's rules say; None where it is no conflict, or no rule speaks of it."""
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
        self.counts.found += 1
        groups = rules.get(conflict, ())
        if not groups or any(group.method is Method.DISCARD for group in groups):
            self.counts.failed += 1
            return Answer(discard=True) if groups else None
        self.counts.resolved += 1
        data = _resolved(conflict, _Rows(before, after, here or {}), groups, plain)
        if data is None:
            return Answer(discard=False)
        return Answer(False, [(one_row(batch, row, data[0], data[1]), plain)])


def _conflict(io_type: int, here: Image | None) -> Conflict | None:
    if io_type == IoType.INSERT:
        return Conflict.INSERT_EXISTS if here is not None else None
    if io_type == IoType.DELETE:
        return Conflict.DELETE_EXISTS if here is not None else Conflict.DELETE_MISSING
    return Conflict.UPDATE_EXISTS if here is not None else Conflict.UPDATE_MISSING


class _Rows(NamedTuple):
    """The source's row before and after its change, and the target's."""

    before: Image
    after: Image
    here: Image


def _resolved(
    conflict: Conflict, rows: _Rows, groups: Sequence[Resolution], mapping: TableMapping
) -> tuple[int, bytes] | None:
    """The operation in place of the refused one, and its data area; None where nothing is to be done."""
    if conflict is Conflict.DELETE_MISSING:
        return None
    if conflict is Conflict.DELETE_EXISTS:
        if not _wins(groups[0], rows, mapping):
            return None
        return int(IoType.DELETE), encode_image((index, rows.before.get(index)) for index in mapping.key)
    if conflict is Conflict.UPDATE_MISSING:
        whole = rows.before | rows.after
        return (int(IoType.INSERT), _encoded(whole)) if groups[0].method is Method.OVERWRITE else None
    taken = _taken(rows, groups, mapping)
    if not taken:
        return None
    key = {index: rows.here[index] for index in mapping.key}
    return int(IoType.KEY_FIELD_COMP), join_key_update(_encoded(key), _encoded(taken))


def _taken(rows: _Rows, groups: Sequence[Resolution], mapping: TableMapping) -> Image:
    """The columns that are set, each by its group's method; those of no group stay as the target has them."""
    named = {_index(mapping, name) for group in groups for name in group.columns}
    taken: Image = {}
    for group in groups:
        own = {_index(mapping, name) for name in group.columns} if group.columns else set(rows.after) - named
        if group.method is Method.DELTA:
            taken |= _deltas(rows, own)
        elif _wins(group, rows, mapping):
            taken |= {index: rows.after[index] for index in own if index in rows.after}
    return {index: value for index, value in taken.items() if mapping.columns[index] is not None}


def _wins(group: Resolution, rows: _Rows, mapping: TableMapping) -> bool:
    """Whether the source's values count."""
    if group.method is Method.OVERWRITE:
        return True
    if group.method in (Method.IGNORE, Method.DELTA):
        return False
    index = _index(mapping, group.by)
    mine, theirs = (rows.after or rows.before).get(index), rows.here.get(index)
    if mine is None or theirs is None:
        return mine is not None
    column = mapping.columns[index]
    left, right = (_comparable(value, column.type_name if column else "") for value in (mine, theirs))
    if left == right:
        return group.method in (Method.MAX_EQUAL, Method.MIN_EQUAL)
    greater = left > right  # type: ignore[operator]
    return greater is (group.method in (Method.MAX, Method.MAX_EQUAL))


def _comparable(value: bytes, type_name: str) -> Decimal | str:
    text = value.decode()
    return Decimal(text) if family(type_name) == "number" else text


def _deltas(rows: _Rows, columns: set[int]) -> Image:
    """The target's numbers, changed by as much as the source's were."""
    found: Image = {}
    for index in columns:
        values = [image.get(index) for image in rows]
        numbers = [number_in(value.decode()) for value in values if value is not None]
        if len(numbers) == 3 and all(isinstance(number, int | Decimal) for number in numbers):
            before, after, here = (Decimal(str(number)) for number in numbers)
            found[index] = format(EXACT.add(here, EXACT.subtract(after, before)), "f").encode()
    return found


def _index(mapping: TableMapping, name: str) -> int:
    """Where a column of the target stands."""
    return index_of(mapping, name) or 0


def index_of(mapping: TableMapping, name: str) -> int | None:
    """Where a column of the target stands, by its name in any case; None where the mapping does not have it."""
    wanted = name.lower()
    found = [place for place, column in enumerate(mapping.columns) if column and column.name.lower() == wanted]
    return found[0] if found else None


def compared_columns(mapping: TableMapping, rules: Sequence[Compared], operation: str) -> frozenset[int]:
    """The columns besides the key whose old values must be those of the target's row."""
    found: frozenset[int] = frozenset()
    everything = frozenset(
        place for place, column in enumerate(mapping.columns) if column is not None and column.comparable
    )
    for rule in rules:
        if rule.operation != operation:
            continue
        named = frozenset(place for name in rule.columns if (place := index_of(mapping, name)) is not None)
        match rule.extent:
            case Extent.ALL:
                found |= everything
            case Extent.EXCLUDING:
                found |= everything - named
            case Extent.INCLUDING:
                found |= named
    return found - frozenset(mapping.key)


def _images(batch: ChangeBatch, row: int) -> tuple[Image, Image]:
    before, after = (dict(decode_image(image)) for image in batch.images(row))
    return (after, {}) if batch.io_type[row] == IoType.DELETE else (before, after)


def _encoded(image: Image) -> bytes:
    return encode_image(sorted(image.items()))
