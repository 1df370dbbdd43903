"""The discard file: the operations that a target refused, in readable form."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import NamedTuple

from ggshell.clock import Clock, local_text
from ggshell.errors import DiskError
from ggshell.types import TableName, TrailPosition

OLDEST = 9
"""The number of the oldest discard file that DISCARDROLLOVER keeps."""


class Discarded(NamedTuple):
    """A refused operation: its tables, type, place in the trail, columns before and after, and the refusal."""

    source: TableName
    target: TableName
    operation: str
    place: TrailPosition
    before: list[tuple[str, str]]
    after: list[tuple[str, str]]
    error: str


class DiscardFile:
    """The DISCARDFILE of a Replicat; it is opened when the first operation is written."""

    def __init__(self, path: Path, group: str, clock: Clock, *, append: bool = True, megabytes: int = 50) -> None:
        self.path = path
        self._group = group
        self._clock = clock
        self._append = append
        self._limit = megabytes << 20
        self._lock = threading.Lock()

    def write(self, discarded: Discarded) -> None:
        """Append one operation; thread-safe. Raises DiskError if the file cannot be written or is full."""
        with self._lock:
            self._write(discarded)

    def _write(self, discarded: Discarded) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            new = not self.path.exists() or not self._append
            text = layout(discarded)
            if not new and self.path.stat().st_size + len(text.encode()) > self._limit:
                raise DiskError(f"discard file {self.path} is full", code="OGG-01172", hint="move it away")
            with self.path.open("w" if new else "a", encoding="utf-8") as file:
                if new:
                    opened = local_text(self._clock.now())
                    file.write(
                        f"ggshell Delivery process started, group {self._group} discard file opened: {opened}\n\n"
                    )
                file.write(text)
            self._append = True
        except OSError as failure:
            raise DiskError(f"cannot write discard file {self.path}: {failure.strerror}") from failure

    def roll(self) -> None:
        """Roll the file over (DISCARDROLLOVER): it becomes number 0, older ones count up, number 9 is deleted.

        Raises DiskError."""
        try:
            if not self.path.exists():
                return
            for age in range(OLDEST - 1, -1, -1):
                if aged(self.path, age).exists():
                    aged(self.path, age).replace(aged(self.path, age + 1))
            self.path.replace(aged(self.path, 0))
        except OSError as failure:
            raise DiskError(f"cannot roll discard file {self.path}: {failure.strerror}") from failure


def aged(path: Path, age: int) -> Path:
    """The name of an older discard file: ``age`` is 0 for the last one that was rolled over, at most 9."""
    return path.with_name(f"{path.stem}{age}{path.suffix}")


def layout(discarded: Discarded) -> str:
    """Format an operation for the file: the refusal, the place, the tables, then the columns between two asterisks."""
    lines = [
        discarded.error,
        f"Operation failed at seqno {discarded.place.seqno} rba {discarded.place.rba}",
        f"Problem replicating {discarded.source} to {discarded.target}",
        f"Error occurred with {discarded.operation} record (target format)...",
        "*",
        *(f"{name} (before) = {value}" for name, value in discarded.before),
        *(f"{name} = {value}" for name, value in discarded.after),
        "*",
        "",
    ]
    return "\n".join(lines)
