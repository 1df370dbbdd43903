"""Lag and ages, from checkpoint files alone: right while a process runs, when it is idle, and when it does not run."""

from __future__ import annotations

from ggshell.process.state import ProcessState
from ggshell.store.checkpoint import Checkpoint, SourceType


def checkpoint_lag(checkpoint: Checkpoint, state: ProcessState, now: int, waiting_since: int | None) -> int | None:
    """Seconds of lag; None before anything was ever read.

    ``waiting_since``: the commit time of the first record that waits in the source trail, None when none does (or the source
    is a log).  A running process: how old the last record was at the checkpoint, 0 when it had reached the end.  One that
    does not run: the age of the oldest record that waits for it; behind a log, which is not looked at here, the time since
    it is known to have been at the end.
    """
    if checkpoint.read.source is SourceType.TRAIL and waiting_since is not None:
        return _seconds(now - waiting_since)
    if checkpoint.read.source is SourceType.TRAIL and state is not ProcessState.RUNNING:
        return 0
    known = max(checkpoint.caught_up, checkpoint.record_time)
    if state is not ProcessState.RUNNING:
        if not known:
            return None if not checkpoint.begin_time else _seconds(now - checkpoint.begin_time)
        return _seconds(now - known)
    return _seconds(checkpoint.updated - known) if known else 0


def _seconds(microseconds: int) -> int:
    return max(0, microseconds // 1_000_000)


def duration(seconds: int | None) -> str:
    """``HH:MM:SS``; the hours may have more than two digits."""
    if seconds is None:
        return "00:00:00"
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
