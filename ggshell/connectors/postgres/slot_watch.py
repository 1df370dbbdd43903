"""Calculates how much log a replication slot retains, how fast that grows, and when the space will run out."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from ggshell.clock import Clock
from ggshell.connectors.postgres.slot import SlotStatus
from ggshell.durations import HOUR
from ggshell.home.slot_facts import SlotFacts, SlotLimit

TREND_SECONDS = 60.0
"""The minimum time for a growth rate; over a shorter time, one burst would look like a trend."""
WINDOW_SECONDS = 600.0
"""The time over which growth is averaged: what was before does not hide a burst."""
WARN_HOURS = 2.0
AGAIN_SECONDS = 900.0
_STRAINED = ("extended", "unreserved")


class _Sample(NamedTuple):
    at: float
    retained: int


class SlotWatch:
    """Tracks one slot. ``facts``: the result of the last check, for INFO and STATUS; None before the first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._samples: deque[_Sample] = deque()
        self._warned: float | None = None
        self.facts: SlotFacts | None = None

    def check(self, status: SlotStatus, disk: int | None) -> str | None:
        """Update the facts from the slot's status and the free bytes on the server's disk (None: unknown).

        Returns a warning, or None. A warning is due if less than two hours are left or if the server retains more than it
        is configured to. While that lasts, there is at most one warning in 15 minutes. The growth is the average over
        ``WINDOW_SECONDS``.
        """
        now = self._clock.steady()
        growth = self._growth(_Sample(now, status.retained))
        rooms = [room for room in (status.room, disk) if room is not None]
        room = min(rooms, default=None)
        left = room / growth if room is not None and growth is not None and growth > 0 else None
        self.facts = SlotFacts(
            status.name,
            status.retained,
            None if growth is None else round(growth),
            left,
            room,
            _limit(status, room),
            wal_status=status.wal_status,
            current=status.current,
            pid=status.pid if status.active else 0,
            restart=status.restart,
            flush=status.confirmed,
            at=self._clock.now(),
        )
        strained = status.wal_status in _STRAINED and status.room is not None
        if not strained and (left is None or left > WARN_HOURS):
            self._warned = None
            return None
        if self._warned is not None and now - self._warned < AGAIN_SECONDS:
            return None
        self._warned = now
        return self._warning(status, room, left)

    def _growth(self, sample: _Sample) -> float | None:
        """Return the bytes an hour since the earliest sample in the window, None if that is too short a time."""
        self._samples.append(sample)
        while len(self._samples) > 2 and self._samples[1].at <= sample.at - WINDOW_SECONDS:
            self._samples.popleft()
        first = self._samples[0]
        seconds = sample.at - first.at
        return (sample.retained - first.retained) / seconds * HOUR if seconds > TREND_SECONDS else None

    def _warning(self, status: SlotStatus, room: int | None, left: float | None) -> str:
        text = f"Slot {status.name} retains {status.retained} bytes of log. After {room} more bytes"
        if left is not None:
            text += f" (in {left * 60:.0f} minutes at the current rate)"
        disk = _limit(status, room) is SlotLimit.DISK
        what = "the server's disk is full" if disk else "the server invalidates the slot"
        return f"{text}, {what}."


def _limit(status: SlotStatus, room: int | None) -> SlotLimit:
    if room is None:
        return SlotLimit.UNKNOWN
    return SlotLimit.CONFIGURED if room == status.room else SlotLimit.DISK
