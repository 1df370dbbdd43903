"""What a lake holds for sure: one small file for each batch, written when all of the batch's data is there.

    <target>/_ggshell/<GROUP>/commits/000000000007.json

A batch without its commit never happened: its data is written over by the next attempt.  This is the checkpoint row of a
Replicat, kept beside the data as a database's is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from ggshell.errors import ConflictError, DiskError, StoreError
from ggshell.files import locked, write_atomically
from ggshell.lake.target import Form, LakeTarget
from ggshell.types import TrailPosition

KEPT = 100
"""So many commits stay; older ones say nothing that the newest does not."""


class Commit(NamedTuple):
    """A batch that is there: its number, the place behind it in the trail, its last transaction, and the version of each
    table's current state (``owner.table`` -> batch number)."""

    batch: int
    position: TrailPosition
    csn: str = ""
    xid: str = ""
    commit_time: int = 0
    rows: int = 0
    tables: Mapping[str, int] = MappingProxyType({})


def taken(text: str) -> ConflictError:
    """What to tell of a folder of Parquet files that is another group's."""
    hint = "another folder for this group: a folder of Parquet files is one group's alone"
    return ConflictError(text, code="GGS-00733", hint=hint)


class CommitLog:
    """The commits of one group below a target folder."""

    def __init__(self, target: LakeTarget, group: str) -> None:
        self.root = target.folder / "_ggshell" / group.upper()
        self._form = target.form
        self._folder = self.root / "commits"

    def claim(self) -> None:
        """Keep a folder of Parquet files to one group: their names are batch numbers, and each group has its own.

        Raises ConflictError when it is another group's, DiskError when nothing can be written there.
        """
        try:
            with locked(self.root.parent / ".lock", f"lake {self.root.parents[1]}"):
                self.require_free()
                self.root.mkdir(exist_ok=True)
        except OSError as error:
            raise DiskError(f"cannot write to lake {self.root.parents[1]}: {error.strerror}") from error

    def require_free(self) -> None:
        """Raises ConflictError when the folder is kept to another group."""
        if self._form is not Form.PARQUET or not self.root.parent.is_dir():
            return
        others = sorted(path.name for path in self.root.parent.iterdir() if path.is_dir() and path != self.root)
        if others:
            raise taken(f"lake {self.root.parents[1]} is what REPLICAT {others[0]} writes")

    def held(self) -> AbstractContextManager[None]:
        """Keep the group's place in the lake to this process.  Raises ConflictError when a group of this name in another home
        delivers there."""
        return locked(self.root / ".lock", f"the place of REPLICAT {self.root.name} in lake {self.root.parents[1]}")

    def require_there(self, commit: Commit) -> None:
        """Raises DiskError when a commit that was made, or read, is no longer there: another folder stands in the lake's place,
        and what is written now would be without all that came before."""
        if not self._file(commit).exists():
            raise DiskError(
                f"lake {self.root.parents[1]} no longer holds batch {commit.batch}, which was there",
                hint="put the folder back as it was, and START the group",
            )

    def _file(self, commit: Commit) -> Path:
        return self._folder / f"{commit.batch:012d}.json"

    def latest(self) -> Commit | None:
        """The newest commit.

        Raises StoreError when it cannot be read, for nobody may guess what is there, and when it is of another form.
        """
        found = sorted(self._folder.glob("*.json")) if self._folder.is_dir() else []
        if not found:
            return None
        try:
            said = json.loads(found[-1].read_text())
            place = TrailPosition(int(said["seqno"]), int(said["rba"]))
            tables = {str(name): int(version) for name, version in said["tables"].items()}
            form = Form(said.get("form", Form.PARQUET))
            number, rows = int(said["batch"]), int(said["rows"])
            commit = Commit(number, place, said["csn"], said["xid"], int(said["commit_time"]), rows, tables)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"commit {found[-1]} cannot be read: {error}",
                hint="restore it; without it nobody knows which batches are there",
            ) from error
        if form is not self._form:
            raise StoreError(
                f"{self.root.parents[1]} holds {form} tables of {self.root.name}, TARGET says {self._form}",
                hint="DELETE REPLICAT, and ADD it with another folder, or with the form that the folder has",
            )
        return commit

    def add(self, commit: Commit) -> None:
        """Make a batch count.  Raises DiskError."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DiskError(f"cannot make {self._folder}: {error.strerror}") from error
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
