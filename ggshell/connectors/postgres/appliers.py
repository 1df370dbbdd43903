"""PostgreSQL as the target of a parallel Replicat: appliers that commit concurrently, and the checkpoint row that follows.

An applier records the transactions that it applies in a row of the transaction table, in the same target transaction. One
more connection, which alone holds the group's lock, moves the row of the checkpoint table and deletes the rows of
finished transactions. Appliers share another lock, for which that connection waits at its start: after that, no applier of a
killed process is still committing.
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
from ggshell.connectors.postgres import session_locks, shapes
from ggshell.connectors.postgres.apply_wire import ApplyStep
from ggshell.connectors.postgres.target import PostgresTarget
from ggshell.connectors.target_setup import TargetSetup
from ggshell.home.checkpoint import ReplicatKind
from ggshell.pipeline.apply.applier import Turns
from ggshell.pipeline.apply.checkpoint_table import transaction_table
from ggshell.pipeline.apply.target import NO_LIMITS, PLAIN_SESSION, BatchLimits, CheckpointRow, SessionOptions
from ggshell.types import TableName, postgres_literal, quote_table


class ApplierTarget(AppliedByTurns[ApplyStep], PostgresTarget):
    """The connection of one applier. ``numbers`` supplies row numbers of the transaction table, shared by all appliers."""

    def __init__(
        self,
        conninfo: str,
        group: str,
        home: str,
        table: TableName,
        begin: CheckpointRow,
        *,
        number: int,
        numbers: Iterator[int],
        turns: Turns | None = None,
        limits: BatchLimits = NO_LIMITS,
        options: SessionOptions = PLAIN_SESSION,
        key: int | None = None,
    ) -> None:
        self._take_part(number, numbers, turns)
        super().__init__(conninfo, group, home, table, begin, limits=limits, options=options, key=key)

    def _position(
        self, table: TableName, row: CheckpointRow, ids: Sequence[str], touched: shapes.Shapes, *, literally: bool
    ) -> list[ApplyStep]:
        upper = str(row.csn)
        one = None if literally else shapes.only_typed(touched)
        steps = [] if one is not None and ids else shapes.checks(touched, prepared=not literally)
        for sequence, part in self._name(ids):
            values = [self._group.upper().encode(), b"%d" % self._key, upper.encode(), b"%d" % sequence, part.encode()]
            if literally:
                name, csn, found = map(postgres_literal, (self._group.upper(), upper, part))
                text = f"{name}, {self._key}, {csn}, {sequence}, {found}"
                steps.append(
                    ApplyStep(_INSERT.format(table=_transaction_table(table), values=text), on_failure=self._gone)
                )
            else:
                steps.append(self._naming(table, values, one))
        return steps

    def _naming(
        self, table: TableName, values: Sequence[bytes], one: tuple[str, shapes.TableShape] | None
    ) -> ApplyStep:
        """The step that records transactions. If possible, it also checks the one table that they touched."""
        text = _INSERT.format(table=_transaction_table(table), values=_MARKS)
        if one is None:
            return ApplyStep(text, values, on_failure=self._gone)
        return ApplyStep(
            f"{text} RETURNING {shapes.columns(*one)}", values, on_failure=self._gone, opening=shapes.opening(*one)
        )

    @property
    def _origin_name(self) -> str:
        return f"{self._group}_{self._number}"

    @property
    def _lock(self) -> str:
        return session_locks.applier_lock()


class WatermarkTarget(WatermarkedTarget[ApplyStep], PostgresTarget):
    """The connection that moves the group's row. It applies nothing itself."""

    def _require_tables(self, table: TableName) -> None:
        self._tables.require_both(table)


_MARKS = "$1, $2::bigint, $3, $4::integer, $5"
_INSERT = (
    "INSERT INTO {table} (group_name, group_key, log_cmplt_csn, log_cmplt_xids_seq, log_cmplt_xids) VALUES ({values})"
)


def open_target(setup: TargetSetup) -> PostgresTarget:
    """Open the group's own connection. Raises ParameterError, ConflictError, DatabaseError."""
    if setup.kind is ReplicatKind.CLASSIC:
        return without_appliers(_opened(PostgresTarget, setup), setup)
    require_checkpoint_table(setup)
    return without_appliers(_opened(WatermarkTarget, setup), setup)


def open_applier(setup: TargetSetup, number: int, rows: Iterator[int], turns: Turns | None) -> ApplierTarget:
    """Open the connection of one applier of a parallel Replicat."""
    return ApplierTarget(
        setup.login,
        setup.group,
        str(setup.home),
        require_checkpoint_table(setup),
        setup.begin,
        number=number,
        numbers=rows,
        turns=turns,
        limits=setup.limits,
        options=setup.options,
        key=setup.key,
    )


def open_thread(setup: TargetSetup) -> PostgresTarget:
    """Open the connection of one thread of a coordinated Replicat."""
    return _opened(PostgresTarget, replace(setup, has_row=False))


def _opened(target: type[PostgresTarget], setup: TargetSetup) -> PostgresTarget:
    return target(
        setup.login,
        setup.group,
        str(setup.home),
        setup.table,
        setup.begin,
        limits=setup.limits,
        options=setup.options,
        has_row=setup.has_row,
        key=setup.key,
    )


def _transaction_table(table: TableName) -> str:
    return quote_table(transaction_table(table))
