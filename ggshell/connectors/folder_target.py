"""The folder to which ADD REPLICAT … SPARK delivers, as commands see it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from ggshell.clock import Clock
    from ggshell.home.maintenance import MaintenanceResult, MaintenanceSettings
    from ggshell.types import TrailPosition


class Delivered(NamedTuple):
    """The position in the trail after the last batch, and the name of the trail's files (empty: not known)."""

    position: TrailPosition
    trail: str = ""


class FolderTarget(Protocol):
    """The target folder of one group. Methods raise ConflictError, DiskError and StoreError."""

    @property
    def location(self) -> str:
        """The folder, or the location in an object store."""
        ...

    def require_free(self, others: Iterable[tuple[str, str]]) -> None:
        """Raise ConflictError if another group uses the folder alone, and DiskError if this process cannot write there.

        ``others``: the names and targets of this home's other groups that deliver to folders.
        """
        ...

    def delivered(self) -> Delivered | None:
        """How far the batches in the folder are; None if there is no batch."""
        ...

    def maintain(self, settings: MaintenanceSettings, clock: Clock) -> MaintenanceResult:
        """Compact the folder's tables, expire old versions, and remove files that nothing uses.

        Raises ConflictError if that is already being done, ApplyError if the folder's form cannot be maintained.
        """
        ...
