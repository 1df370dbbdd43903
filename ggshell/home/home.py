"""The home directory of a deployment and the paths in it, in GoldenGate's layout."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from ggshell.errors import DiskError, StoreError
from ggshell.home import checkpoint
from ggshell.home.checkpoint import Checkpoint, GroupKind
from ggshell.home.identity import ensure_identity, known_wallet

SUBDIRECTORIES = {
    "Parameter files": "dirprm",
    "Report files": "dirrpt",
    "Checkpoint files": "dirchk",
    "Process status files": "dirpcs",
    "SQL script files": "dirsql",
    "Database definitions files": "dirdef",
    "Extract data files": "dirdat",
    "Temporary files": "dirtmp",
    "Credential store files": "dircrd",
    "Masterkey wallet files": "dirwlt",
    "Dump files": "dirdmp",
}
_WALLET = "dirwlt"
_CLOSED = frozenset({"dircrd", _WALLET, "dirpcs"})
"""Folders that only the owner can open: secrets, and the control sockets of processes."""
_CHECKPOINT_ENDINGS = {
    GroupKind.EXTRACT: ".cpe",
    GroupKind.REPLICAT: ".cpr",
    GroupKind.PATH: ".cpd",
    GroupKind.RECVPATH: ".cpv",
}
_PROCESS_ENDINGS = {kind: ending.replace(".cp", ".pc") for kind, ending in _CHECKPOINT_ENDINGS.items()}


class GroupEntry(NamedTuple):
    """A group of the home: its checkpoint, or the error if the checkpoint cannot be read."""

    group: str
    type: GroupKind
    checkpoint: Checkpoint | None
    error: StoreError | None = None


class Home:
    """The paths of a home directory. Nothing is created until ``ensure`` is called."""

    by_hand = False
    """Whether the process was started from the command line with its own files, not by Manager."""

    def __init__(self, root: Path) -> None:
        absolute = root.absolute()
        # Two dots in it would make every file of the home look as if its name led out of the home.
        self.root = absolute.resolve() if ".." in absolute.parts else absolute

    @property
    def globals(self) -> Path:
        return self.root / "GLOBALS"

    @property
    def event_log(self) -> Path:
        return self.root / "ggserr.log"

    @property
    def manager(self) -> Path:
        return self.root / "dirpcs" / "MGR.pcm"

    @property
    def service(self) -> Path:
        """The process file of the service."""
        return self.root / "dirpcs" / "SERVICE.pcs"

    def ensure(self) -> None:
        """Create the missing folders and the home's identity. Raises DiskError, StoreError.

        If the home has lost its wallet, the wallet's folder is not created, so that a backup can be moved there.
        """
        lost = not (self.root / _WALLET).exists() and known_wallet(self.root)
        self.create_subdirectories(frozenset({_WALLET}) if lost else frozenset())

    def create_subdirectories(self, without: frozenset[str] = frozenset()) -> list[tuple[str, Path, bool]]:
        """Create the folders; return (label, path, whether it is new) for each. Raises DiskError, StoreError."""
        made = []
        try:
            for label, name in [*SUBDIRECTORIES.items(), ("State files", "dirdb")]:
                path = self.root / name
                new = not path.is_dir()
                if new and name in without:
                    continue
                if new:
                    path.mkdir(parents=True, exist_ok=True)
                if name in _CLOSED and path.stat().st_mode & 0o077:
                    path.chmod(0o700)
                made.append((label, path, new))
        except OSError as error:
            raise DiskError(f"cannot create the home directory {self.root}: {error.strerror}") from error
        ensure_identity(self.root)
        return made[:-1]

    def resolve(self, text: str) -> Path:
        """Resolve a path from a script; a relative path is relative to the home directory."""
        path = Path(text.strip().strip("'\""))
        return path if path.is_absolute() else self.root / path

    def parameters(self, group: str) -> Path:
        """Return the group's parameter file: an existing file in any letter case, or else the lower-case name."""
        folder, wanted = self.root / "dirprm", f"{group.lower()}.prm"
        path = folder / wanted
        if not path.exists() and folder.is_dir():
            return next((entry for entry in sorted(folder.iterdir()) if entry.name.lower() == wanted), path)
        return path

    def report(self, group: str, age: int | None = None) -> Path:
        """Return the path of a report file; ``age`` 0 to 9 selects an older report."""
        return self.root / "dirrpt" / f"{group.upper()}{'' if age is None else age}.rpt"

    def discard(self, group: str) -> Path:
        return self.root / "dirrpt" / f"{group.upper()}.dsc"

    def checkpoint(self, group: str, kind: GroupKind) -> Path:
        return self.root / "dirchk" / f"{group.upper()}{_CHECKPOINT_ENDINGS[kind]}"

    def process(self, group: str, kind: GroupKind) -> Path:
        """Return the path of the process file, which holds the PID and the socket of the running process."""
        return self.root / "dirpcs" / f"{group.upper()}{_PROCESS_ENDINGS[kind]}"

    def socket(self, group: str, kind: GroupKind) -> Path:
        """Return the preferred path of the control socket; the process file contains the actual path."""
        path = self.process(group, kind)
        return path.with_name(path.name + ".sock")

    def lock(self, group: str, kind: GroupKind) -> Path:
        """Return the lock file that the group's process holds while it runs."""
        return self.root / "dirpcs" / f".{group.upper()}.{kind.value.lower()}.lock"

    def lock_of_store(self, name: str) -> Path:
        """Return the lock file for changes of the credential store or the wallet."""
        return self.root / "dirdb" / f".{name}.lock"

    def output(self, group: str) -> Path:
        """Return the file for a process's standard output, which is empty unless the report cannot be written."""
        return self.root / "dirrpt" / f"{group.upper()}.out"

    def known(self, group: str, kind: GroupKind) -> Path:
        """Return the path of an empty file that exists from ADD to DELETE of a group.

        It distinguishes a group whose checkpoint file is lost from one that never existed.
        """
        return self.root / "dirdb" / "groups" / self.checkpoint(group, kind).name

    def mark_known(self, group: str, kind: GroupKind) -> None:
        """Create the file by which the home knows a group; in a home without such files, those of all groups.

        Raises StoreError.
        """
        path = self.known(group, kind)
        try:
            groups = [(group, kind)] if path.parent.is_dir() else [*self.group_names(), (group, kind)]
            path.parent.mkdir(parents=True, exist_ok=True)
            for each in groups:
                self.known(*each).touch(mode=0o600)
        except OSError as error:
            raise StoreError(
                f"cannot write {path}: {error.strerror}", hint="free space, then repeat the command"
            ) from error

    def group_names(self) -> list[tuple[str, GroupKind]]:
        """Return every group of the home, Extracts first, from the existing and the expected checkpoint files.

        Raises StoreError if a folder cannot be read.
        """
        names = sorted({*_listed(self.root / "dirchk"), *_listed(self.root / "dirdb" / "groups")})
        return [
            (name.removesuffix(ending), kind)
            for kind, ending in _CHECKPOINT_ENDINGS.items()
            for name in names
            if name.endswith(ending) and not name.startswith(".")
        ]

    def groups(self) -> list[GroupEntry]:
        """Return every group with its checkpoint; a damaged checkpoint affects only its own group."""
        return [self.group(group, kind) for group, kind in self.group_names()]

    def group(self, group: str, kind: GroupKind) -> GroupEntry:
        """Return a group with its checkpoint, or with the error if that cannot be read."""
        return _entry(group, kind, self.checkpoint(group, kind))


def _listed(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names only, for speed: INFO ALL starts here
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"cannot read {folder}: {error.strerror}") from error


def _entry(group: str, kind: GroupKind, path: Path) -> GroupEntry:
    try:
        return GroupEntry(group, kind, checkpoint.load(path))
    except StoreError as error:
        return GroupEntry(group, kind, None, error)
