"""The progress of an initial load: stored in its checkpoint, shown by INFO and STATUS."""

from __future__ import annotations

from typing import NamedTuple

from ggshell.home.checkpoint import Checkpoint
from ggshell.plurals import counted
from ggshell.progress_text import progress_text


class LoadState(NamedTuple):
    """The progress of a load, as stored in the checkpoint's options.

    ``file``: the trail file in which the load begins. ``about``: the approximate number of rows of the current table.
    ``seconds``: for how long this table has been loading. ``begins``: for each trail the file in which the load begins; if
    the load was interrupted, the next one removes the files from there on.
    """

    csn: str = ""
    time: int = 0
    tables: int = 0
    done: int = 0
    table: str = ""
    rows: int = 0
    about: int = 0
    all_rows: int = 0
    file: str = ""
    complete: bool = False
    seconds: float = 0.0
    begins: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> LoadState | None:
        """Return the state of the last load in a checkpoint, or None before the first."""
        kept = checkpoint.options.load
        return cls(**kept) if kept else None

    @property
    def words(self) -> str:
        """The progress as text, for STATUS and INFO."""
        if self.complete:
            return f"Loaded {counted(self.all_rows, 'row')} of {counted(self.tables, 'table')}"
        if not self.csn:
            return "Waiting for the snapshot: transactions that write must end first"
        place = f"table {min(self.done + 1, self.tables)} of {self.tables}"
        if not self.table:
            return f"Loading {place}"
        progress = progress_text(self.rows, self.about, "rows", self.seconds, estimated=True)
        return f"Loading {self.table}, {place}: {progress}"
