"""What is known of the log that a replication slot retains: kept in checkpoint files and answers, shown by INFO and STATUS."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from ggshell.durations import HOUR
from ggshell.home.typed_fields import read_fields


class SlotLimit(StrEnum):
    """What limits the log that a slot retains."""

    UNKNOWN = ""
    CONFIGURED = "max_slot_wal_keep_size"
    DISK = "disk"


class SlotFacts(NamedTuple):
    """How much log a replication slot retains.

    ``retained``: in bytes. ``hours_left``: the hours until the limit (None: unknown). ``room``: the bytes until the limit.
    ``pid``: the server process that reads the slot (0: none). ``restart``, ``flush``, ``current``: LSNs, 0 if unknown.
    ``wal_status``: the server's own word for the state of the log. ``at``: when this was seen, in microseconds since 1970.
    """

    name: str
    retained: int
    growth_per_hour: float | None = None
    hours_left: float | None = None
    room: int | None = None
    limit: SlotLimit = SlotLimit.UNKNOWN
    wal_status: str = ""
    current: int = 0
    pid: int = 0
    restart: int = 0
    flush: int = 0
    at: int = 0
    database: str = ""

    @classmethod
    def of(cls, answer: Mapping[str, Any] | None) -> SlotFacts | None:
        """Read what a process answers about its slot; None if it reports nothing. Raises ValueError."""
        return read_fields(cls, answer, "slot") if answer else None

    @property
    def seconds_left(self) -> float | None:
        """The seconds until the limit, or None if they are unknown."""
        return None if self.hours_left is None else self.hours_left * HOUR
