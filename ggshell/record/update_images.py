"""The images of a changed row: which columns a trail record gets of what a log knows before and after an update.

The rules are the same for every source. Where a source has a vectorized form for many rows, both must produce the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ggshell.record.definition import TableDefinition
from ggshell.record.image import encode_image, join_key_update
from ggshell.record.image_rules import ImageRules, Unified
from ggshell.record.operation import IoType

Value = bytes | None
UNCHANGED: Final = b"\0unchanged"
"""Stands for a value that is not in the log because the update did not change it."""


def image_of(values: list[Value], columns: Sequence[int]) -> bytes:
    """The image of some columns, without those whose values the log does not have."""
    return encode_image((index, values[index]) for index in columns if values[index] is not UNCHANGED)


class Before(NamedTuple):
    """What is known of a row before its update.

    ``values`` are UNCHANGED where the old value is not known; ``whole`` means that all of them are known; ``moved``
    means that the columns that identify the row have changed.
    """

    values: list[Value]
    whole: bool
    moved: bool

    @classmethod
    def of(cls, definition: TableDefinition, old: list[Value] | None, after: list[Value], *, whole: bool) -> Before:
        identity = definition.identity
        if old is None:  # the identifying columns did not change
            known = set(identity)
            return cls([value if index in known else UNCHANGED for index, value in enumerate(after)], False, False)
        moved = any(after[index] is not UNCHANGED and old[index] != after[index] for index in identity)
        if not whole:
            known = set(identity)
            old = [value if index in known else UNCHANGED for index, value in enumerate(old)]
        return cls(old, whole, moved or not definition.key)

    def filled(self, after: list[Value]) -> list[Value]:
        """The row after the update. Large values that did not change are taken from the old row, if known there."""
        return [old if new is UNCHANGED else new for old, new in zip(self.values, after, strict=True)]


UpdateImage = tuple[int, bytes, bool]
"""Operation, data area, and whether it is a before image."""


def update_images(
    definition: TableDefinition, before: Before, after: list[Value], rules: ImageRules
) -> list[UpdateImage]:
    """Return the records of one update: the update itself, after its before image if the rules ask for it."""
    identity, everything = definition.identity, range(len(after))
    modified = _modified(before, after, identity)
    if rules.unified is not None:
        full = rules.unified is Unified.FULL
        old = image_of(before.values, everything if full or rules.supplemental else modified)
        new = image_of(before.filled(after), everything if full else modified)
        kind = IoType.UNIFIED_KEY_UPDATE if before.moved else IoType.UNIFIED_UPDATE
        return [(kind, join_key_update(old, new), False)]
    made: list[UpdateImage] = []
    if rules.befores:
        columns = everything if rules.whole_updates else modified
        made.append((IoType.FIELD_COMP, image_of(before.values, columns), True))
    filled = before.filled(after)
    whole = rules.whole_updates and UNCHANGED not in filled
    # A key that is stored out of line and did not change is only in the old row.
    kept = [filled[index] if index in identity else value for index, value in enumerate(after)]
    if before.moved:
        new = image_of(filled if whole else kept, everything)
        made.append((IoType.KEY_FIELD_COMP, join_key_update(image_of(before.values, identity), new), False))
    elif rules.whole_updates:
        made.append((IoType.UPDATE if whole else IoType.FIELD_COMP, image_of(filled, everything), False))
    elif before.whole:
        made.append((IoType.FIELD_COMP, image_of(kept, modified), False))
    else:
        made.append((IoType.FIELD_COMP, image_of(kept, everything), False))
    return made


def _modified(before: Before, after: list[Value], identity: tuple[int, ...]) -> tuple[int, ...]:
    """The identifying columns, and those that changed or may have changed (where the old value is not known)."""
    key = set(identity)
    return tuple(
        index
        for index, (old, new) in enumerate(zip(before.values, after, strict=True))
        if index in key or (new is not UNCHANGED and (old is UNCHANGED or old != new))
    )
