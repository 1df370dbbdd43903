"""The names of trails and trail files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from ggshell.errors import UsageError
from ggshell.types import TrailPosition

PREFIX_LENGTH = 2
"""The characters of a trail name, without its folder."""
DIGITS = 9
LAST_FILE = 10**DIGITS - 1
"""The largest sequence number of a trail file."""
_FILE = re.compile(r"(..)(\d{9}|\d{6})")


class TrailName(NamedTuple):
    """The name of a trail: a folder and two characters; file names add a sequence number of 9 digits (older files: 6)."""

    folder: Path
    prefix: str

    @classmethod
    def parse(cls, text: str, home: Path) -> TrailName:
        """Parse a name such as ``./dirdat/ea``.

        Relative paths are relative to the home directory, and a backslash is read as a slash. Raises UsageError if the
        name does not have two characters.
        """
        path = Path(text.strip().strip("'\"").replace("\\", "/"))
        if len(path.name) != PREFIX_LENGTH:
            raise UsageError(
                f"{text} is not a valid trail name: it must have two characters", hint="use, for example, ./dirdat/ea"
            )
        if not path.is_absolute():
            path = home / path
        return cls(path.parent, path.name)

    @property
    def real(self) -> TrailName:
        """The trail with its folder resolved: two such names are equal if they name the same trail."""
        return self._replace(folder=self.folder.resolve())

    @classmethod
    def of_file(cls, path: Path) -> tuple[TrailName, int] | None:
        """Return the trail and the sequence number of a trail file, from its name; None if the name is not a trail file's."""
        match = _FILE.fullmatch(path.name)
        return (cls(path.parent, match[1]), int(match[2])) if match else None

    def file(self, seqno: int) -> Path:
        """Return the path of a file by sequence number: the 9-digit name, or the 6-digit one if only that exists."""
        path = self.folder / f"{self.prefix}{seqno:0{DIGITS}d}"
        if not path.exists():
            older = self.folder / f"{self.prefix}{seqno:06d}"
            if older.exists():
                return older
        return path

    def sequences(self) -> list[int]:
        """Return the existing sequence numbers, ascending."""
        pattern = re.compile(re.escape(self.prefix) + r"(\d{9}|\d{6})")
        if not self.folder.is_dir():
            return []
        found = (pattern.fullmatch(entry.name) for entry in self.folder.iterdir())
        return sorted({int(match[1]) for match in found if match})

    @property
    def beginning(self) -> TrailPosition:
        """The begin of the first existing file, or of file 0."""
        return TrailPosition(next(iter(self.sequences()), 0), 0)

    def unfinished(self) -> Path:
        """Return the path of the next file while its header is being written."""
        return self.folder / f".{self.prefix}.next"

    def __str__(self) -> str:
        return str(self.folder / self.prefix)


def index_path(file: Path) -> Path:
    """Return the path of the index of a trail file (``file_index``)."""
    return file.with_name(f".{file.name}.index")
