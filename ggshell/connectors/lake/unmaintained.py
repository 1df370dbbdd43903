"""The warning that a lake has had many batches and nothing maintains it."""

from __future__ import annotations

from typing import Final

from ggshell.clock import Clock
from ggshell.connectors.lake.target import LakeTarget, TableForm
from ggshell.durations import MICROSECONDS
from ggshell.home.maintenance import HOUR, MaintenanceFiles, MaintenanceSettings

BATCHES: Final = 1000
"""After each so many batches, the group warns once."""
_RECENT: Final = 24 * HOUR
"""A maintenance that is not older was requested with MAINTAIN LAKE, so it is likely to be requested again."""
UNMAINTAINED: Final = "GGS-00737"


class UnmaintainedLake:
    """Counts the batches of one run of a group. ``batch``: the number of the last one before it, -1 if there is none."""

    def __init__(
        self,
        group: str,
        target: LakeTarget,
        settings: MaintenanceSettings,
        files: MaintenanceFiles,
        clock: Clock,
        batch: int,
    ) -> None:
        self._group, self._target, self._files, self._clock = group, target, files, clock
        self._is_scheduled = settings.every > 0 or target.form is TableForm.PARQUET
        self._thousands = (batch + 1) // BATCHES

    def warning(self, batch: int) -> str:
        """What to report after a batch; empty if there is nothing."""
        thousands = (batch + 1) // BATCHES
        if self._is_scheduled or thousands <= self._thousands:
            return ""
        self._thousands = thousands
        last = self._files.result()
        if last is not None and self._clock.now() - last.began < _RECENT * MICROSECONDS:
            return ""
        return (
            f"{batch + 1:,} batches have been written to {self._target.location}, and the lake is not maintained: it has"
            " many small files and earlier versions. Schedule its maintenance:"
            f" ALTER REPLICAT {self._group}, MAINTAIN EVERY 1H."
        )
