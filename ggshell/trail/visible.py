"""How far a trail may be read now: to its durable mark, or to its last whole transaction where there is no mark."""

from __future__ import annotations

from ggshell.trail.durable import MarkReader
from ggshell.trail.name import TrailName
from ggshell.trail.recover import find_end
from ggshell.types import TrailPosition


class VisibleEnd:
    """Looks at the mark each time it is asked; without one it scans, and again only when the last file has changed."""

    def __init__(self, name: TrailName) -> None:
        self._name = name
        self._mark = MarkReader(name)
        self._scanned = (-1, 0)
        self._end: TrailPosition | None = None

    def read(self) -> TrailPosition | None:
        """The end of what is visible, None while the trail has no file and no mark."""
        mark = self._mark.read()
        if mark is not None:
            return mark.position
        sequences = self._name.sequences()
        if not sequences:
            return None
        last = (sequences[-1], self._name.file(sequences[-1]).stat().st_size)
        if last != self._scanned:
            found = find_end(self._name)
            self._end = found.position if found else None
            self._scanned = last
        return self._end

    def close(self) -> None:
        self._mark.close()
