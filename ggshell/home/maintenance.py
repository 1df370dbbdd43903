"""Maintenance of a lake in the home: its settings, which are part of the group's checkpoint file, and its last result.

dirdb/maintenance/<GROUP>.json               when the last maintenance began and ended, what it did, its error
dirdb/maintenance/<GROUP>.unreferenced.json  files of the lake that no version uses, each with the time since when
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from ggshell.errors import StoreError
from ggshell.files import read_json, write_atomically

MEGABYTE = 1 << 20
HOUR = 3600


class MaintenanceSettings(NamedTuple):
    """When and how a lake is maintained.

    ``every``: seconds between two maintenances, 0: only on request. ``target_bytes``: the size to which files are compacted.
    ``retain``: seconds for which earlier versions of a table stay readable, ``versions``: how many of them at most.
    ``safe_age``: seconds for which a file stays after it was first seen without any use.
    """

    every: int = 0
    target_bytes: int = 128 * MEGABYTE
    retain: int = 24 * HOUR
    versions: int = 200
    safe_age: int = 24 * HOUR


class TableResult(NamedTuple):
    """What a maintenance did to one table: data files that were compacted and the files that replace them, versions that
    were expired, files that were removed, and the data files of the table afterwards."""

    table: str
    compacted: int = 0
    into: int = 0
    expired: int = 0
    removed: int = 0
    files: int = 0


class MaintenanceResult(NamedTuple):
    """The last maintenance. Times are in microseconds since 1970; ``ended`` 0: it runs, or was killed. ``code`` and
    ``error``: why it failed."""

    began: int
    ended: int = 0
    tables: tuple[TableResult, ...] = ()
    code: str = ""
    error: str = ""


class MaintenanceFiles:
    """The maintenance files of one group."""

    def __init__(self, root: Path, group: str) -> None:
        """``root``: the home directory."""
        folder = root / "dirdb" / "maintenance"
        self.lock = folder / f".{group.upper()}.lock"
        self._result = folder / f"{group.upper()}.json"
        self._unreferenced = folder / f"{group.upper()}.unreferenced.json"

    def result(self) -> MaintenanceResult | None:
        """The last maintenance; None if there was none, or if its file cannot be read."""
        try:
            said = read_json(self._result.read_text())
            tables = tuple(TableResult(**each) for each in said["tables"])
            return MaintenanceResult(said["began"], said["ended"], tables, said["code"], said["error"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def save(self, result: MaintenanceResult) -> None:
        """Raises DiskError."""
        self._result.parent.mkdir(parents=True, exist_ok=True)
        said = {**result._asdict(), "tables": [table._asdict() for table in result.tables]}
        write_atomically(self._result, json.dumps(said).encode())

    def remove(self) -> None:
        """Remove what is known about the maintenance of a group that is deleted."""
        for path in (self._result, self._unreferenced, self.lock):
            path.unlink(missing_ok=True)

    def unreferenced(self) -> dict[str, int]:
        """Files that the last maintenance saw without any use: since when, in microseconds since 1970. Raises StoreError."""
        if not self._unreferenced.exists():
            return {}
        try:
            return {str(path): int(since) for path, since in read_json(self._unreferenced.read_text()).items()}
        except (OSError, ValueError, AttributeError) as error:
            raise StoreError(
                f"{self._unreferenced} cannot be read: {error}",
                hint="remove it: the next maintenance then waits for the safe age of all files again",
            ) from error

    def save_unreferenced(self, files: Mapping[str, int]) -> None:
        """Raises DiskError."""
        self._unreferenced.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self._unreferenced, json.dumps(dict(files)).encode())


def removable(
    known: Mapping[str, int], unreferenced: Collection[str], now: int, safe_age: int
) -> tuple[list[str], dict[str, int]]:
    """The files to remove now, and what to remember: files without any use, with the time at which each was first seen.

    A file is never removed by the maintenance that sees it first, so one that a writer has written and not committed yet, or
    that a reader of an earlier version still reads, stays for the safe age.
    """
    since = {path: known.get(path, now) for path in unreferenced}
    old = sorted(path for path, first in since.items() if path in known and now - first >= safe_age * 1_000_000)
    return old, {path: first for path, first in since.items() if path not in set(old)}
