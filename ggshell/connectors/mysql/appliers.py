"""MariaDB or MySQL as the target of a parallel or coordinated Replicat: appliers that commit concurrently.

An applier records the transactions that it applies in a row of the transaction table, in the same target transaction. One
more connection, which alone holds the group's lock, moves the row of the checkpoint table. Each applier holds a lock with its
own number, for which that connection waits at its start: after that, no applier of a killed process is still committing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ggshell.connectors.mysql import checkpoint_sql
from ggshell.connectors.mysql.apply_wire import ApplyStep
from ggshell.connectors.mysql.target import MysqlTarget
from ggshell.connectors.target_setup import TargetSetup
from ggshell.errors import ApplyError, ConnectionLostError, ParameterError
from ggshell.home.checkpoint import ReplicatKind
from ggshell.pipeline.apply.applier import Turns
from ggshell.pipeline.apply.checkpoint_table import (
    applied_by_appliers,
    id_parts,
)
from ggshell.pipeline.apply.target import CheckpointRow, Refusal
from ggshell.pipeline.apply.watermarks import WatermarkState
from ggshell.types import TableName

_NO_TABLE_HINT: Final = "ADD REPLICAT …, CHECKPOINTTABLE …"


class MysqlApplierTarget(MysqlTarget):
    """The connection of one applier. ``numbers`` supplies row numbers of the transaction table, shared by all appliers."""

    def __init__(self, setup: TargetSetup, number: int, numbers: Iterator[int], turns: Turns | None = None) -> None:
        if setup.table is None:
            raise ParameterError("a parallel Replicat requires a checkpoint table", hint=_NO_TABLE_HINT)
        if number >= checkpoint_sql.MOST_APPLIERS:
            raise ParameterError(
                f"MariaDB and MySQL support up to {checkpoint_sql.MOST_APPLIERS} appliers", hint="APPLY_PARALLELISM"
            )
        self._number = number
        self._numbers = numbers
        self._turns = turns
        self._ticket: int | None = None
        self._named: deque[tuple[Sequence[str], list[int]]] = deque()
        self._returned = 0
        super().__init__(setup)

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
        while self._returned < self.confirmed:
            self._returned += 1
            found, rows = self._named.popleft()
            ids += found
            sequences += rows
        return ids, sequences

    def rollback(self) -> None:
        super().rollback()
        while len(self._named) > self.confirmed - self._returned:
            self._named.pop()

    def _position(self, table: TableName, row: CheckpointRow, ids: Sequence[str]) -> list[ApplyStep]:
        steps: list[ApplyStep] = []
        for part in id_parts(ids):
            sequence = next(self._numbers)
            self._named[-1][1].append(sequence)
            text = checkpoint_sql.names_text(table, self._group, self._key, str(row.csn), sequence, part)
            steps.append(ApplyStep(text, on_failure=self._gone))
        return steps

    def _prepare_row(self, table: TableName) -> None:
        self._require_tables(table)

    def _require_tables(self, table: TableName) -> None:
        self._tables.require_both(table)

    @property
    def _lock(self) -> str:
        return checkpoint_sql.applier_lock(self._key, self._number)


class MysqlWatermarkTarget(MysqlTarget):
    """The connection that moves the group's row. It applies nothing itself."""

    def start(self) -> tuple[CheckpointRow, list[str], list[int]]:
        """Wait for appliers of earlier runs, then return the row, the ids applied above it, and the rows that name them.

        Raises ConflictError when such an applier does not end.
        """
        table = self._checkpoint_table
        self.await_appliers()
        self._tables.names_begin(table, self._group, self._key)
        row = self.checkpoint() or self._setup.begin
        if not self.found:  # the row is new, so names left by an older row are below it
            self._tables.forget_names(table, self._group, self._key)
        named = self._tables.named(table, self._group, self._key)
        ids = dict.fromkeys(xid for _, text in named for xid in text.split(","))
        return row, list(ids), [sequence for sequence, _ in named]

    def names_gone(self) -> bool:
        """Whether the rows that an earlier run of the group had in the transaction table were deleted."""
        return not self._tables.has_names(self._checkpoint_table, self._group, self._key)

    def threads_gone(self, keys: Mapping[str, int]) -> list[str]:
        """The names of those threads, given with their keys, that have no row."""
        table = self._checkpoint_table
        return [name for name, key in keys.items() if self._tables.read(table, name, key) is None]

    def save(self, state: WatermarkState) -> None:
        """Move the row and remove the names that it has passed, in one transaction."""
        self._tables.advance(self._checkpoint_table, self._group, self._key, state)
        self._commits += 1

    def _prepare_row(self, table: TableName) -> None:
        if self._setup.kind is ReplicatKind.PARALLEL:
            self._tables.require_both(table)
        super()._prepare_row(table)

    @property
    def _checkpoint_table(self) -> TableName:
        if self._table is None:
            raise ApplyError("a parallel Replicat requires a checkpoint table", hint=_NO_TABLE_HINT)
        return self._table


def open_target(setup: TargetSetup) -> MysqlTarget:
    """Open the group's own connection. Raises ParameterError, ConflictError, DatabaseError."""
    if setup.options.suppress_triggers or setup.options.defer_constraints:
        raise ParameterError(
            "DBOPTIONS SUPPRESSTRIGGERS and DEFERREFCONST require a PostgreSQL target: MariaDB and MySQL have no such sessions",
            hint="remove DBOPTIONS from the parameter file, and drop the triggers of the target tables",
        )
    if setup.table is None and setup.kind is not ReplicatKind.CLASSIC:
        raise ParameterError(f"a {setup.kind.lower()} Replicat requires a checkpoint table", hint=_NO_TABLE_HINT)
    opened = (MysqlTarget if setup.kind is ReplicatKind.CLASSIC else MysqlWatermarkTarget)(setup)
    if setup.kind is not ReplicatKind.PARALLEL:
        try:
            _require_no_appliers(opened, setup)
        except BaseException:
            opened.close()
            raise
    return opened


def open_thread(setup: TargetSetup) -> MysqlTarget:
    """Open the connection of one thread of a coordinated Replicat."""
    return MysqlTarget(replace(setup, has_row=False))


def _require_no_appliers(target: MysqlTarget, setup: TargetSetup) -> None:
    """Check that no parallel Replicat has left applied transactions that this kind of Replicat would apply again.

    Raises StateError.
    """
    target.await_appliers()
    above = target.applied_above()
    if above:
        raise applied_by_appliers(len(above), setup.group, setup.kind, setup.table)
