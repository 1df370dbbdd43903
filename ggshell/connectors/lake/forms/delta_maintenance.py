"""Maintenance of Delta tables by delta-rs, which merges its commits with those of delivery.

A version is readable as long as its files exist, so versions expire with the files that only they use.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError

from ggshell.connectors.lake.forms.table_maintenance import Compacted, Maintainable
from ggshell.connectors.lake.store import LakeStore
from ggshell.errors import ApplyError
from ggshell.object_stores import open_place, store_error

ATTEMPTS = 20
"""How often a compaction is tried against delivery, which may delete rows of the same files."""
_LOG = "_delta_log/"


class DeltaMaintenance:
    """Maintains the Delta table at a location."""

    def __init__(self, location: str) -> None:
        self._location = location
        self._place = open_place(location)

    def compact(self, target_bytes: int) -> Compacted:
        for _ in range(ATTEMPTS):
            try:
                metrics = self._open().optimize.compact(target_size=target_bytes)
            except CommitFailedError:
                continue
            except DeltaError as error:
                raise ApplyError(f"cannot compact {self._location}: {str(error).splitlines()[0]}") from error
            return Compacted(metrics["numFilesRemoved"], metrics["numFilesAdded"])
        raise ApplyError(f"compaction of {self._location} met {ATTEMPTS} other commits")

    def expire(self, before: int, most: int) -> int:
        """Remove log entries that are older than a checkpoint and the table's log retention."""
        table = self._open()
        entries = self._log_entries()
        table.create_checkpoint()
        table.cleanup_metadata()
        return entries - self._log_entries()

    def _log_entries(self) -> int:
        return sum(1 for path in self._listed() if path.startswith(_LOG) and path.endswith(".json"))

    def unreferenced(self) -> list[str]:
        there = [path for path in self._listed() if not path.startswith(_LOG)]
        # Read after the listing: what is committed meanwhile is then either not listed or known.
        used = {unquote(row["path"]) for row in pa.table(self._open().get_add_actions()).select(["path"]).to_pylist()}
        return sorted(f"{self._location}/{path}" for path in there if path not in used)

    def _listed(self) -> Iterator[str]:
        """The files below the location, relative to it."""
        from pyarrow import fs

        try:
            found = self._place.system.get_file_info(fs.FileSelector(self._place.path, recursive=True))
        except OSError as error:
            raise store_error(self._location, error) from error
        for each in found:
            if each.is_file:
                yield each.path.removeprefix(self._place.path).lstrip("/")

    def remove(self, paths: list[str]) -> None:
        for path in paths:
            place = self._place.child(path.removeprefix(f"{self._location}/"))
            try:
                place.system.delete_file(place.path)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise store_error(path, error) from error

    def data_files(self) -> int:
        return len(self._open().file_uris())

    def _open(self) -> DeltaTable:
        return DeltaTable(self._location)


def delta_tables(location: str) -> list[Maintainable]:
    """The tables of a lake: the log and the current tables."""
    names = {"log": "log"} | {f"current/{name}": unquote(name) for name in LakeStore(location).names("current")}
    return [
        Maintainable(shown, DeltaMaintenance(f"{location}/{name}"), versions_by_files=True)
        for name, shown in names.items()
        if DeltaTable.is_deltatable(f"{location}/{name}")
    ]
