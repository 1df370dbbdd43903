"""PURGEOLDEXTRACTS: which trail files nobody needs any more."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ggshell.clock import Clock
from ggshell.errors import DiskError, StoreError
from ggshell.params.files import PurgeRule
from ggshell.store.checkpoint import Checkpoint
from ggshell.store.home import GroupEntry, Home
from ggshell.trail.name import TrailName
from ggshell.types import TrailPosition

_FILE = re.compile(r"(..)(?:\d{9}|\d{6})")
_HOUR = 3_600_000_000


class TrailFile(NamedTuple):
    """A file of a trail: its number, and when it was last written (microseconds since 1970)."""

    seqno: int
    modified: int


class PurgeTimes:
    """Which rules are due: each at the first look, then at its own frequency."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next: dict[PurgeRule, float] = {}

    def due(self, rules: Iterable[PurgeRule]) -> list[PurgeRule]:
        """The rules whose time has come; they count as carried out."""
        now = self._clock.steady()
        found = [rule for rule in rules if now >= self._next.get(rule, now)]
        self._next.update({rule: now + rule.every for rule in found})
        return found


def needed_from(checkpoints: Iterable[Checkpoint], home: Home) -> dict[TrailName, int]:
    """The first file that a reader of each trail still needs: the slowest counts, at where it would begin again."""
    needed: dict[TrailName, int] = {}
    for checkpoint in checkpoints:
        read = checkpoint.read
        if not read.trail:
            continue
        name = _real(TrailName.parse(read.trail, home.root))
        places = [place.seqno for place in (read.current, read.recovery) if isinstance(place, TrailPosition)]
        seqno = min(places, default=0)
        needed[name] = min(needed.get(name, seqno), seqno)
    return needed


def matching(checkpoints: Iterable[Checkpoint], home: Home, pattern: str) -> list[TrailName]:
    """The trails that a rule's ``./dirdat/ea`` or ``./dirdat/*`` names: those of groups, and those that lie there."""
    wanted = home.resolve(pattern)
    names = [
        TrailName.parse(text, home.root)
        for checkpoint in checkpoints
        for text in (checkpoint.read.trail, *(target.trail for target in checkpoint.write))
        if text
    ]
    if wanted.parent.is_dir():
        found = (_FILE.fullmatch(entry.name) for entry in wanted.parent.iterdir())
        names += [TrailName(wanted.parent, match[1]) for match in found if match]
    unique = dict.fromkeys(_real(name) for name in names)
    folder = wanted.parent.resolve()
    return [name for name in unique if name.folder == folder and fnmatch.fnmatchcase(name.prefix, wanted.name)]


def removable(files: list[TrailFile], first_needed: int | None, rule: PurgeRule, now: int) -> list[int]:
    """The sequence numbers that a rule lets go, of a trail's files in order.

    1. Never the newest file, nor one of the newest that MINKEEPFILES keeps.
    2. None younger than MINKEEPHOURS (or MINKEEPDAYS).
    3. With USECHECKPOINTS none from the slowest reader's file on.
    4. With USECHECKPOINTS none at all while no reader is known: it may only not have been added yet.
    5. No gaps: where one file stays, all later ones stay.
    """
    kept = max(1, rule.keep_files)
    limit = now - rule.keep_hours * _HOUR
    chosen: list[int] = []
    for seqno, modified in files[: max(0, len(files) - kept)]:
        if rule.use_checkpoints and (first_needed is None or seqno >= first_needed):
            break
        if rule.keep_hours and modified > limit:
            break
        chosen.append(seqno)
    return chosen


def purge(home: Home, rule: PurgeRule, now: int) -> list[Path]:
    """Remove what a rule lets go; the paths.

    Raises StoreError, without removing anything, while a checkpoint cannot be read: that group may need any file.
    Raises DiskError when a file cannot be removed.
    """
    checkpoints = [_checkpoint(entry) for entry in home.groups()]
    needed = needed_from(checkpoints, home)
    removed = []
    try:
        for name in matching(checkpoints, home, rule.trail):
            for seqno in removable(_files(name), needed.get(name), rule, now):
                path = name.file(seqno)
                path.unlink(missing_ok=True)
                removed.append(path)
    except OSError as error:
        raise DiskError(f"cannot remove old trail files: {error.strerror}", where=str(error.filename)) from error
    return removed


def _checkpoint(entry: GroupEntry) -> Checkpoint:
    if entry.checkpoint is None:
        why = entry.error.message if entry.error else "its checkpoint cannot be read"
        raise StoreError(
            f"no trail file is purged while {entry.type} {entry.group} is unclear: {why}", code="GGS-00308"
        )
    return entry.checkpoint


def _real(name: TrailName) -> TrailName:
    """The same trail whatever way its folder is written."""
    return TrailName(name.folder.resolve(), name.prefix)


def _files(name: TrailName) -> list[TrailFile]:
    return [TrailFile(seqno, name.file(seqno).stat().st_mtime_ns // 1000) for seqno in name.sequences()]
