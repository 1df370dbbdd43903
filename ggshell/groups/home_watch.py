"""Detects whether the home directory of a running process was moved or removed."""

from __future__ import annotations

import os
from pathlib import Path

from ggshell.errors import HomeMovedError
from ggshell.home.home import Home
from ggshell.home.process_file import home_identity_of

SECONDS = 1.0
"""The interval between two checks."""


class HomeWatch:
    """Keeps the home's folder open, so that it can be found after a move."""

    def __init__(self, home: Home) -> None:
        self._root = home.root
        self._descriptor = os.open(home.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._place = home_identity_of(home.root)

    def check(self) -> None:
        """Raise HomeMovedError if the home's path is another folder or no longer exists."""
        if home_identity_of(self._root) != self._place:
            moved = self.moved()
            where = f"was moved to {moved.root}" if moved is not None else "was removed"
            raise HomeMovedError(
                f"the home directory {self._root} {where} while this process was running; the process ends",
                hint="start it again from the home's current location",
            )

    def moved(self) -> Home | None:
        """Return the home at its new path, or None if it was not moved or no longer exists."""
        if home_identity_of(self._root) == self._place or not os.fstat(self._descriptor).st_nlink:
            return None
        link = Path(f"/proc/self/fd/{self._descriptor}")
        found = link.readlink() if link.is_symlink() else self._root
        return Home(found) if home_identity_of(found) == self._place else None

    @property
    def is_home_there(self) -> bool:
        """Whether the path is still that of the home in which the process was started."""
        return home_identity_of(self._root) == self._place

    def close(self) -> None:
        os.close(self._descriptor)
