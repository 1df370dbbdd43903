"""The definition of lag for INFO, LAG, STATUS, Manager's LAGINFO and the shell's status bar.

Lag is the age of the oldest record that waits to be processed; if no record waits, there is no lag. A running group reports
its progress in checkpoints, so between two checkpoints its lag is that of the last one; if checkpoints stop, its lag grows.
Waiting records in a trail can be seen from outside the process, but those in a database log cannot, nor those in a trail of
another home that a RECVPATH reads; for these, the time since the source was last read to its end counts.

Times are in microseconds since 1970. A process writes checkpoints with the times of its own clock, and the file system
timestamps the files with another clock, which all processes of a home share. If these clocks differ, the process's times
are corrected by the difference.
"""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, NamedTuple

from ggshell.errors import GgsError, StateError
from ggshell.home.checkpoint import AddedAt, Checkpoint, SourceType
from ggshell.home.home import Home
from ggshell.home.process_file import ALIVE, ProcessState
from ggshell.types import TrailPosition

if TYPE_CHECKING:
    from pathlib import Path

    from ggshell.trail.name import TrailName

_SECOND = 1_000_000
CHECKPOINT_GRACE = {SourceType.LOG: 15 * _SECOND, SourceType.TRAIL: 4 * _SECOND, SourceType.TABLE: 15 * _SECOND}
"""The age at which a running group's checkpoint no longer shows its progress; shorter for trails, which can be read."""
LEAST_DIFFERENCE = 2 * _SECOND
"""Smaller differences between two clocks are ignored: they can result from the time that it takes to write a file."""


class FoundLag(NamedTuple):
    """A group's lag in microseconds, or None for a task or if the lag is unknown; ``error`` is then the reason."""

    value: int | None
    error: GgsError | None = None


def reference(checkpoint: Checkpoint, ahead: int = 0) -> int:
    """Return the latest time before which everything committed is known to be processed (0: unknown)."""
    caught_up = checkpoint.caught_up - ahead if checkpoint.caught_up else 0
    return max(checkpoint.record_time, caught_up) or checkpoint.begin_time


def lag(checkpoint: Checkpoint, state: ProcessState, now: int, unprocessed: int | None, ahead: int = 0) -> int | None:
    """Return a group's lag in microseconds, or None for a task, which has no lag.

    ``unprocessed``: the commit time of the first record that a trail reader has not processed, or None if there is none.
    ``ahead``: how far the process's clock is ahead, in microseconds.
    """
    if checkpoint.read.source is SourceType.TABLE:
        return None
    known = reference(checkpoint, ahead)
    if state in ALIVE and not is_stuck(checkpoint, now, ahead):
        if not checkpoint.updated or checkpoint.caught_up >= checkpoint.updated:
            return 0
        return max(0, checkpoint.updated - ahead - known) if known else 0
    if _is_seen(checkpoint):
        return max(0, now - unprocessed) if unprocessed else 0
    return max(0, now - known) if known and (checkpoint.updated or state not in ALIVE) else 0


def is_stuck(checkpoint: Checkpoint, now: int, ahead: int = 0) -> bool:
    """Whether a group's last checkpoint is too old to show its progress."""
    return now - (checkpoint.updated - ahead) > CHECKPOINT_GRACE[checkpoint.read.source]


def since(checkpoint: Checkpoint, now: int, ahead: int = 0) -> int:
    """Return the age of a checkpoint in microseconds."""
    return max(0, now - (checkpoint.updated - ahead if checkpoint.updated else checkpoint.created))


def difference(process: int, files: int) -> int:
    """Return how far a process's clock is ahead of the clock of the home's files; 0 if the difference is negligible.

    ``process`` and ``files``: the same moment according to each clock.
    """
    return process - files if abs(process - files) >= LEAST_DIFFERENCE else 0


def clock_ahead(path: Path, checkpoint: Checkpoint, state: ProcessState) -> int:
    """Return how far a running process's clock is ahead, from its checkpoint and the time of the checkpoint file.

    The result is 0 for a stopped process, because restoring its file can change the file's time.
    """
    if state not in ALIVE or not checkpoint.updated:
        return 0
    try:
        return difference(checkpoint.updated, path.stat().st_mtime_ns // 1000)
    except OSError:
        return 0


def clock_text_of(ahead: int) -> str:
    """Return a clock difference as text."""
    direction = "ahead of" if ahead > 0 else "behind"
    return f"its clock is {abs(ahead) // _SECOND} seconds {direction} the clock of the home's file system"


def group_lag(home: Home, checkpoint: Checkpoint, state: ProcessState, now: int, ahead: int = 0) -> FoundLag:
    """Return a group's lag; for a trail reader that is stopped or stuck, read its trail."""
    read = checkpoint.read
    unprocessed: int | None = None
    looks = state not in ALIVE or is_stuck(checkpoint, now, ahead)
    if _row_decides(home, checkpoint):
        return FoundLag(None, StateError(f"it was added again, and {_ROW_DECIDES}", hint="START the group"))
    if looks and _is_seen(checkpoint) and isinstance(read.current, TrailPosition):
        try:
            unprocessed = first_unprocessed(home, read.trail, read.current)
        except GgsError as error:
            return FoundLag(None, error)
    return FoundLag(lag(checkpoint, state, now, unprocessed, ahead))


def _is_seen(checkpoint: Checkpoint) -> bool:
    """Whether the records that wait for a group can be seen: they are in a trail of this home."""
    return checkpoint.read.source is SourceType.TRAIL and not checkpoint.reads_other_home


_ROW_DECIDES = "its checkpoint table may contain a row of an earlier run, which decides where it continues"


def _row_decides(home: Home, checkpoint: Checkpoint) -> bool:
    """Whether the checkpoint file of a Replicat does not show what is applied.

    This is so if the Replicat was added without a position and has not run since, but a report shows that a Replicat of the
    same name ran before.
    """
    options = checkpoint.options
    if checkpoint.started or not options.checkpoint_table:
        return False
    return options.added is AddedAt.FIRST and home.report(checkpoint.group).exists()


def first_unprocessed(home: Home, trail: str, position: TrailPosition) -> int | None:
    """Return the commit time of the first record after a position, or None at the end of the trail.

    The usual case, a position at the end, is detected by file sizes alone, without loading the trail reader. Raises
    TrailError for a position that the trail has lost or never had: the waiting records are then unknown.
    """
    from ggshell.trail.name import TrailName
    from ggshell.trail.reach import require_reachable

    path = home.resolve(trail)
    name = TrailName(path.parent, path.name)
    require_reachable(name, position)
    names = re.compile(re.escape(path.name) + r"(\d{9}|\d{6})")
    entries = path.parent.iterdir() if path.parent.is_dir() else ()
    files = {int(match[1]): entry for entry in entries if (match := names.fullmatch(entry.name))}
    if not files or max(files) < position.seqno:
        return None
    size = files[max(files)].stat().st_size if max(files) == position.seqno else -1
    if size == position.rba:
        return None
    from ggshell.trail.positions import read_position_time

    found = read_position_time(name, position)
    if found is None:
        _require_header(name, min(number for number in files if number >= position.seqno))
    return found


def _require_header(name: TrailName, seqno: int) -> None:
    """Raise TrailError if a file is not a trail file; without this check it would look like a trail without records."""
    from ggshell.trail.opened import open_file

    with contextlib.suppress(FileNotFoundError):  # purged, or not created yet
        open_file(name, seqno).close()
