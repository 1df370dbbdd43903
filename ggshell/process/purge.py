"""PURGEOLDEXTRACTS: which trail files nobody needs any more."""

from __future__ import annotations

import fnmatch
from pathlib import Path

from ggshell.params import PurgeRule
from ggshell.store.home import Home
from ggshell.trail import TrailName
from ggshell.types import TrailPosition


def needed_from(home: Home) -> dict[TrailName, int]:
    """The first file that a reader of each trail still needs, by the readers' checkpoint files."""
    needed: dict[TrailName, int] = {}
    for entry in home.groups():
        if entry.checkpoint is None or not entry.checkpoint.read.trail:
            continue
        name = TrailName.parse(entry.checkpoint.read.trail, home.root)
        place = entry.checkpoint.read.current
        seqno = place.seqno if isinstance(place, TrailPosition) else 0
        needed[name] = min(needed.get(name, seqno), seqno)
    return needed


def trails(home: Home) -> list[TrailName]:
    """Every trail that a group writes."""
    found = {
        TrailName.parse(target.trail, home.root): None
        for entry in home.groups()
        if entry.checkpoint is not None
        for target in entry.checkpoint.write
    }
    return list(found)


def removable(files: list[tuple[int, int]], first_needed: int | None, rule: PurgeRule, now: int) -> list[int]:
    """The sequence numbers that a rule lets go, of (sequence number, modification time) pairs in order.

    Never the newest files that MINKEEPFILES keeps, nor one younger than MINKEEPHOURS; with USECHECKPOINTS none from the
    slowest reader's file on, and none at all while no reader is known.
    """
    old = files[: max(0, len(files) - max(1, rule.keep_files))]
    limit = now - rule.keep_hours * 3_600_000_000
    chosen = []
    for seqno, modified in old:
        if rule.use_checkpoints and (first_needed is None or seqno >= first_needed):
            break
        if modified > limit:
            break
        chosen.append(seqno)
    return chosen


def purge(home: Home, rule: PurgeRule, now: int) -> list[Path]:
    """Remove what a rule lets go; the paths."""
    if any(entry.error is not None for entry in home.groups()):
        return []  # a reader whose checkpoint cannot be read may need anything
    needed = needed_from(home)
    pattern = str(home.resolve(rule.trail))
    removed = []
    for name in trails(home):
        if not fnmatch.fnmatchcase(str(name), pattern):
            continue
        files = [(seqno, name.file(seqno).stat().st_mtime_ns // 1000) for seqno in name.sequences()]
        for seqno in removable(files, needed.get(name), rule, now):
            path = name.file(seqno)
            path.unlink()
            removed.append(path)
    return removed
