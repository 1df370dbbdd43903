"""PostgreSQL as the target of a parallel Replicat: appliers that commit concurrently, and the checkpoint row that follows.

An applier records the transactions that it applies in a row of the transaction table, in the same target transaction. One
more connection, which alone holds the group's lock, moves the row of the checkpoint table and deletes the rows of
finished transactions. Appliers share another lock, for which that connection waits at its start: after that, no applier of a
killed process is still committing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ggshell.connectors.postgres import applier_session, shapes
from ggshell.connectors.postgres.apply_wire import ApplyStep
from ggshell.connectors.postgres.target import PostgresTarget
from ggshell.connectors.target_setup import TargetSetup
from ggshell.errors import ApplyError, ConnectionLostError, DatabaseError, ParameterError
from ggshell.home.checkpoint import ReplicatKind
from ggshell.pipeline.apply.applier import Turns
from ggshell.pipeline.apply.checkpoint_table import (
    applied_by_appliers,
    id_parts,
    transaction_table,
)
from ggshell.pipeline.apply.target import (
    NO_LIMITS,
    PLAIN_SESSION,
    BatchLimits,
    CheckpointRow,
    Refusal,
    SessionOptions,
)
from ggshell.pipeline.apply.watermarks import WatermarkState
from ggshell.types import TableName, postgres_literal, quote_table

if TYPE_CHECKING:
    pass


class ApplierTarget(PostgresTarget):
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
        self._number = number
        self._numbers = numbers
        self._turns = turns
        self._ticket: int | None = None
        self._named: deque[tuple[Sequence[str], list[int]]] = deque()
        self._returned = 0
        super().__init__(conninfo, group, home, table, begin, limits=limits, options=options, key=key)

    def take_turn(self, ticket: int | None) -> None:
        self._ticket = ticket

    def commit(self, row: CheckpointRow, ids: Sequence[str] = ()) -> Refusal | None:
        """Commit. When commits keep their order, the rows are sent now and the commit when its turn has come."""
        if self._turns is not None and self._ticket is not None:
            refusal = (self._push() if self._steps else None) or self._collect()
            if refusal is not None:
                return refusal
            if not self._turns.wait(self._ticket):
                raise ConnectionLostError("another applier has failed")
        sequences: list[int] = []
        self._named.append((ids, sequences))
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

    def _position(
        self, table: TableName, row: CheckpointRow, ids: Sequence[str], touched: shapes.Shapes, *, literally: bool
    ) -> list[ApplyStep]:
        upper = str(row.csn)
        one = None if literally else shapes.only_typed(touched)
        steps = [] if one is not None and ids else shapes.checks(touched, prepared=not literally)
        for part in id_parts(ids):
            sequence = next(self._numbers)
            self._named[-1][1].append(sequence)
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

    def _prepare_row(self, table: TableName) -> None:
        self._require_tables(table)

    def _require_tables(self, table: TableName) -> None:
        self._tables.require_both(table)

    @property
    def _origin_name(self) -> str:
        return f"{self._group}_{self._number}"

    @property
    def _lock(self) -> str:
        return applier_session.applier_lock()


class WatermarkTarget(PostgresTarget):
    """The connection that moves the group's row. It applies nothing itself."""

    def start(self) -> tuple[CheckpointRow, list[str], list[int]]:
        """Wait for appliers of earlier runs, then return the row, the ids applied above it, and the rows that name them.

        Raises ConflictError when such an applier does not end.
        """
        table = self._checkpoint_table
        self.await_appliers()
        self._tables.names_begin(table, self._group, self._key)
        row = self._tables.read(table, self._group, self._key) or self._begin
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

    def _require_tables(self, table: TableName) -> None:
        self._tables.require_both(table)

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
            raise ApplyError(
                "a parallel Replicat requires a checkpoint table", hint="ADD REPLICAT …, CHECKPOINTTABLE …"
            )
        return self._table


_MARKS = "$1, $2::bigint, $3, $4::integer, $5"
_INSERT = (
    "INSERT INTO {table} (group_name, group_key, log_cmplt_csn, log_cmplt_xids_seq, log_cmplt_xids) VALUES ({values})"
)


def open_target(setup: TargetSetup) -> PostgresTarget:
    """Open the group's own connection. Raises ParameterError, ConflictError, DatabaseError."""
    classic = setup.kind is ReplicatKind.CLASSIC
    if setup.table is None and not classic:
        raise ParameterError(
            f"a {setup.kind.lower()} Replicat requires a checkpoint table", hint="ADD REPLICAT …, CHECKPOINTTABLE …"
        )
    opened = _opened(PostgresTarget if classic else WatermarkTarget, setup)
    if setup.kind is not ReplicatKind.PARALLEL:
        try:
            _require_no_appliers(opened, setup)
        except BaseException:
            opened.close()
            raise
    return opened


def open_applier(setup: TargetSetup, number: int, rows: Iterator[int], turns: Turns | None) -> ApplierTarget:
    """Open the connection of one applier of a parallel Replicat."""
    if setup.table is None:
        raise ParameterError(
            "a parallel Replicat requires a checkpoint table", hint="ADD REPLICAT …, CHECKPOINTTABLE …"
        )
    return ApplierTarget(
        setup.login,
        setup.group,
        str(setup.home),
        setup.table,
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


def _require_no_appliers(target: PostgresTarget, setup: TargetSetup) -> None:
    """Check that no parallel Replicat has left applied transactions that this kind of Replicat would apply again.

    Raises StateError.
    """
    target.await_appliers()
    above = target.applied_above()
    if above:
        raise applied_by_appliers(len(above), setup.group, setup.kind, setup.table)


def _transaction_table(table: TableName) -> str:
    return quote_table(transaction_table(table))
