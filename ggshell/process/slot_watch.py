"""What a replication slot holds back, how fast that grows, and how long it can go on; arithmetic alone, on what was seen."""

from __future__ import annotations

from typing import Any, NamedTuple

from ggshell.clock import Clock
from ggshell.databases.postgres.slot import SlotStatus

TREND_SECONDS = 60.0
"""Over a shorter time one burst would pass for a trend, and nothing is said of growth."""
WARN_HOURS = 2.0
AGAIN_SECONDS = 900.0
_HOUR = 3600.0
_STRAINED = ("extended", "unreserved")


class _Look(NamedTuple):
    at: float
    retained: int


class SlotWatch:
    """Looks at one slot again and again.  ``facts`` is what INFO and STATUS show of the last look, as plain data."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._first: _Look | None = None
        self._warned: float | None = None
        self.facts: dict[str, Any] = {}

    def look(self, status: SlotStatus, disk: int | None) -> str | None:
        """Take in what the server says, and the bytes that are free on its disk where they are known.

        The warning that this is worth: when less than two hours are left, or the server already keeps more than it wants
        to; at most one in fifteen minutes while that lasts, and a new one when it comes back.
        """
        now = self._clock.steady()
        self._first = self._first or _Look(now, status.retained)
        seconds = now - self._first.at
        growth = (status.retained - self._first.retained) / seconds * _HOUR if seconds > TREND_SECONDS else None
        rooms = [room for room in (status.room, disk) if room is not None]
        room = min(rooms, default=None)
        left = room / growth if room is not None and growth is not None and growth > 0 else None
        self.facts = {
            "name": status.name,
            "retained": status.retained,
            "growth_per_hour": None if growth is None else round(growth),
            "hours_left": left,
            "room": room,
            "limit": "" if room is None else "max_slot_wal_keep_size" if room == status.room else "disk",
            "wal_status": status.wal_status,
            "current": status.current,
            "at": self._clock.now(),
        }
        strained = status.wal_status in _STRAINED and status.room is not None
        if not strained and (left is None or left > WARN_HOURS):
            self._warned = None
            return None
        if self._warned is not None and now - self._warned < AGAIN_SECONDS:
            return None
        self._warned = now
        return self._warning(status, room, left)

    def _warning(self, status: SlotStatus, room: int | None, left: float | None) -> str:
        text = f"Slot {status.name} holds back {status.retained} bytes of log; {room} more may follow"
        if left is not None:
            text += f", at the present growth in {left * 60:.0f} minutes"
        what = "the server gives the slot up" if self.facts["limit"] != "disk" else "its disk is full"
        return f"{text}, then {what}."
