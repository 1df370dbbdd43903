"""The targets of a parallel or coordinated Replicat: its appliers, and the connection that moves the group's row."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from ggshell.connectors.pipelined_target import PipelinedTarget, Step
from ggshell.connectors.target_setup import TargetSetup
from ggshell.errors import ApplyError, ConnectionLostError, DatabaseError, ParameterError
from ggshell.home.checkpoint import ReplicatKind
from ggshell.pipeline.apply.applier import Turns
from ggshell.pipeline.apply.checkpoint_table import applied_by_appliers, applied_by_threads, id_parts
from ggshell.pipeline.apply.target import CheckpointRow, Refusal
from ggshell.pipeline.apply.watermarks import WatermarkState
from ggshell.types import TableName

_NO_TABLE_HINT: Final = "ADD REPLICAT …, CHECKPOINTTABLE …"
_Target = TypeVar("_Target", bound="PipelinedTarget[Any]")


class AppliedByTurns(PipelinedTarget[Step]):
    """The connection of one applier. ``numbers`` supplies row numbers of the transaction table, shared by all appliers."""

    _number: int
    _numbers: Iterator[int]
    _turns: Turns | None

    def _take_part(self, number: int, numbers: Iterator[int], turns: Turns | None) -> None:
        """Set what an applier knows of the others, before it connects."""
        self._number = number
        self._numbers = numbers
        self._turns = turns
        self._ticket: int | None = None
        self._named: deque[tuple[Sequence[str], list[int]]] = deque()
        self._told = 0

    def take_turn(self, ticket: int | None) -> None:
        self._ticket = ticket

    def commit(self, row: CheckpointRow, ids: Sequence[str] = ()) -> Refusal | None:
        """Commit. When commits keep their order, the rows are sent now and the commit when its turn has come."""
        if self._turns is not None and self._ticket is not None:
            refused = (self._push() if self._steps else None) or self._collect()
            if refused is not None:
                return refused
            if not self._turns.wait(self._ticket):
                raise ConnectionLostError("another applier has failed")
        self._named.append((ids, []))
        return super().commit(row, ids)

    def committed(self) -> tuple[list[str], list[int]]:
        """The ids and the transaction-table rows of the commits that were confirmed since the last call."""
        ids: list[str] = []
        sequences: list[int] = []
        while self._told < self.confirmed:
            self._told += 1
            found, rows = self._named.popleft()
            ids += found
            sequences += rows
        return ids, sequences

    def rollback(self) -> None:
        super().rollback()  # type: ignore[safe-super]  # the target of the database, which follows in the order of classes
        while len(self._named) > self.confirmed - self._told:
            self._named.pop()

    def _name(self, ids: Sequence[str]) -> Iterator[tuple[int, str]]:
        """The numbers of the rows of the transaction table that name the commit's transactions, and their texts."""
        for part in id_parts(ids):
            sequence = next(self._numbers)
            self._named[-1][1].append(sequence)
            yield sequence, part

    def _prepare_row(self, table: TableName) -> None:
        self._require_tables(table)

    def _require_tables(self, table: TableName) -> None:
        self._tables.require_both(table)


class WatermarkedTarget(PipelinedTarget[Step]):
    """The connection that moves the group's row. It applies nothing itself."""

    def start(self) -> tuple[CheckpointRow, list[str], list[int]]:
        """Wait for appliers of earlier runs, then return the row, the ids applied above it, and the rows that name them.

        Raises ConflictError when such an applier does not end.
        """
        table, tables = self._checkpoint_table, self._tables
        self.await_appliers()
        tables.names_begin(table, self._group, self._key)
        row = self.checkpoint() or self._begin
        if not self.found:  # the row is new, so names left by an older row are below it
            tables.forget_names(table, self._group, self._key)
        named = tables.named(table, self._group, self._key)
        ids = dict.fromkeys(xid for _, text in named for xid in text.split(","))
        return row, list(ids), [sequence for sequence, _ in named]

    def names_gone(self) -> bool:
        """Whether the rows that an earlier run of the group had in the transaction table were deleted."""
        return not self._tables.has_names(self._checkpoint_table, self._group, self._key)

    def forget_threads(self, keys: Mapping[str, int]) -> None:
        """Remove rows that threads, given by their names and keys, have left: the group's row is new."""
        table = self._checkpoint_table
        for name in self.threads_above(None, keys):
            self._tables.cleanup(table, name, keys[name])

    def thread_rows(self, keys: Mapping[str, int]) -> dict[str, CheckpointRow | None]:
        """The rows of threads, given by their names and keys; None for one that has no row."""
        table = self._checkpoint_table
        return {name: self._tables.read(table, name, key) for name, key in keys.items()}

    def save(self, state: WatermarkState) -> None:
        """Move the row and remove the names that it has passed, in one transaction."""
        table = self._checkpoint_table
        try:
            self._tables.advance(table, self._group, self._key, state)
        except DatabaseError as error:
            if not isinstance(error, ConnectionLostError):
                self._require_tables(table)
            raise
        self._commits += 1

    @property
    def _checkpoint_table(self) -> TableName:
        if self._table is None:
            raise ApplyError("a parallel Replicat requires a checkpoint table", hint=_NO_TABLE_HINT)
        return self._table


def require_checkpoint_table(setup: TargetSetup) -> TableName:
    """Return the checkpoint table of a Replicat with several appliers. Raises ParameterError without one."""
    if setup.table is None:
        raise ParameterError(f"a {setup.kind.lower()} Replicat requires a checkpoint table", hint=_NO_TABLE_HINT)
    return setup.table


def without_appliers(opened: _Target, setup: TargetSetup) -> _Target:
    """Check that no Replicat of another kind has left applied transactions that this one would apply again.

    Raises StateError, and closes the target.
    """
    try:
        if setup.kind is not ReplicatKind.PARALLEL:
            _require_no_appliers(opened, setup)
        _require_no_threads(opened, setup)
    except BaseException:
        opened.close()
        raise
    return opened


def _require_no_threads(target: PipelinedTarget[Any], setup: TargetSetup) -> None:
    row = target.checkpoint() if target.found and setup.threads else None
    ahead = target.threads_above(row.csn, dict(setup.threads)) if row is not None else []
    if ahead:
        raise applied_by_threads(ahead, setup.group, setup.kind, setup.table)


def _require_no_appliers(target: PipelinedTarget[Any], setup: TargetSetup) -> None:
    target.await_appliers()
    above = target.applied_above()
    if above:
        raise applied_by_appliers(len(above), setup.group, setup.kind, setup.table)
