"""Rows that a foreign key has changed, put after the row whose key they follow.

MySQL enforces foreign keys above InnoDB since version 9.6, and logs what they change: before the row that caused it, with the
flag of rows whose foreign keys are not checked. A target that checks them would refuse a new value of a child before its
parent has it. A child that is deleted, or loses its value, can stay before its parent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ggshell.connectors.mysql.binlog.events import HEADER_SIZE, EventType

_FLAGS: Final = HEADER_SIZE + 6
_STATEMENT_END, _UNCHECKED, _ABOVE_ENGINE = 1, 2, 16
_UPDATES: Final = frozenset({int(EventType.UPDATE_ROWS), int(EventType.PARTIAL_UPDATE_ROWS)})
_MOST_BYTES: Final = 8 << 20
"""Longer ones keep their place: they would be held as a whole."""


def is_unchecked(event: bytes) -> bool:
    """Whether the session of a row event does not check foreign keys. Rows that a foreign key has changed are not meant."""
    flags = event[_FLAGS]
    return bool(flags & _UNCHECKED) and (not flags & _ABOVE_ENGINE or bool(flags & _STATEMENT_END))


class CascadedRows:
    """The row events of one statement after another."""

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._size = 0

    def ordered(self, event: bytes, *, captured: bool) -> Sequence[bytes]:
        """Take an event, and return those that are now in order. ``captured``: the table of the event is."""
        flags, own = event[_FLAGS], [event] if captured else []
        cascaded = flags & _UNCHECKED and flags & _ABOVE_ENGINE
        if cascaded and not flags & _STATEMENT_END and self._size < _MOST_BYTES:
            self._held += own
            self._size += len(event)
            return ()
        held = self.rest()
        return own + held if not cascaded and event[4] in _UPDATES else held + own

    def rest(self) -> list[bytes]:
        """Give up what is held: at the end of a transaction, its last statement had no row event with the mark of the end."""
        held, self._held, self._size = self._held, [], 0
        return held
