"""The commits of a lake: one small file per batch, written after all data of the batch is stored.

    <target>/_ggshell/<GROUP>/commits/000000000007.json

A batch without a commit does not count: the next attempt overwrites its data. The commit corresponds to the checkpoint row
of a Replicat for a database, and like it is stored with the data.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from ggshell.connectors.lake.target import LakeTarget, TableForm, lake_target
from ggshell.errors import ConflictError, DiskError, StoreError
from ggshell.files import locked, read_json, write_atomically
from ggshell.home.home import Home
from ggshell.types import TrailPosition

KEPT = 100
"""The number of commits that are kept; older ones add nothing to the newest."""


class LakeCommit(NamedTuple):
    """A committed batch.

    ``position``: the trail position after the batch; ``csn``, ``xid``, ``commit_time``: its last transaction; ``tables``:
    the version of each table's current state (``owner.table`` -> batch number).
    """

    batch: int
    position: TrailPosition
    csn: str = ""
    xid: str = ""
    commit_time: int = 0
    rows: int = 0
    tables: Mapping[str, int] = MappingProxyType({})


def taken(text: str) -> ConflictError:
    """The error for a folder of Parquet files that belongs to another group."""
    hint = "use another folder for this group: only one group can write to a folder of Parquet files"
    return ConflictError(text, code="GGS-00733", hint=hint)


class CommitLog:
    """The commits of one group in a target folder."""

    def __init__(self, target: LakeTarget, group: str) -> None:
        self.root = target.folder / "_ggshell" / group.upper()
        self._form = target.form
        self._folder = self.root / "commits"

    def claim(self) -> None:
        """Reserve a folder of Parquet files for one group: file names are batch numbers, and each group has its own.

        Raises ConflictError if it belongs to another group, DiskError if it is not writable.
        """
        try:
            with locked(self.root.parent / ".lock", f"lake {self.root.parents[1]}"):
                self.require_free()
                self.root.mkdir(exist_ok=True)
        except OSError as error:
            raise DiskError(f"cannot write to lake {self.root.parents[1]}: {error.strerror}") from error

    def require_free(self) -> None:
        """Raise ConflictError if the folder is reserved for another group."""
        if self._form is not TableForm.PARQUET or not self.root.parent.is_dir():
            return
        others = sorted(path.name for path in self.root.parent.iterdir() if path.is_dir() and path != self.root)
        if others:
            raise taken(f"lake {self.root.parents[1]} is already in use by REPLICAT {others[0]}")

    def held(self) -> AbstractContextManager[None]:
        """Lock the group's place in the lake for this process.

        Raises ConflictError if a group with this name in another home delivers to it.
        """
        return locked(self.root / ".lock", f"delivery of REPLICAT {self.root.name} to lake {self.root.parents[1]}")

    def require_there(self, commit: LakeCommit) -> None:
        """Raise DiskError if a known commit no longer exists.

        Another folder is then in the lake's place, and whatever is written now would lack all earlier data.
        """
        if not self._file(commit).exists():
            raise DiskError(
                f"lake {self.root.parents[1]} no longer contains batch {commit.batch}",
                hint="restore the folder, then START the group",
            )

    def _file(self, commit: LakeCommit) -> Path:
        return self._folder / f"{commit.batch:012d}.json"

    def latest(self) -> LakeCommit | None:
        """The newest commit.

        Raises StoreError if it cannot be read, as the contents of the lake are then unknown, and if it belongs to another
        table form.
        """
        found = sorted(self._folder.glob("*.json")) if self._folder.is_dir() else []
        if not found:
            return None
        try:
            said = read_json(found[-1].read_text())
            place = TrailPosition(int(said["seqno"]), int(said["rba"]))
            tables = {str(name): int(version) for name, version in said["tables"].items()}
            form = TableForm(said.get("form", TableForm.PARQUET))
            number, rows = int(said["batch"]), int(said["rows"])
            commit = LakeCommit(number, place, said["csn"], said["xid"], int(said["commit_time"]), rows, tables)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"commit {found[-1]} cannot be read: {error}",
                hint="restore it: it records which batches the lake contains",
            ) from error
        if form is not self._form:
            raise StoreError(
                f"{self.root.parents[1]} contains {form} tables of {self.root.name}, but TARGET specifies {self._form}",
                hint="DELETE REPLICAT, then ADD it with another folder or with the form of this folder",
            )
        return commit

    def add(self, commit: LakeCommit) -> None:
        """Commit a batch. Raises DiskError."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DiskError(f"cannot create {self._folder}: {error.strerror}") from error
        said = {
            "batch": commit.batch,
            "seqno": commit.position.seqno,
            "rba": commit.position.rba,
            "csn": commit.csn,
            "xid": commit.xid,
            "commit_time": commit.commit_time,
            "rows": commit.rows,
            "tables": dict(commit.tables),
            "form": self._form,
        }
        write_atomically(self._file(commit), json.dumps(said).encode())
        for path in sorted(self._folder.glob("*.json"))[:-KEPT]:
            path.unlink()


class LakeFolder:
    """A lake as commands see it: the target of one group."""

    def __init__(self, home: Home, text: str, group: str) -> None:
        self._home = home
        self._target = lake_target(home, text)
        self._commits = CommitLog(self._target, group)

    @property
    def folder(self) -> Path:
        return self._target.folder

    def require_free(self, others: Iterable[tuple[str, str]]) -> None:
        """Several groups may share a lake of Delta or Iceberg tables, but not a folder of Parquet files."""
        for name, text in others:
            if self._target.form is TableForm.PARQUET and lake_target(self._home, text) == self._target:
                raise taken(f"lake {self.folder} is the target of REPLICAT {name}")
        there = next(path for path in (self.folder, *self.folder.parents) if path.exists())
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            raise DiskError(f"lake {self.folder} is not writable: check {there}", hint="use another folder in TARGET")
        self._commits.require_free()

    def delivered(self) -> TrailPosition | None:
        last = self._commits.latest()
        return last.position if last is not None else None
