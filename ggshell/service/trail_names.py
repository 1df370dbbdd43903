"""Names of trails: the API gives a name and a folder, statements give a path.

A name without a folder means the trail that a group of the home already writes or reads under this name, or that has files,
whether it is in the home's folder or in ``dirdat``. For a trail that an Extract is to write, it means the one that the
Extract's parameter file names.
"""

from __future__ import annotations

from collections.abc import Iterable

from ggshell.errors import GgsError, UsageError
from ggshell.home.home import Home
from ggshell.parameters.loading import load_extract
from ggshell.service.answers import Object
from ggshell.trail.name import TrailName

LONGEST, LONGEST_PART = 1000, 60
FOLDERS = ("", "./dirdat")
"""Where a trail without a folder is looked for, in this order."""


def trail_fields(trail: str) -> Object:
    """Return a trail's name and folder in the form of the API; no folder for a trail in the home's folder."""
    folder, _, name = trail.replace("\\", "/").rpartition("/")
    return {"name": name, **({"path": folder} if folder not in ("", ".") else {})}


def trail_text(name: str, path: str) -> str:
    """Return a trail as statements name it, from the name and the folder of the API. Raises UsageError."""
    text = f"{path.rstrip('/')}/{name}" if path else name
    if not text.isprintable() or len(text) > LONGEST or any(len(part) > LONGEST_PART for part in text.split("/")):
        raise UsageError(f"{text[:80]!a} is not a valid trail name")
    return text


def written_trails(home: Home) -> list[str]:
    """Return the trails of this machine that the home's groups write, as their statements named them."""
    checkpoints = (entry.checkpoint for entry in home.groups() if entry.checkpoint is not None)
    return [each.trail for checkpoint in checkpoints for each in checkpoint.written_here]


def read_trails(home: Home) -> list[str]:
    """Return the trails that the home's groups read, as their statements named them."""
    found = [entry.checkpoint.read.trail for entry in home.groups() if entry.checkpoint is not None]
    return [trail for trail in found if trail]


def known_trail(home: Home, name: str, path: str = "", otherwise: str = "", *, files: bool = True) -> str:
    """Return a trail as the home's groups name it: the one that a group writes, that has files, or that a group reads.

    ``otherwise``: the folder of a trail without a folder that does not exist yet. ``files``: whether files alone count; not
    for a trail that is to be written.
    """
    if path or "/" in name:
        return trail_text(name, path)
    found = named(home, name, written_trails(home))
    if found is None and files:
        found = next((trail_text(name, folder) for folder in FOLDERS if _has_files(home, name, folder)), None)
    return found or named(home, name, read_trails(home)) or trail_text(name, otherwise)


def named(home: Home, name: str, trails: Iterable[str]) -> str | None:
    """Return the one of some trails that has a name without a folder, first the one in the home's folder."""
    known = {home.resolve(trail): trail for trail in reversed(list(trails))}
    places = [home.resolve(trail_text(name, folder)) for folder in FOLDERS]
    return next((known[place] for place in places if place in known), None)


def _has_files(home: Home, name: str, folder: str) -> bool:
    try:
        return bool(TrailName.parse(trail_text(name, folder), home.root).sequences())
    except UsageError:
        return False


def trail_of_file(home: Home, group: str, name: str) -> str | None:
    """Return the trail of this name, in any folder, that a group's parameter file writes; None if there is none."""
    try:
        statements = load_extract(home.parameters(group)).trails
    except GgsError:  # START reports what is wrong with the file
        return None
    return next((each.trail for each in statements if trail_fields(each.trail)["name"] == name), None)
