"""The commits of a lake: one small file per batch, written after all data of the batch is stored.

    <target>/_ggshell/<GROUP>/commits/000000000007.json

A batch without a commit does not count: the next attempt overwrites its data. The commit corresponds to the checkpoint row
of a Replicat for a database, and like it is stored with the data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import NamedTuple, Protocol
from uuid import uuid4

from ggshell.connectors.lake.store import LakeStore
from ggshell.connectors.lake.target import LakeTarget, TableForm
from ggshell.errors import ConflictError, StateError, StoreError
from ggshell.files import locked, read_json
from ggshell.home.checkpoint import Checkpoint
from ggshell.types import TrailPosition

KEPT = 100
"""The number of commits that are kept; older ones add nothing to the newest."""


class LakeCommit(NamedTuple):
    """A committed batch.

    ``position``: the trail position after the batch; ``csn``, ``xid``, ``commit_time``: its last transaction; ``tables``:
    the version of each table's current state (``owner.table`` -> batch number); ``trail``: the name of the trail's files,
    empty if an earlier version of the program has written the commit.
    """

    batch: int
    position: TrailPosition
    csn: str = ""
    xid: str = ""
    commit_time: int = 0
    rows: int = 0
    tables: Mapping[str, int] = MappingProxyType({})
    trail: str = ""


def taken(text: str) -> ConflictError:
    """The error for a folder of Parquet files that belongs to another group."""
    hint = "use another folder for this group: only one group can write to a folder of Parquet files"
    return ConflictError(text, code="GGS-00733", hint=hint)


class CommitFiles(Protocol):
    """The place of a group's commits: small files with sortable names."""

    def names(self) -> list[str]: ...

    def exists(self, name: str) -> bool: ...

    def read(self, name: str) -> bytes | None: ...

    def create(self, name: str, data: bytes) -> bool:
        """Write a commit unless it exists. Returns whether it was written."""
        ...

    def delete(self, name: str) -> None: ...


class StoreCommits:
    """Commits as files in the lake's location."""

    def __init__(self, store: LakeStore, folder: str) -> None:
        self._store = store
        self._folder = folder

    def names(self) -> list[str]:
        return [name for name in self._store.names(self._folder) if name.endswith(".json") and not name.startswith(".")]

    def exists(self, name: str) -> bool:
        return self._store.exists(f"{self._folder}/{name}")

    def read(self, name: str) -> bytes | None:
        return self._store.read(f"{self._folder}/{name}")

    def create(self, name: str, data: bytes) -> bool:
        return self._store.create(f"{self._folder}/{name}", data)

    def delete(self, name: str) -> None:
        self._store.delete(f"{self._folder}/{name}")


class CommitLog:
    """The commits of one group in a lake."""

    def __init__(self, target: LakeTarget, group: str) -> None:
        self.location = target.location
        self.group = group.upper()
        self.root = f"_ggshell/{self.group}"
        self._writer = str(uuid4())
        self.store = None if target.is_located_by_catalog else LakeStore(target.location)
        self._form = target.form
        self._files: CommitFiles
        if self.store is not None:
            self._files = StoreCommits(self.store, f"{self.root}/commits")
        else:
            from ggshell.connectors.lake.forms.iceberg_catalog import CatalogCommits

            self._files = CatalogCommits(target, self.group)

    def claim(self) -> None:
        """Reserve a folder of Parquet files for one group: file names are batch numbers, and each group has its own.

        Raises ConflictError if it belongs to another group, DiskError if it is not writable.
        """
        if self.store is None or self._form is not TableForm.PARQUET:
            return
        folder = self.store.folder
        lock = nullcontext() if folder is None else locked(folder / "_ggshell" / ".lock", f"lake {folder}")
        with lock:
            self.require_free()
            self.store.create(f"{self.root}/group.json", json.dumps({"group": self.group}).encode())

    def require_free(self) -> None:
        """Raise ConflictError if the folder is reserved for another group."""
        if self.store is None or self._form is not TableForm.PARQUET:
            return
        others = [name for name in self.store.names("_ggshell") if not name.startswith(".") and name != self.group]
        if others:
            raise taken(f"lake {self.location} is already in use by REPLICAT {others[0]}")

    def held(self) -> AbstractContextManager[None]:
        """Lock the group's place in the lake for this process; in an object store, the next commit shows a conflict.

        Raises ConflictError if a group with this name in another home delivers to it.
        """
        folder = self.store.folder if self.store is not None else None
        if folder is None:
            return nullcontext()
        return locked(folder / self.root / ".lock", f"delivery of REPLICAT {self.group} to lake {folder}")

    def require_there(self, commit: LakeCommit) -> None:
        """Raise StateError if a known commit no longer exists.

        Another folder is then in the lake's place, and data written now would lack all earlier data.
        """
        if not self._files.exists(_name(commit.batch)):
            raise _gone(self, f"no longer contains batch {commit.batch} of {self.group}")

    def sync(self) -> None:
        """Make all data of a batch durable before its commit."""
        if self.store is not None:
            self.store.sync()

    def latest(self) -> LakeCommit | None:
        """The newest commit.

        Raises StoreError if it cannot be read, as the contents of the lake are then unknown, and if it belongs to another
        table form.
        """
        found = self._files.names()
        if not found:
            return None
        try:
            form, commit = _decoded(self._files.read(found[-1]) or b"")
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"commit {found[-1]} of lake {self.location} cannot be read: {error}",
                hint="restore it: it records which batches the lake contains",
            ) from error
        if form is not self._form:
            raise StoreError(
                f"{self.location} contains {form} tables of {self.group}, but TARGET specifies {self._form}",
                hint="use the form of this folder, or another folder; for a group, DELETE REPLICAT and ADD it again",
            )
        return commit

    def add(self, commit: LakeCommit) -> None:
        """Commit a batch. Raises ConflictError if another process has committed it, DiskError, ConnectionLostError."""
        if not self._files.create(_name(commit.batch), _encoded(commit, self._form, self._writer)):
            raise ConflictError(
                f"batch {commit.batch} of lake {self.location} was committed by another process",
                hint=f"make sure that REPLICAT {self.group} runs in one home only, then START it",
            )
        for name in self._files.names()[:-KEPT]:
            self._files.delete(name)


def require_lake(log: CommitLog, checkpoint: Checkpoint) -> None:
    """Raise StateError if a group has delivered to a lake that contains nothing of it.

    The folder was moved or is not mounted, and continuing would leave out all earlier data.
    """
    if checkpoint.latest_csn and log.latest() is None:
        raise _gone(log, f"contains nothing from {log.group}, which has delivered up to CSN {checkpoint.latest_csn}")


def _gone(log: CommitLog, text: str) -> StateError:
    """The error for a lake without the batches of a group."""
    hint = f"restore the folder, or set a new start position with ALTER REPLICAT {log.group}, EXTSEQNO n, EXTRBA n"
    return StateError(f"lake {log.location} {text}", code="GGS-00734", hint=hint)


def _name(batch: int) -> str:
    return f"{batch:012d}.json"


def _encoded(commit: LakeCommit, form: TableForm, writer: str) -> bytes:
    """A commit as JSON. ``writer``: different for each process, so that a process recognizes a commit as its own."""
    said = {
        "batch": commit.batch,
        "seqno": commit.position.seqno,
        "rba": commit.position.rba,
        "csn": commit.csn,
        "xid": commit.xid,
        "commit_time": commit.commit_time,
        "rows": commit.rows,
        "tables": dict(commit.tables),
        "trail": commit.trail,
        "form": form,
        "writer": writer,
    }
    return json.dumps(said).encode()


def _decoded(data: bytes) -> tuple[TableForm, LakeCommit]:
    """The form and the commit. Raises ValueError, KeyError or TypeError if the data is not a commit."""
    said = read_json(data)
    place = TrailPosition(int(said["seqno"]), int(said["rba"]))
    tables = {str(name): int(version) for name, version in said["tables"].items()}
    form = TableForm(said.get("form", TableForm.PARQUET))
    number, rows = int(said["batch"]), int(said["rows"])
    last = said["csn"], said["xid"], int(said["commit_time"])
    return form, LakeCommit(number, place, *last, rows, tables, str(said.get("trail", "")))
