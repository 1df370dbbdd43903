"""Which columns of the catalog a Relation message describes.

A Relation message names the columns that a table had at that place in the log, without their numbers. The catalog has those of
today. In between, a column can have been renamed, dropped or added. Both lists are in the order of the numbers. So the columns
of the message are the first ones of the catalog, with those that were dropped since. Where this leaves a choice, the alignment
with the fewest differences is taken. If a column was either renamed, or dropped while another was added, it counts as dropped,
which mixes no values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

from ggshell.connectors.postgres.describe import CatalogColumn
from ggshell.connectors.postgres.pgoutput import RelationColumn

_RETYPED, _DROPPED, _RENAMED, _BOTH, _HIDDEN = 10, 20, 21, 50, 100
"""The costs of differences: another type; dropped since; another name; another name and type; not in the message although it
was there, which no publication of this program makes so."""
_Slots = Sequence[CatalogColumn | None]
_GONE: Final = None
"""A column that was dropped, before the message or since."""


def aligned(
    message: Sequence[RelationColumn], catalog: Sequence[CatalogColumn], dropped: Callable[[], Collection[int]]
) -> list[CatalogColumn | None]:
    """The catalog's column for each column of a message; None for one that was dropped since.

    ``catalog``: all present columns in order. A generated one counts only if the message names it. ``dropped``: finds the
    numbers of those that can have been dropped since; it is called only if the names differ.
    """
    names = {column.name for column in message}
    live = [column for column in catalog if not column.generated or column.name in names]
    if [column.name for column in live[: len(message)]] == [column.name for column in message]:
        return [*live[: len(message)]]
    slots = dict.fromkeys(dropped()) | {column.number: column for column in live}
    ordered = [slots[number] for number in sorted(slots)]
    if len(ordered) >= len(message) and _GONE not in ordered[: len(message)]:
        return ordered[: len(message)]
    return _cheapest(message, ordered)


def _cheapest(message: Sequence[RelationColumn], slots: _Slots) -> list[CatalogColumn | None]:
    """The alignment with the lowest cost. Columns after the last one of the message cost nothing: they are new.

    ``slots``: the columns of the catalog, and those that were dropped.
    ``costs[i][j]``: the lowest cost of aligning the columns of the message from ``i`` on with the slots from ``j`` on.
    """
    costs = [[0] * (len(slots) + 1) for _ in range(len(message) + 1)]
    for i in reversed(range(len(message))):
        costs[i][-1] = costs[i + 1][-1] + _DROPPED
        for j in reversed(range(len(slots))):
            costs[i][j] = min(
                costs[i + 1][j + 1] + _difference(message[i], slots[j]), costs[i][j + 1] + _skipped(slots[j])
            )
    found, j = list[CatalogColumn | None](), 0
    for i, column in enumerate(message):
        while j < len(slots) and costs[i][j] != costs[i + 1][j + 1] + _difference(column, slots[j]):
            j += 1
        found.append(slots[j] if j < len(slots) else _GONE)
        j = min(j + 1, len(slots))
    return found


def _difference(column: RelationColumn, slot: CatalogColumn | None) -> int:
    if slot is _GONE:
        return _DROPPED
    if column.name == slot.name:
        return 0 if column.type_id == slot.type_id else _RETYPED
    return _RENAMED if column.type_id == slot.type_id else _BOTH


def _skipped(slot: CatalogColumn | None) -> int:
    """A dropped column that is not in the message was dropped before it."""
    return 0 if slot is _GONE else _HIDDEN
