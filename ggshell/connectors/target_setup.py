"""What a connector needs to connect a Replicat to its target, and what it returns for a group with several appliers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from ggshell.clock import Clock
from ggshell.home.checkpoint import ReplicatKind
from ggshell.pipeline.apply.target import NO_LIMITS, PLAIN_SESSION, BatchLimits, CheckpointRow, SessionOptions
from ggshell.pipeline.apply.watermarks import WatermarkState
from ggshell.types import TableName


@dataclass(frozen=True, slots=True)
class TargetSetup:
    """One connection to a target.

    ``group``: the group, or the name of one of its threads, which has its own row in the checkpoint table. ``table``: the
    checkpoint table, None for NODBCHECKPOINT. ``begin``: the first checkpoint row, used if the table has none. ``key``: the
    key of the row. ``has_row``: the table must have the row already. ``limits``: BATCHSQL. ``options``: DBOPTIONS.
    ``max_operations``: MAXTRANSOPS. ``threads``: names and keys of the rows that threads of a coordinated Replicat may have
    left, for a group of another kind that has not run yet.
    """

    login: str
    group: str
    home: Path
    kind: ReplicatKind
    table: TableName | None
    begin: CheckpointRow
    key: int
    clock: Clock
    has_row: bool = False
    limits: BatchLimits = NO_LIMITS
    options: SessionOptions = PLAIN_SESSION
    max_operations: int | None = None
    threads: tuple[tuple[str, int], ...] = ()


@runtime_checkable
class Watermarks(Protocol):
    """What a parallel or coordinated Replicat asks of the group's own connection, which applies nothing itself."""

    def start(self) -> tuple[CheckpointRow, list[str], list[int]]:
        """Wait for appliers of earlier runs; return the group's row, the ids applied above it, and the rows with these ids.

        Raises ConflictError if such an applier does not end.
        """
        ...

    def save(self, state: WatermarkState) -> None:
        """Move the group's row, and remove the ids that it has passed, in one transaction."""
        ...

    def names_gone(self) -> bool:
        """Whether the rows with ids of applied transactions, which an earlier run had, no longer exist."""
        ...

    def forget_threads(self, keys: Mapping[str, int]) -> None:
        """Remove rows that threads, given by their names and keys, have left: the group's row is new."""
        ...

    def thread_rows(self, keys: Mapping[str, int]) -> Mapping[str, CheckpointRow | None]:
        """Return the rows of threads, given by their names and keys; None for one that has no row."""
        ...
