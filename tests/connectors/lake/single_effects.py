"""The net effect of changes on the rows of a table, one change after the other: the reference for ``net_effects``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ggshell.errors import ApplyError
from ggshell.record.operation import TWO_IMAGES, IoType

Values = dict[str, str | None]


class RecordChange(NamedTuple):
    """A record: its operation, the columns before (for key updates) and after (for a delete: what it contains)."""

    io_type: int
    before: Values
    columns: Values


class Effect(NamedTuple):
    """The effect on one key.

    ``values`` are laid over the row that had the key ``base`` before the batch (None: a new row). ``values`` None: deleted.
    """

    base: str | None
    values: Values | None


class Effects(NamedTuple):
    """The effects by key. ``cleared``: the table was truncated within the batch, so no earlier row remains."""

    by_key: dict[str, Effect]
    cleared: bool


def effects(changes: Iterable[RecordChange], key: Sequence[str]) -> Effects:
    """The effects of changes in order. Raises ApplyError for a record without its complete key."""
    found: dict[str, Effect] = {}
    cleared = False
    for io_type, before, columns in changes:
        if io_type == IoType.PURGE_DATA:
            found, cleared = {}, True
        elif io_type == IoType.INSERT:
            found[key_text(columns, key)] = Effect(None, dict(columns))
        elif io_type == IoType.DELETE:
            found[key_text(columns, key)] = Effect(None, None)
        else:
            moves = io_type in TWO_IMAGES and all(name in before for name in key)
            old = key_text(before if moves else columns, key)
            new = key_text(columns, key)
            known = found.get(old) or Effect(None if cleared else old, {})
            if old != new:
                found[old] = Effect(None, None)
            found[new] = Effect(known.base, {**(known.values or {}), **columns})
    return Effects(found, cleared)


def key_text(values: Mapping[str, str | None], key: Sequence[str]) -> str:
    """A key as a single text."""
    if not all(name in values for name in key):
        raise ApplyError(
            f"a record does not contain {', '.join(name for name in key if name not in values)}, which identifies its row"
        )
    return "\x01".join("\x02" if values[name] is None else values[name] or "" for name in key)
