"""Where the files and trails are that a statement names: in the home, outside it, or in a folder with secrets.

The folders of a home may be symbolic links: their owner made them. Any other link out of the home counts as outside. A trail
that a group of the home writes or reads belongs to the home, wherever it is.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ggshell.errors import UsageError
from ggshell.home.home import SUBDIRECTORIES
from ggshell.service.trail_names import read_trails, written_trails

if TYPE_CHECKING:
    from ggshell.home.home import Home

_CLOSED: Final = ("dircrd", "dirwlt", "dirpcs", "dirdb")
"""Folders of the home whose files no statement may name: secrets, sockets and the catalog."""
_OPEN: Final = frozenset({*SUBDIRECTORIES.values(), "dirlag"}).difference(_CLOSED)


def is_outside(home: Home, text: str) -> bool:
    """Whether a text names a file or a trail outside the home. Raises UsageError for one in a folder with secrets."""
    path = home.resolve(text)
    _require_open(home, path, home.root)
    try:
        places = [path.resolve(), *_links(path)]
    except (OSError, RuntimeError, ValueError):  # a circle of links, a name that no file can have
        return True
    for place in places:
        _require_open(home, place, home.root.resolve())
    leaves = (
        ".." in path.parts or not path.is_relative_to(home.root) or not all(_is_inside(home, each) for each in places)
    )
    return leaves and not _belongs_to_group(home, path)


def _require_open(home: Home, path: Path, root: Path) -> None:
    """Raise UsageError if a path is in a folder with secrets. ``root``: the home's folder, in the form that the path has."""
    first = path.relative_to(root).parts[:1] if path.is_relative_to(root) else ()
    closed = next((name for name in _CLOSED if path.is_relative_to((home.root / name).resolve())), "")
    if closed or (first and first[0].lower() in _CLOSED):
        raise UsageError(f"the service does not show files of {closed or first[0]}")


def _is_inside(home: Home, place: Path) -> bool:
    """Whether a place, after all links, is in the home or in one of its folders."""
    folders = chain([home.root], (home.root / name for name in _OPEN))
    return any(place.is_relative_to(folder.resolve()) for folder in folders)


def _links(path: Path) -> Iterator[Path]:
    """Yield the places of what a folder, a pattern or the name of a trail refers to, if a link leads there."""
    pattern = str(path / "*") if os.path.isdir(path) else f"{path}*"  # noqa: PTH112 - a name can be too long
    folders = set()
    for found in map(Path, glob.iglob(pattern)):  # noqa: PTH207 - an absolute pattern
        if found.is_symlink():
            yield found.resolve()
        elif found.parent not in folders:
            folders.add(found.parent)
            yield found.parent.resolve()


def _belongs_to_group(home: Home, path: Path) -> bool:
    """Whether a path names a trail of a group, or one of its files."""
    place = path.resolve()
    trails = {home.resolve(trail).resolve() for trail in (*written_trails(home), *read_trails(home))}
    return place in trails or (place.name[2:].isdigit() and place.with_name(place.name[:2]) in trails)
