"""Names of trails: the API gives a name and a folder, statements give a path.

A name without a folder means the trail that a group of the home already writes or reads under this name, whether it is in the
home's folder or in ``dirdat``.
"""

from __future__ import annotations

from collections.abc import Iterator

from ggshell.errors import UsageError
from ggshell.home.home import Home
from ggshell.service.answers import Object

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


def trails_of_groups(home: Home) -> Iterator[str]:
    """Return the trails that the home's groups read and write, as their statements named them."""
    for entry in home.groups():
        if entry.checkpoint is not None:
            yield from (each.trail for each in entry.checkpoint.write)
            if entry.checkpoint.read.trail:
                yield entry.checkpoint.read.trail


def known_trail(home: Home, name: str, path: str = "", otherwise: str = "") -> str:
    """Return a trail as the home's groups name it.

    ``otherwise``: the folder of a trail without a folder that no group uses.
    """
    if path or "/" in name:
        return trail_text(name, path)
    known = list(dict.fromkeys(trails_of_groups(home)))
    for folder in FOLDERS:
        wanted = home.resolve(trail_text(name, folder))
        found = [trail for trail in known if home.resolve(trail) == wanted]
        if found:
            return found[0]
    return trail_text(name, otherwise)
