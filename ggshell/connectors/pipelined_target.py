"""A target to which statements are sent without waiting for each result: the rules that its databases have in common.

The statements of a group are collected up to a limit and then sent, after the results of the previous ones were taken. COMMIT
is sent with the last of them. If some must find a given number of rows, it is owed until their results have been checked,
and is sent with the next group.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Final, Generic, Protocol, TypeVar

from ggshell.connectors.applier_checkpoint_tables import ApplierCheckpointTables
from ggshell.connectors.checkpointed_target import CheckpointedTarget
from ggshell.pipeline.apply.checkpoint_table import row_gone
from ggshell.pipeline.apply.target import BatchLimits, CheckpointRow, Refusal
from ggshell.types import Csn, TableName

STREAM_ROWS: Final = 4000
"""The rows of an unfinished group that are sent without waiting for the group's commit."""
STREAM_BYTES: Final = 4 << 20
SAVEPOINT: Final = "ggs_mark"
CHECKPOINT_GONE: Final = "GGS01"
"""The SQLSTATE of the refusal that reports that the group's checkpoint row no longer exists."""


class PipelinedStep(Protocol):
    """A statement. ``affects``: the rows that it must find, None if any number will do."""

    @property
    def affects(self) -> int | None: ...


Step = TypeVar("Step", bound=PipelinedStep)
_Sent_contra = TypeVar("_Sent_contra", bound=PipelinedStep, contravariant=True)


class Pipeline(Protocol[_Sent_contra]):
    """A connection over which steps are sent."""

    commits: int
    """The commits that have succeeded."""

    def send(self, steps: Sequence[_Sent_contra]) -> Refusal | None:
        """Send steps. Everything sent before must be answered."""
        ...

    def collect(self) -> Refusal | None:
        """Take the results of everything sent, and return the first refusal."""
        ...


class PipelinedTarget(CheckpointedTarget, Generic[Step]):
    """A connection that applies the rows of one group.

    ``_begun``: a transaction is open; ``_owed``: its COMMIT is not sent yet; ``_counted``: some of its statements must find
    their rows.
    """

    _begin_steps: Sequence[Step]
    """The statements that begin a transaction."""
    _commit_step: Step
    """The statement that commits."""
    _wire: Pipeline[Step]
    _begun: bool
    _owed: bool
    _counted: bool
    _has_savepoint: bool

    def __init__(
        self,
        group: str,
        home: str,
        table: TableName | None,
        key: int,
        begin: CheckpointRow,
        *,
        has_row: bool,
        limits: BatchLimits,
    ) -> None:
        super().__init__(group, home, table, key, begin, has_row=has_row)
        self._limits = limits
        self._gone = Refusal(
            f"the row of {group.upper()} in checkpoint table {table} no longer exists", CHECKPOINT_GONE
        )
        self._commits = 0
        self._forget()
        self._no_transaction()

    @property
    @abstractmethod
    def _tables(self) -> ApplierCheckpointTables: ...

    @property
    def confirmed(self) -> int:
        return self._commits + self._wire.commits

    def applied_above(self) -> list[str]:
        """The transactions that appliers of a parallel Replicat have applied beyond the group's checkpoint row."""
        row = self.checkpoint()
        if self._table is None or row is None:
            return []
        return self._tables.applied_above(self._table, self._group, self._key, row.csn)

    def threads_above(self, low: Csn | None, keys: Mapping[str, int]) -> list[str]:
        """The threads, given with the keys of their rows, whose rows are above a CSN; None: all that have a row."""
        if self._table is None:
            return []
        rows = [(name, csn) for name, key, csn, _ in self._tables.groups(self._table) if keys.get(name) == key]
        return [name for name, csn in rows if low is None or (csn and Csn.parse(csn) > low)]

    @abstractmethod
    def await_appliers(self) -> None:
        """Wait until no applier of the group's parallel Replicat is left. Raises ConflictError when one does not end."""

    def commit(self, row: CheckpointRow, ids: Sequence[str] = ()) -> Refusal | None:
        """Write the checkpoint row and commit.

        When no step has to be checked for the number of rows it changed, the COMMIT is sent with the rows. Otherwise it
        is sent after the results have been checked.
        """
        counted = self._counted or any(step.affects is not None for step in self._steps)
        self._steps += self._last_steps(row, ids)
        if not counted:
            self._steps.append(self._commit_step)
        refused = self._push()
        if refused is None:
            self._owed, self._begun, self._counted = counted, counted, False
            self._has_savepoint = self._has_savepoint and counted
            self._next_group()
        return refused

    @abstractmethod
    def _last_steps(self, row: CheckpointRow, ids: Sequence[str]) -> Sequence[Step]:
        """The steps of a group before its COMMIT: they write the position."""

    def _next_group(self) -> None:
        """Called when everything of a group is sent."""

    def await_answers(self) -> Refusal | None:
        refused = (self._push() if self._steps else None) or self._collect()
        if refused is None and self._owed:
            self._owed = self._begun = self._has_savepoint = False
            refused = self._refused(self._send([self._commit_step])) or self._collect()
        return refused

    @abstractmethod
    def rollback(self) -> None: ...

    def reconnect(self) -> None:
        """Close the connection and open a new one. Raises DatabaseError, ConnectionLostError, ConflictError."""
        self._commits = self.confirmed
        self.close()
        self._connect()

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def _connect(self) -> None: ...

    @property
    def _program(self) -> str:
        """The name of the connection's program."""
        return f"ggshell replicat {self._group.upper()}"

    def _gathered(self, steps: Sequence[Step], rows: int, size: int) -> Refusal | None:
        """Add the steps of rows, and send the collected steps when they reach a limit. ``size``: in bytes."""
        self._steps += steps
        self._rows += rows
        self._bytes += size
        limits = self._limits
        enough = self._rows >= (limits.queue_rows or STREAM_ROWS) or self._bytes >= (limits.queue_bytes or STREAM_BYTES)
        enough = enough or (limits.queue_batches is not None and len(self._steps) >= limits.queue_batches)
        return self._push() if enough else None

    def _push(self) -> Refusal | None:
        """Send the collected steps after taking the results of the previous ones."""
        refused = self._collect()
        if refused is not None:
            return refused
        steps: list[Step] = []
        if self._owed:
            steps.append(self._commit_step)
            self._begun = self._owed = self._has_savepoint = False
        if not self._begun:
            steps += self._begin_steps
            self._begun = True
            self._started()
        self._counted = self._counted or any(step.affects is not None for step in self._steps)
        steps += self._steps
        self._forget()
        return self._refused(self._send(steps))

    def _started(self) -> None:
        """Called when a transaction begins."""

    def _send(self, steps: Sequence[Step]) -> Refusal | None:
        return self._wire.send(steps)

    def _collect(self) -> Refusal | None:
        return self._refused(self._wire.collect())

    def _forget(self) -> None:
        """Drop what is collected and not sent."""
        self._steps: list[Step] = []
        self._rows = self._bytes = 0

    def _no_transaction(self) -> None:
        """Note that no transaction is open."""
        self._begun = self._owed = self._counted = self._has_savepoint = False

    def _refused(self, refused: Refusal | None) -> Refusal | None:
        """Handle a refusal. Raises RowGoneError if the group's row no longer exists, and TargetChangedError."""
        if refused is None:
            return None
        self._doubt(refused)
        if refused.state == CHECKPOINT_GONE:
            self.rollback()
            if self._table is not None:
                self._require_tables(self._table)
            raise row_gone(self._group, self._table)
        return refused

    @abstractmethod
    def _doubt(self, refused: Refusal) -> None:
        """Note that a changed table may have caused a refusal. Raises TargetChangedError if that is certain."""
