"""Maintenance of Delta tables by delta-rs, which merges its commits with those of delivery.

A version is readable as long as its files exist, so versions expire with the files that only they use.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError

from ggshell.connectors.lake.forms.table_maintenance import Compacted, Maintainable
from ggshell.errors import ApplyError

ATTEMPTS = 20
"""How often a compaction is tried against delivery, which may delete rows of the same files."""
_LOG = "_delta_log"


class DeltaMaintenance:
    """Maintains the Delta table in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def compact(self, target_bytes: int) -> Compacted:
        for _ in range(ATTEMPTS):
            try:
                metrics = self._open().optimize.compact(target_size=target_bytes)
            except CommitFailedError:
                continue
            except DeltaError as error:
                raise ApplyError(f"cannot compact {self._folder}: {str(error).splitlines()[0]}") from error
            return Compacted(metrics["numFilesRemoved"], metrics["numFilesAdded"])
        raise ApplyError(f"compaction of {self._folder} met {ATTEMPTS} other commits")

    def expire(self, before: int, most: int) -> int:
        """Remove log entries that are older than a checkpoint and the table's log retention."""
        table = self._open()
        entries = self._log_entries()
        table.create_checkpoint()
        table.cleanup_metadata()
        return entries - self._log_entries()

    def _log_entries(self) -> int:
        return sum(1 for _ in (self._folder / _LOG).glob("*.json"))

    def unreferenced(self) -> list[str]:
        there = {path for path in self._folder.rglob("*") if path.is_file() and _LOG not in path.parts}
        # Read after the listing: what is committed meanwhile is then either not listed or known.
        return sorted(str(path) for path in there - self._referenced())

    def _referenced(self) -> set[Path]:
        return {Path(unquote(uri.removeprefix("file://"))) for uri in self._open().file_uris()}

    def remove(self, paths: list[str]) -> None:
        for path in paths:
            with suppress(FileNotFoundError):
                Path(path).unlink()

    def data_files(self) -> int:
        return len(self._open().file_uris())

    def _open(self) -> DeltaTable:
        return DeltaTable(self._folder)


def delta_tables(folder: Path) -> list[Maintainable]:
    """The tables of a lake: the log and the current tables."""
    found = [(folder / "log", "log"), *((each, each.name) for each in sorted((folder / "current").glob("*")))]
    return [
        Maintainable(name, DeltaMaintenance(each), versions_by_files=True)
        for each, name in found
        if DeltaTable.is_deltatable(str(each))
    ]
