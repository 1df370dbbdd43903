"""The discard file: the operations that a target refused, for a person to read."""

from __future__ import annotations

from pathlib import Path

from ggshell.apply.target import TableMapping
from ggshell.clock import Clock, local_text
from ggshell.errors import DiskError
from ggshell.record import IoType
from ggshell.types import TrailPosition


class DiscardFile:
    """DISCARDFILE of a Replicat; opened with the first operation that it takes."""

    def __init__(self, path: Path, group: str, clock: Clock, *, append: bool = True, megabytes: int = 50) -> None:
        self.path = path
        self._group = group
        self._clock = clock
        self._append = append
        self._limit = megabytes << 20

    def write(
        self, mapping: TableMapping, io_type: IoType, place: TrailPosition, values: list[tuple[str, str]], error: str
    ) -> None:
        """Append one operation.  Raises DiskError when the file cannot be written or is full."""
        word = {IoType.INSERT: "insert", IoType.DELETE: "delete"}.get(io_type, "update")
        lines = [
            error,
            f"Operation failed at seqno {place.seqno} rba {place.rba}",
            f"Problem replicating {mapping.source.name} to {mapping.target.name}",
            f"Error occurred with {word} record (target format)...",
            "*",
            *(f"{name} = {value}" for name, value in values),
            "*",
            "",
        ]
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            new = not self.path.exists() or not self._append
            if not new and self.path.stat().st_size > self._limit:
                raise DiskError(f"discard file {self.path} is full", code="OGG-01172", hint="move it away")
            with self.path.open("w" if new else "a") as file:
                if new:
                    opened = local_text(self._clock.now())
                    file.write(
                        f"ggshell Delivery process started, group {self._group} discard file opened: {opened}\n\n"
                    )
                file.write("\n".join(lines))
            self._append = True
        except OSError as failure:
            raise DiskError(f"cannot write discard file {self.path}: {failure.strerror}") from failure
