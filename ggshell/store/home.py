"""The home directory: where everything of a deployment lies, as GoldenGate lays it out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from ggshell.errors import DiskError, StoreError
from ggshell.store import checkpoint
from ggshell.store.checkpoint import Checkpoint, GroupType

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
_CLOSED = frozenset({"dircrd", "dirwlt", "dirpcs"})
"""Folders that only the owner may open: secrets, and the sockets that processes obey."""
_CHECKPOINT_ENDINGS = {GroupType.EXTRACT: ".cpe", GroupType.REPLICAT: ".cpr", GroupType.PATH: ".cpd"}
_PROCESS_ENDINGS = {GroupType.EXTRACT: ".pce", GroupType.REPLICAT: ".pcr", GroupType.PATH: ".pcd"}


class GroupEntry(NamedTuple):
    """A group found in the home: its checkpoint, or why that cannot be read."""

    group: str
    type: GroupType
    checkpoint: Checkpoint | None
    error: StoreError | None = None


class Home:
    """Paths of a home directory.  Nothing is made until ``ensure``."""

    by_hand = False
    """Whether a process was started with files of its own on the command line, not by Manager."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()

    @property
    def globals(self) -> Path:
        return self.root / "GLOBALS"

    @property
    def event_log(self) -> Path:
        return self.root / "ggserr.log"

    @property
    def catalog(self) -> Path:
        return self.root / "dirdb" / "catalog.duckdb"

    @property
    def manager(self) -> Path:
        return self.root / "dirpcs" / "MGR.pcm"

    def ensure(self) -> None:
        """Make the folders that lack.  Raises DiskError."""
        self.create_subdirectories()

    def create_subdirectories(self) -> list[tuple[str, Path, bool]]:
        """Make the folders; (label, path, whether it was made now) of each.  Raises DiskError."""
        made = []
        try:
            for label, name in [*SUBDIRECTORIES.items(), ("Catalog", "dirdb")]:
                path = self.root / name
                new = not path.is_dir()
                if new:
                    path.mkdir(parents=True, exist_ok=True)
                if name in _CLOSED and path.stat().st_mode & 0o077:
                    path.chmod(0o700)
                made.append((label, path, new))
        except OSError as error:
            raise DiskError(f"cannot make the home directory {self.root}: {error.strerror}") from error
        return made[:-1]

    def resolve(self, text: str) -> Path:
        """A path as a script writes it: relative ones count from the home."""
        path = Path(text.strip().strip("'\""))
        return path if path.is_absolute() else self.root / path

    def parameters(self, group: str) -> Path:
        """The group's parameter file; an existing one of any case, else the lower-case name."""
        folder, wanted = self.root / "dirprm", f"{group.lower()}.prm"
        path = folder / wanted
        if not path.exists() and folder.is_dir():
            return next((entry for entry in sorted(folder.iterdir()) if entry.name.lower() == wanted), path)
        return path

    def report(self, group: str, age: int | None = None) -> Path:
        """A report file; ``age`` 0 to 9 are older ones."""
        return self.root / "dirrpt" / f"{group.upper()}{'' if age is None else age}.rpt"

    def discard(self, group: str) -> Path:
        return self.root / "dirrpt" / f"{group.upper()}.dsc"

    def checkpoint(self, group: str, kind: GroupType) -> Path:
        return self.root / "dirchk" / f"{group.upper()}{_CHECKPOINT_ENDINGS[kind]}"

    def process(self, group: str, kind: GroupType) -> Path:
        """The process file: pid and socket of the running process."""
        return self.root / "dirpcs" / f"{group.upper()}{_PROCESS_ENDINGS[kind]}"

    def socket(self, group: str, kind: GroupType) -> Path:
        """Where a process would like its control socket; the process file says where it is."""
        path = self.process(group, kind)
        return path.with_name(path.name + ".sock")

    def lock(self, group: str, kind: GroupType) -> Path:
        """What the process of a group holds for its life."""
        return self.root / "dirpcs" / f".{group.upper()}.{kind.value.lower()}.lock"

    def output(self, group: str) -> Path:
        """What a process prints beside its report: nothing, unless it cannot even write that."""
        return self.root / "dirrpt" / f"{group.upper()}.out"

    def group_names(self) -> list[tuple[str, GroupType]]:
        """Every group of the home, Extracts first, by the names of the checkpoint files alone.

        Raises StoreError when the folder cannot be read.
        """
        folder = self.root / "dirchk"
        try:
            names = sorted(os.listdir(folder))  # noqa: PTH208 - bare names: INFO ALL begins here
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"cannot read {folder}: {error.strerror}") from error
        return [
            (name.removesuffix(ending), kind)
            for kind, ending in _CHECKPOINT_ENDINGS.items()
            for name in names
            if name.endswith(ending) and not name.startswith(".")
        ]

    def groups(self) -> list[GroupEntry]:
        """The same with their checkpoints; a damaged one hides only its own group's facts."""
        return [_entry(group, kind, self.checkpoint(group, kind)) for group, kind in self.group_names()]


def _entry(group: str, kind: GroupType, path: Path) -> GroupEntry:
    try:
        return GroupEntry(group, kind, checkpoint.load(path))
    except StoreError as error:
        return GroupEntry(group, kind, None, error)
