"""Which group of this home writes a trail, also before the trail has files: nothing that another home sends goes there."""

from __future__ import annotations

from ggshell.home.home import GroupEntry, Home
from ggshell.trail.name import TrailName


def local_writer(home: Home, name: TrailName, *, but: str = "") -> str:
    """Return the group of a home that writes a trail, such as ``EXTRACT EXT1``; empty if there is none.

    ``name``: without links. ``but``: a group, in the same form, that does not count.
    """
    texts = (f"{entry.type} {entry.group}" for entry in home.groups() if _writes(home, entry, name))
    return next((text for text in texts if text != but), "")


def _writes(home: Home, entry: GroupEntry, name: TrailName) -> bool:
    trails = [each.trail for each in entry.checkpoint.written_here] if entry.checkpoint is not None else []
    return any(TrailName.parse(trail, home.root).real == name for trail in trails)
