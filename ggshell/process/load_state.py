"""How far an initial load came: kept in its checkpoint, shown by INFO and STATUS."""

from __future__ import annotations

from typing import NamedTuple

from ggshell.store.checkpoint import Checkpoint

OPTION = "load"


class LoadState(NamedTuple):
    """How far a load came, as the checkpoint's options keep it; ``file``: the trail file in which it begins; ``about``: how
    many rows the present table has, as far as the database's statistics know."""

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

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> LoadState | None:
        """What a checkpoint says of its last load; None before the first."""
        kept = checkpoint.options.get(OPTION)
        return cls(**kept) if kept else None

    @property
    def words(self) -> str:
        """For STATUS and INFO."""
        if self.complete:
            return f"Loaded {self.all_rows} rows of {self.tables} table{'s'[: self.tables != 1]}"
        if not self.csn:
            return "Waiting for the snapshot: transactions that write must end first"
        about = f" of about {self.about}" if self.about > self.rows else ""
        return f"Loading {self.table}: row {self.rows}{about}, table {self.done + 1} of {self.tables}"
