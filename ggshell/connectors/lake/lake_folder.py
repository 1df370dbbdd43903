"""A lake as commands see it: the target of one group."""

from __future__ import annotations

import os
from collections.abc import Iterable

from ggshell.clock import Clock
from ggshell.connectors.folder_target import Delivered
from ggshell.connectors.lake.commits import CommitLog, taken
from ggshell.connectors.lake.credentials import applied, group_environment
from ggshell.connectors.lake.maintenance import maintain
from ggshell.connectors.lake.target import TableForm, lake_target
from ggshell.errors import DiskError
from ggshell.home.home import Home
from ggshell.home.maintenance import MaintenanceResult, MaintenanceSettings


class LakeFolder:
    """What the interface ``FolderTarget`` asks."""

    def __init__(self, home: Home, text: str, group: str) -> None:
        self._home = home
        self._group = group
        self._target = lake_target(home, text)

    @property
    def location(self) -> str:
        return self._target.location

    def require_free(self, others: Iterable[tuple[str, str]]) -> None:
        """Several groups may share a lake of Delta or Iceberg tables, but not a folder of Parquet files."""
        for name, text in others:
            if self._target.form is TableForm.PARQUET and lake_target(self._home, text) == self._target:
                raise taken(f"lake {self.location} is the target of REPLICAT {name}")
        folder = self._target.folder
        if folder is not None:
            there = next(path for path in (folder, *folder.parents) if path.exists())
            if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
                raise DiskError(f"lake {folder} is not writable: check {there}", hint="use another folder in TARGET")
        with applied(group_environment(self._home, self._group, self._target)):
            CommitLog(self._target, self._group).require_free()

    def maintain(self, settings: MaintenanceSettings, clock: Clock) -> MaintenanceResult:
        with applied(group_environment(self._home, self._group, self._target)):
            return maintain(self._home, self._group.upper(), self._target, settings, clock)

    def delivered(self) -> Delivered | None:
        with applied(group_environment(self._home, self._group, self._target)):
            last = CommitLog(self._target, self._group).latest()
        return Delivered(last.position, last.trail) if last is not None else None
