"""The state of Bounded Recovery in an Extract's checkpoint file and in its answers; INFO, BR SHOW and SEND … BR show it.

Times are in microseconds since 1970, 0 if unknown; sizes are in bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ggshell.home.typed_fields import read_fields
from ggshell.types import LogPosition


class TimedPosition(NamedTuple):
    """A position in the redo and its time; the fields of the position are those of LogPosition."""

    sequence: int
    rba: int
    csn: int
    thread: int
    time: int

    @property
    def place(self) -> LogPosition:
        """The position without its time."""
        return LogPosition(self.sequence, self.rba, self.csn, self.thread)


class PersistedTransaction(NamedTuple):
    """An open transaction that is in files.

    ``state`` and ``data``: its sizes. ``written``: the number of the checkpoint that wrote it. ``dirty``: it has changed
    since then.
    """

    name: str
    begin_time: int
    state: int
    data: int
    written: int
    dirty: bool


class RecoveryState(NamedTuple):
    """The progress of the recovery with which the run began.

    ``bounded``: it began at a Bounded Recovery checkpoint. ``bytes`` and ``seconds``: what was read again so far, and how
    long it took. ``left_bytes`` and ``left_seconds`` are None if unknown.
    """

    kind: str
    bounded: bool
    reason: str
    complete: bool
    percent: int
    bytes: int
    seconds: float
    left_bytes: int | None = None
    left_seconds: float | None = None


class BoundedState(NamedTuple):
    """The state of Bounded Recovery.

    ``incarnation``: distinguishes the checkpoints since the group's start point was set (0: not set). ``interval``: in
    seconds. ``objects``, ``state`` and ``data``: the persisted transactions and their sizes. ``outstanding``: the long
    transactions that are not persisted yet. ``failure``: why the last checkpoint failed, or empty. ``log_time``: the time
    of the last record read. ``begin`` and ``end``: where a recovery from the last checkpoint begins and ends; ``previous``:
    where one from the checkpoint before it begins. ``restart_name``: the transaction that determines ``begin``.
    """

    incarnation: int = 0
    status: str = ""
    interval: int = 0
    last_number: int = 0
    last_time: int = 0
    next_time: int = 0
    forced_time: int = 0
    objects: int = 0
    state: int = 0
    data: int = 0
    outstanding: int = 0
    outstanding_data: int = 0
    failure: str = ""
    log_time: int = 0
    folder: str = ""
    recovering: RecoveryState | None = None
    begin: TimedPosition | None = None
    end: TimedPosition | None = None
    restart_name: str = ""
    previous: TimedPosition | None = None
    persisted: tuple[PersistedTransaction, ...] = ()

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> BoundedState:
        """Read the answer of a process to SEND … BR, which can contain other values as well. Raises ValueError."""
        return read_fields(cls, answer, "answer")
