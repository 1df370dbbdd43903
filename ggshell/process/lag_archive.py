"""Replicat's part in the lag archive: heartbeats are gathered and written a minute's worth at a time."""

from __future__ import annotations

from pathlib import Path

from ggshell.clock import Clock, to_datetime
from ggshell.databases.duckdb import lag_archive
from ggshell.heartbeat.archive import ArchiveRow
from ggshell.heartbeat.row import Beat
from ggshell.store.home import Home

WRITE_SECONDS = 60.0
MOST_ROWS = 1000


def lag_folder(home: Home) -> Path:
    """Where the archive of a home is."""
    return home.root / "dirlag"


class LagArchive:
    """Takes one group's heartbeats; what is not written when the process is killed is lost to the archive alone."""

    def __init__(self, folder: Path, group: str, clock: Clock) -> None:
        self._folder = folder
        self._group = group
        self._clock = clock
        self._rows: list[ArchiveRow] = []
        self._first = 0.0
        self._day = ""

    def add(self, beat: Beat, received: int) -> None:
        """Take a heartbeat that is committed."""
        if not self._rows:
            self._first = self._clock.steady()
        self._rows.append(ArchiveRow(beat, received))

    def due(self) -> bool:
        """Whether it is time to write."""
        full = len(self._rows) >= MOST_ROWS
        return full or (bool(self._rows) and self._clock.steady() >= self._first + WRITE_SECONDS)

    def write(self) -> None:
        """Write what was taken, and gather the files of days that are over.  Raises DiskError."""
        rows, self._rows = self._rows, []
        if not rows:
            return
        lag_archive.write(self._folder, self._group, rows)
        today = to_datetime(self._clock.now()).date().isoformat()
        if today != self._day:
            self._day = today
            lag_archive.gather(self._folder, self._group, today)
