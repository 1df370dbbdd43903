"""Lag that is true: how far a group is behind its source, also when it does not run.

Pure arithmetic on what checkpoint files say; times are microseconds since 1970.
"""

from __future__ import annotations

from ggshell.process.lag_watch import CHECKPOINT_GRACE
from ggshell.process.state import ProcessState
from ggshell.store.checkpoint import Checkpoint, SourceType

RUNNING = (ProcessState.RUNNING, ProcessState.STARTING)


def reference(checkpoint: Checkpoint) -> int:
    """The last moment of which it is known that everything committed before it was processed (0: no such moment)."""
    return max(checkpoint.record_time, checkpoint.caught_up) or checkpoint.begin_time


def lag(checkpoint: Checkpoint, state: ProcessState, now: int, unprocessed: int | None) -> int | None:
    """A group's lag in microseconds, None for tasks, which have none.

    ``unprocessed``: commit time of the first record that a trail reader has not processed, None when there is none.
    Running: as of the last checkpoint, while those come.  Not running, or stuck: it grows, for a log always (nobody has
    looked since), for a trail when records wait in it.
    """
    if checkpoint.read.source is SourceType.TABLE:
        return None
    known = reference(checkpoint)
    if state in RUNNING and not is_stuck(checkpoint, now):
        if not checkpoint.updated or checkpoint.caught_up >= checkpoint.updated:
            return 0
        return max(0, checkpoint.updated - known) if known else 0
    if checkpoint.read.source is SourceType.TRAIL:
        return max(0, now - unprocessed) if unprocessed else 0
    return max(0, now - known) if known and (checkpoint.updated or state not in RUNNING) else 0


def is_stuck(checkpoint: Checkpoint, now: int) -> bool:
    """Whether a running group's checkpoints stay away, so that they do not say how far it is: Manager judges likewise."""
    return now - checkpoint.updated > CHECKPOINT_GRACE


def since(checkpoint: Checkpoint, now: int) -> int:
    """The age of the checkpoint."""
    return max(0, now - (checkpoint.updated or checkpoint.created))


def clock_text(microseconds: int | None) -> str:
    """``HH:MM:SS``; hours may have more than two digits; empty where there is none."""
    if microseconds is None:
        return ""
    minutes, second = divmod(microseconds // 1_000_000, 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours:02}:{minute:02}:{second:02}"
