"""Names of trails and of their files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from ggshell.errors import UsageError

DIGITS = 9


class TrailName(NamedTuple):
    """A trail: a folder and two characters; its files add a sequence number of 9 digits (older ones: 6)."""

    folder: Path
    prefix: str

    @classmethod
    def parse(cls, text: str, home: Path) -> TrailName:
        """Read ``./dirdat/ea``; a relative path counts from the home.  Raises UsageError unless the name has 2 characters."""
        path = Path(text.strip().strip("'\""))
        if len(path.name) != 2:
            raise UsageError(f"a trail's name has two characters: {text}", hint="for example ./dirdat/ea")
        if not path.is_absolute():
            path = home / path
        return cls(path.parent, path.name)

    def file(self, seqno: int) -> Path:
        """The file of a sequence number: the 9-digit name, or the 6-digit one where only that exists."""
        path = self.folder / f"{self.prefix}{seqno:0{DIGITS}d}"
        if not path.exists():
            older = self.folder / f"{self.prefix}{seqno:06d}"
            if older.exists():
                return older
        return path

    def sequences(self) -> list[int]:
        """The sequence numbers that exist, ascending."""
        pattern = re.compile(re.escape(self.prefix) + r"(\d{9}|\d{6})")
        if not self.folder.is_dir():
            return []
        found = (pattern.fullmatch(entry.name) for entry in self.folder.iterdir())
        return sorted({int(match[1]) for match in found if match})

    def __str__(self) -> str:
        return str(self.folder / self.prefix)
