"""Finds the trails below a home that other homes send: each has a small file next to it that names its sender.

A process that checks often, as the service does for metrics, lists a folder again only after the folder has changed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from ggshell.trail.name import TrailName

_SUFFIX: Final = ".sender"
_SETTLED: Final = 1_000_000_000
"""A folder that changed less than this before it was listed may have changed again unnoticed. Nanoseconds."""


class _Folder(NamedTuple):
    changed: int
    trails: tuple[str, ...]
    folders: tuple[str, ...]


_KNOWN: dict[Path, _Folder] = {}


def sent_trails(root: Path) -> Iterator[TrailName]:
    """Yield the trails at or below a home that have a sender. Folders that cannot be read have none.

    A link in the home itself is followed: its ``dirdat`` may be on another disk."""
    waiting = [root]
    while waiting:
        path = waiting.pop()
        found = _folder(path, links=path == root)
        if found is None:
            _KNOWN.pop(path, None)
            continue
        for prefix in found.trails:
            yield TrailName(path, prefix)
        waiting += [path / each for each in found.folders]


def _folder(path: Path, *, links: bool) -> _Folder | None:
    """Return what a folder contains; as it was listed before, if it has not changed since then."""
    try:
        changed = path.stat().st_mtime_ns
        known = _KNOWN.get(path)
        if known is not None and known.changed == changed:
            return known
        with os.scandir(path) as entries:
            found = _listed(entries, changed, links=links)
    except OSError:
        return None
    if time.time_ns() - changed > _SETTLED:
        _KNOWN[path] = found
    return found


def _listed(entries: Iterator[os.DirEntry[str]], changed: int, *, links: bool) -> _Folder:
    trails, folders = [], []
    for entry in entries:
        name = entry.name
        if name.endswith(_SUFFIX) and name.startswith(".") and len(name) == len(_SUFFIX) + 3:
            trails.append(name[1:3])
        elif entry.is_dir(follow_symlinks=links):
            folders.append(name)
    return _Folder(changed, tuple(sorted(trails)), tuple(sorted(folders)))
