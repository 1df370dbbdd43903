"""MariaDB or MySQL as the target of a parallel or coordinated Replicat: appliers that commit concurrently.

An applier records the transactions that it applies in a row of the transaction table, in the same target transaction. One
more connection, which alone holds the group's lock, moves the row of the checkpoint table. Each applier holds a lock with its
own number, for which that connection waits at its start: after that, no applier of a killed process is still committing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ggshell.connectors.applier_target import (
    AppliedByTurns,
    WatermarkedTarget,
    require_checkpoint_table,
    without_appliers,
)
from ggshell.connectors.mysql import checkpoint_sql
from ggshell.connectors.mysql.apply_wire import ApplyStep
from ggshell.connectors.mysql.target import MysqlTarget
from ggshell.connectors.target_setup import TargetSetup
from ggshell.errors import ParameterError
from ggshell.home.checkpoint import ReplicatKind
from ggshell.pipeline.apply.applier import Turns
from ggshell.pipeline.apply.target import CheckpointRow
from ggshell.types import TableName


class MysqlApplierTarget(AppliedByTurns[ApplyStep], MysqlTarget):
    """The connection of one applier. ``numbers`` supplies row numbers of the transaction table, shared by all appliers."""

    def __init__(self, setup: TargetSetup, number: int, numbers: Iterator[int], turns: Turns | None = None) -> None:
        require_checkpoint_table(setup)
        if number >= checkpoint_sql.MOST_APPLIERS:
            raise ParameterError(
                f"MariaDB and MySQL support up to {checkpoint_sql.MOST_APPLIERS} appliers", hint="APPLY_PARALLELISM"
            )
        self._take_part(number, numbers, turns)
        super().__init__(setup)

    def _position(self, table: TableName, row: CheckpointRow, ids: Sequence[str]) -> list[ApplyStep]:
        csn = str(row.csn)
        return [
            ApplyStep(
                checkpoint_sql.names_text(table, self._group, self._key, csn, sequence, part), on_failure=self._gone
            )
            for sequence, part in self._name(ids)
        ]

    @property
    def _lock(self) -> str:
        return checkpoint_sql.applier_lock(self._key, self._number)


class MysqlWatermarkTarget(WatermarkedTarget[ApplyStep], MysqlTarget):
    """The connection that moves the group's row. It applies nothing itself."""

    def _prepare_row(self, table: TableName) -> None:
        if self._setup.kind is ReplicatKind.PARALLEL:
            self._tables.require_both(table)
        super()._prepare_row(table)


def open_target(setup: TargetSetup) -> MysqlTarget:
    """Open the group's own connection. Raises ParameterError, ConflictError, DatabaseError."""
    if setup.options.suppress_triggers or setup.options.defer_constraints:
        raise ParameterError(
            "DBOPTIONS SUPPRESSTRIGGERS and DEFERREFCONST require a PostgreSQL target: MariaDB and MySQL have no such sessions",
            hint="remove DBOPTIONS from the parameter file, and drop the triggers of the target tables",
        )
    if setup.kind is ReplicatKind.CLASSIC:
        return without_appliers(MysqlTarget(setup), setup)
    require_checkpoint_table(setup)
    return without_appliers(MysqlWatermarkTarget(setup), setup)


def open_thread(setup: TargetSetup) -> MysqlTarget:
    """Open the connection of one thread of a coordinated Replicat."""
    return MysqlTarget(replace(setup, has_row=False))
