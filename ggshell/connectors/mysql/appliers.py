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
from ggshell.connectors.mysql.session import execute
from ggshell.connectors.mysql.statements import quote_table
from ggshell.connectors.mysql.target import MysqlTarget
from ggshell.connectors.target_setup import TargetSetup
from ggshell.errors import ApplyError, ConnectionLostError, ParameterError
from ggshell.home.checkpoint import ReplicatKind
from ggshell.pipeline.apply.applier import Turns
from ggshell.pipeline.apply.checkpoint_table import (
    Columns,
    applied_by_appliers,
    fitting_ids,
    id_parts,
    row_gone,
    to_columns,
    transaction_table,
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
        checkpoint_sql.require_both(self._connection, table)

    @property
    def _lock(self) -> str:
        return checkpoint_sql.applier_lock(self._key, self._number)


class MysqlWatermarkTarget(MysqlTarget):
    """The connection that moves the group's row. It applies nothing itself."""

    def start(self) -> tuple[CheckpointRow, list[str], list[int]]:
        """Wait for appliers of earlier runs, then return the row, the ids applied above it, and the rows that name them.

        Raises ConflictError when such an applier does not end.
        """
        connection, table = self._connection, self._checkpoint_table
        self.await_appliers()
        checkpoint_sql.names_begin(connection, table, self._group, self._key)
        row = self.checkpoint() or self._setup.begin
        if not self.found:  # the row is new, so names left by an older row are below it
            checkpoint_sql.forget_names(connection, table, self._group, self._key)
        found = execute(
            connection,
            f"SELECT log_cmplt_xids_seq, log_cmplt_xids FROM {quote_table(transaction_table(table))}"
            " WHERE group_name = %s AND group_key = %s AND log_cmplt_xids_seq > 0",
            [self._group.upper(), self._key],
        )
        named = [(int(sequence), str(text)) for sequence, text in found]
        ids = dict.fromkeys(xid for _, text in named for xid in text.split(","))
        return row, list(ids), [sequence for sequence, _ in named]

    def names_gone(self) -> bool:
        """Whether the rows that an earlier run of the group had in the transaction table are gone."""
        return not checkpoint_sql.has_names(self._connection, self._checkpoint_table, self._group, self._key)

    def threads_gone(self, keys: Mapping[str, int]) -> list[str]:
        """The names of those threads, given with their keys, that have no row."""
        table = self._checkpoint_table
        return [name for name, key in keys.items() if checkpoint_sql.read(self._connection, table, name, key) is None]

    def save(self, state: WatermarkState) -> None:
        """Move the row and remove the names that it has passed, in one transaction."""
        table, connection = self._checkpoint_table, self._connection
        low = state.low
        columns = to_columns(low._replace(same_csn=fitting_ids(low.same_csn, state.applied)))
        upper, last = state.high
        columns = columns._replace(
            log_csn=str(upper) if upper is not None else columns.log_csn, log_xid=last[:128] or None
        )
        sets = ", ".join(f"{name} = %s" for name in Columns._fields)
        where, mine = "WHERE group_name = %s AND group_key = %s", [self._group.upper(), self._key]
        with checkpoint_sql.transaction(connection):
            text = f"UPDATE {quote_table(table)} SET {sets}, last_update_ts = UTC_TIMESTAMP(6) {where}"
            execute(connection, text, [*columns, *mine])
            if int(execute(connection, "SELECT ROW_COUNT()")[0][0]) != 1:
                raise row_gone(self._group, table)
            if state.finished:
                beside = quote_table(transaction_table(table))
                text = f"DELETE FROM {beside} {where} AND log_cmplt_xids_seq IN %s"
                execute(connection, text, [*mine, list(state.finished)])
        self._commits += 1

    def _prepare_row(self, table: TableName) -> None:
        if self._setup.kind is ReplicatKind.PARALLEL:
            checkpoint_sql.require_both(self._connection, table)
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
