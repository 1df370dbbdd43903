"""PURGEOLDEXTRACTS: finds and removes trail files that are no longer needed."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from ggshell.clock import Clock
from ggshell.durations import HOUR, MICROSECONDS
from ggshell.errors import DiskError, StoreError
from ggshell.home.checkpoint import Checkpoint
from ggshell.home.home import GroupEntry, Home
from ggshell.network.trail_readers import readers_in, readers_of
from ggshell.parameters.process_parameters import PurgeRule
from ggshell.trail.name import TrailName
from ggshell.trail.reach import TrailExtent
from ggshell.trail.removing import remove_file
from ggshell.types import TrailPosition

_FILE = re.compile(r"(..)(?:\d{9}|\d{6})")
_HOUR = HOUR * MICROSECONDS
RECEIVED_SECONDS = 60.0
"""Seconds between two checks of what the aliases of passive Extracts have received."""


class TrailFile(NamedTuple):
    """A trail file: its sequence number and the time of its last write (microseconds since 1970)."""

    seqno: int
    modified: int


class PurgeTimes:
    """Tracks which rules are due: each rule at the first check, then at its own frequency."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next: dict[PurgeRule, float] = {}

    def due(self, rules: Iterable[PurgeRule]) -> list[PurgeRule]:
        """Return the rules that are due, and schedule their next time."""
        now = self._clock.steady()
        found = [rule for rule in rules if now >= self._next.get(rule, now)]
        self._next.update({rule: now + rule.every for rule in found})
        return found


def needed_from(checkpoints: Iterable[Checkpoint], home: Home) -> dict[TrailName, int]:
    """Return the first file of each trail that its slowest reader still needs, including for its recovery."""
    needed: dict[TrailName, int] = {}
    for checkpoint in checkpoints:
        read = checkpoint.read
        if not read.trail:
            continue
        name = TrailName.parse(read.trail, home.root).real
        places = [place.seqno for place in (read.current, read.recovery) if isinstance(place, TrailPosition)]
        seqno = min(places, default=0)
        needed[name] = min(needed.get(name, seqno), seqno)
    return needed


def all_needed(checkpoints: Iterable[Checkpoint], home: Home) -> dict[TrailName, int]:
    """Return the same as ``needed_from``, for the readers in other homes too. Raises StoreError as ``first_needed`` does."""
    needed = needed_from(checkpoints, home)
    folders = dict.fromkeys([(home.root / "dirdat").resolve(), *(name.folder for name in needed)])
    for name, reader in (each for folder in folders for each in readers_in(folder)):
        needed[name] = min(needed.get(name, reader.seqno), reader.seqno)
    return needed


def first_needed(needed: Mapping[TrailName, int], name: TrailName) -> int | None:
    """Return the first file that a reader of a trail still needs, here (``needed``) or in another home; None without one.

    Raises StoreError if it is unknown what another home has read."""
    found = [each.seqno for each in readers_of(name)]
    return min((*found, needed[name]) if name in needed else found, default=None)


def matching(checkpoints: Iterable[Checkpoint], home: Home, pattern: str) -> list[TrailName]:
    """Return the trails that match a rule's ``./dirdat/ea`` or ``./dirdat/*``: trails of groups and trails in the folder."""
    wanted = home.resolve(pattern.replace("\\", "/"))
    names = [
        TrailName.parse(text, home.root)
        for checkpoint in checkpoints
        for text in (checkpoint.read.trail, *(target.trail for target in checkpoint.written_here))
        if text
    ]
    if wanted.parent.is_dir():
        found = (_FILE.fullmatch(entry.name) for entry in wanted.parent.iterdir())
        names += [TrailName(wanted.parent, match[1]) for match in found if match]
    unique = dict.fromkeys(name.real for name in names)
    folder = wanted.parent.resolve()
    return [name for name in unique if name.folder == folder and fnmatch.fnmatchcase(name.prefix, wanted.name)]


def removable(
    files: list[TrailFile], first_needed: int | None, rule: PurgeRule, now: int, durable: int | None = None
) -> list[int]:
    """Return the sequence numbers that a rule allows to remove from a trail's files, which are in order.

    1. The newest file and the newest files that MINKEEPFILES keeps are never removed.
    2. Files younger than MINKEEPHOURS (or MINKEEPDAYS) are not removed.
    3. With USECHECKPOINTS, the slowest reader's file and all later files are not removed.
    4. With USECHECKPOINTS, nothing is removed if no reader is known, because it may not have been added yet.
    5. There are no gaps: if a file is kept, all later files are kept.
    6. The file with the durable mark (``durable``) and all later files are kept, because the writer restarts there.
    """
    kept = max(1, rule.keep_files)
    limit = now - rule.keep_hours * _HOUR
    chosen: list[int] = []
    for seqno, modified in files[: max(0, len(files) - kept)]:
        if durable is not None and seqno >= durable:
            break
        if rule.use_checkpoints and (first_needed is None or seqno >= first_needed):
            break
        if rule.keep_hours and modified > limit:
            break
        chosen.append(seqno)
    return chosen


def purge(home: Home, rule: PurgeRule, now: int) -> list[Path]:
    """Remove the files that a rule allows to remove; return their paths.

    Raises StoreError, and removes nothing, if a checkpoint cannot be read, because its group may need any file.
    Raises DiskError if a file cannot be removed.
    """
    checkpoints = known_checkpoints(home)
    needed = needed_from(checkpoints, home)
    removed = []
    try:
        for name in matching(checkpoints, home, rule.trail):
            mark = TrailExtent.of(name).mark
            for seqno in removable(_files(name), first_needed(needed, name), rule, now, mark.seqno if mark else None):
                path = name.file(seqno)
                remove_file(path)
                removed.append(path)
    except OSError as error:
        raise DiskError(f"cannot remove old trail files: {error.strerror}", where=str(error.filename)) from error
    return removed


def received_rules(home: Home) -> list[PurgeRule]:
    """Return the rules that remove what aliases have received from the trails of passive Extracts.

    No other rule covers these trails: GoldenGate sends them without a file in the source home."""
    found = [each.checkpoint for each in home.groups() if each.checkpoint is not None]
    passive = [each for each in found if each.options.passive]
    return [PurgeRule(target.trail, every=RECEIVED_SECONDS) for each in passive for target in each.write]


def known_checkpoints(home: Home) -> list[Checkpoint]:
    """Return the checkpoints of all groups of a home.

    Raises StoreError (GGS-00308) if one cannot be read: its group may need any file, so none may be removed.
    """
    return [_checkpoint(entry) for entry in home.groups()]


def _checkpoint(entry: GroupEntry) -> Checkpoint:
    if entry.checkpoint is None:
        why = entry.error.message if entry.error else "its checkpoint cannot be read"
        raise StoreError(
            f"no trail file is purged while the position of {entry.type} {entry.group} is unknown: {why}",
            code="GGS-00308",
        )
    return entry.checkpoint


def _files(name: TrailName) -> list[TrailFile]:
    return [TrailFile(seqno, name.file(seqno).stat().st_mtime_ns // 1000) for seqno in name.sequences()]
