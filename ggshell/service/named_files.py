"""Where the files and trails are that a statement or a parameter file names: in the home, outside it, or among secrets.

The folders of a home may be symbolic links: their owner made them. Any other link out of the home counts as outside, and so
does a file that is reached through it. The folders of ALLOWPATH count as the home's. A trail that a group of the home writes
or reads belongs to the home, wherever it is.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ggshell.errors import HttpError, UsageError
from ggshell.home.home import SUBDIRECTORIES
from ggshell.home.key_file import FILE as KEY_FILE
from ggshell.home.users import Role
from ggshell.service.trail_names import read_trails, written_trails

if TYPE_CHECKING:
    from ggshell.home.home import Home
    from ggshell.parameters.service_parameters import ServiceParameters
    from ggshell.service.sign_in import Principal

_CLOSED: Final = ("dircrd", "dirwlt", "dirpcs", "dirdb")
"""Folders of the home whose files no statement may name: secrets, sockets and the state of the home."""
_SECRET_FILES: Final = frozenset({"cwallet.sso", KEY_FILE.lower()})
"""Names of files with keys, in lower case, wherever they are: WALLETLOCATION puts the wallet anywhere."""
_OPEN: Final = frozenset({*SUBDIRECTORIES.values(), "dirlag"}).difference(_CLOSED)
_KEPT: Final = ("dirprm", "dirchk", "GLOBALS", "ggserr.log")
"""What statements and processes do not write through a name that a user gives: what decides how processes work."""


class Bounds(NamedTuple):
    """Which files the users of the service may name: those of the home, and those in the folders of ALLOWPATH.

    ``secrets``: further files that no user may name.
    """

    home: Home
    folders: tuple[Path, ...] = ()
    secrets: tuple[Path, ...] = ()

    @classmethod
    def of(cls, home: Home, settings: ServiceParameters) -> Bounds:
        key = home.resolve(settings.key)
        keys = (key, key.resolve()) if settings.key else ()
        return cls(home, tuple(home.resolve(folder) for folder in settings.allowed), keys)


def outside_error(what: str) -> UsageError:
    """Return the error for a file that no user of the service may name."""
    return UsageError(
        f"{what} is outside the home", code=_CODE, hint="use a file of the home, or name its folder in ALLOWPATH"
    )


_CODE: Final = "GGS-00936"


def require_inside(
    bounds: Bounds, principal: Principal, text: str, *, named: str = "", written: bool = False, exact: bool = False
) -> None:
    """Check that a user may name a file, a folder or a trail: SECURITY may name those outside the home too.

    ``named``: what names it, for the message. The rest: as for ``is_outside``. Raises HttpError 403, UsageError for a file
    with secrets.
    """
    if not is_outside(bounds, text, written=written, exact=exact) or principal.role >= Role.SECURITY:
        return
    raise HttpError(
        403,
        f"{f'{named} names ' if named else ''}{text[:200]}{', which' if named else ''} is outside the home:"
        f" user {principal.name} has the role {principal.role.title}; this requires {Role.SECURITY.title}",
        code=_CODE,
        hint="use a file of the home, or name its folder in ALLOWPATH",
    )


def is_outside(bounds: Bounds, text: str, *, written: bool = False, exact: bool = False) -> bool:
    """Whether a text names a file, a folder or a trail outside the home.

    ``written``: it is written or deleted. ``exact``: it is not the beginning of the names of other files. A backslash can
    mean a slash, as in names of trails. Raises UsageError for a file with secrets, and for one that is not to be written.
    """
    readings = dict.fromkeys([text, text.replace("\\", "/")])
    leaving = [_leaves(bounds, bounds.home.resolve(each), written=written, exact=exact) for each in readings]
    return any(leaving)


def _leaves(bounds: Bounds, path: Path, *, written: bool, exact: bool) -> bool:
    """Whether a path points outside the home. Arguments and errors: as for ``is_outside``."""
    _require_open(bounds, path, bounds.home.root)
    try:
        places = [path.resolve(), *(() if exact else _links(path))]
    except (OSError, RuntimeError, ValueError):  # a circle of links, a name that no file can have
        return True
    for place in places:
        _require_open(bounds, place, bounds.home.root.resolve())
        if written:
            _require_not_kept(bounds, place)
    roots = (bounds.home.root, *bounds.folders, *(folder.resolve() for folder in bounds.folders))
    leaves = (
        ".." in path.parts
        or not any(path.is_relative_to(root) for root in roots)
        or not all(_is_inside(bounds, each) for each in places)
    )
    return leaves and not _belongs_to_group(bounds.home, path, written=written)


def _require_open(bounds: Bounds, path: Path, root: Path) -> None:
    """Raise UsageError if a path is in a folder with secrets. ``root``: the home's folder, in the form that the path has."""
    home = bounds.home.root
    first = path.relative_to(root).parts[:1] if path.is_relative_to(root) else ()
    closed = next((name for name in _CLOSED if path.is_relative_to((home / name).resolve())), "")
    if closed or (first and first[0].lower() in _CLOSED):
        raise UsageError(f"the service does not show files of {closed or first[0]}")
    if path.name.lower() in _SECRET_FILES or path in bounds.secrets:
        raise UsageError(f"the service does not show {path.name}, because it contains keys")


def _require_not_kept(bounds: Bounds, place: Path) -> None:
    """Raise UsageError for a file, after all links, that decides how processes work."""
    found = next((name for name in _KEPT if place.is_relative_to((bounds.home.root / name).resolve())), "")
    if found:
        raise UsageError(
            f"{place} cannot be written: {found} does not contain files of this kind", hint="use another folder"
        )


def _is_inside(bounds: Bounds, place: Path) -> bool:
    """Whether a place, after all links, is in the home, in one of its folders, or in a folder of ALLOWPATH."""
    home = bounds.home.root
    folders = chain([home], (home / name for name in _OPEN), bounds.folders)
    return any(place.is_relative_to(folder.resolve()) for folder in folders)


def _links(path: Path) -> Iterator[Path]:
    """Yield the places of what a folder, a pattern or the name of a trail refers to, if a link points there."""
    pattern = str(path / "*") if os.path.isdir(path) else f"{path}*"  # noqa: PTH112 - a name can be too long
    folders = set()
    for found in map(Path, glob.iglob(pattern)):  # noqa: PTH207 - an absolute pattern
        if found.is_symlink():
            yield found.resolve()
        elif found.parent not in folders:
            folders.add(found.parent)
            yield found.parent.resolve()


def _belongs_to_group(home: Home, path: Path, *, written: bool) -> bool:
    """Whether a path names a trail of a group, or one of its files. To write it, a group must write it already."""
    place = path.resolve()
    texts = written_trails(home) if written else [*written_trails(home), *read_trails(home)]
    trails = {home.resolve(trail).resolve() for trail in texts}
    return place in trails or (place.name[2:].isdigit() and place.with_name(place.name[:2]) in trails)
