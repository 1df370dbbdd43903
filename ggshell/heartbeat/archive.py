"""Rows of the lag archive: heartbeats as the history has them, with the moment that Replicat knew their commit."""

from __future__ import annotations

from typing import NamedTuple

from ggshell.clock import to_datetime
from ggshell.heartbeat.row import Beat

_PLACES = range(2, 21)


class ArchiveRow(NamedTuple):
    """``received`` in microseconds since 1970."""

    beat: Beat
    received: int

    @property
    def day(self) -> str:
        """The day (UTC) whose folder takes it."""
        return to_datetime(self.received).date().isoformat()

    @property
    def values(self) -> tuple[str | int | None, ...]:
        """In the order of HISTORY_COLUMNS; times in microseconds since 1970."""
        return (self.beat.local_database, self.received, *(self.beat[place] for place in _PLACES))
