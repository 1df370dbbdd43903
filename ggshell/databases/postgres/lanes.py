"""PostgreSQL as the target of a parallel Replicat: lanes that commit beside each other, and the row that follows them.

A lane names the transactions that it applies in a row of the transaction table, in the same target transaction; the rows of
the checkpoint table and of finished transactions are moved by one more connection, which alone holds the group's lock.
Lanes share another lock, which that one takes at its start: no lane of a killed process is still committing then.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ggshell.apply.checkpoint_table import LONGEST_IDS, to_columns, transaction_table
from ggshell.apply.lane import Turns
from ggshell.apply.target import NO_LIMITS, BatchLimits, CheckpointRow, Refusal
from ggshell.apply.watermarks import Marks
from ggshell.databases.postgres import checkpoint_sql, lanes_lock, session
from ggshell.databases.postgres.apply_wire import Step
from ggshell.databases.postgres.describe import quote_table
from ggshell.databases.postgres.target import PostgresTarget
from ggshell.errors import ApplyError, ConnectionLostError
from ggshell.types import TableName

if TYPE_CHECKING:
    pass


class LaneTarget(PostgresTarget):
    """One lane's connection.  ``numbers`` gives rows of the transaction table, shared by all lanes."""

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
    ) -> None:
        self._number = number
        self._numbers = numbers
        self._turns = turns
        self._ticket: int | None = None
        self._named: deque[tuple[Sequence[str], list[int]]] = deque()
        self._told = 0
        super().__init__(conninfo, group, home, table, begin, limits=limits)

    def take_turn(self, ticket: int | None) -> None:
        self._ticket = ticket

    def commit(self, row: CheckpointRow, ids: Sequence[str] = ()) -> Refusal | None:
        """Where commits keep an order, rows go out now and the commit when its turn has come."""
        if self._turns is not None and self._ticket is not None:
            refusal = (self._push() if self._steps else None) or self._collect()
            if refusal is not None:
                return refusal
            if not self._turns.wait(self._ticket):
                raise ConnectionLostError("another lane has failed")
        sequences: list[int] = []
        self._named.append((ids, sequences))
        return super().commit(row, ids)

    def committed(self) -> tuple[list[str], list[int]]:
        """The ids and rows of commits that were confirmed since the last call."""
        ids: list[str] = []
        sequences: list[int] = []
        while self._told < self.confirmed:
            self._told += 1
            found, rows = self._named.popleft()
            ids += found
            sequences += rows
        return ids, sequences

    def rollback(self) -> None:
        super().rollback()
        while len(self._named) > self.confirmed - self._told:
            self._named.pop()

    def _position(self, table: TableName, row: CheckpointRow, ids: Sequence[str], *, literally: bool) -> list[Step]:
        upper = str(row.csn)
        steps = []
        for part in _parts(ids):
            sequence = next(self._numbers)
            self._named[-1][1].append(sequence)
            values = [self._group.upper().encode(), b"%d" % self._key, upper.encode(), b"%d" % sequence, part.encode()]
            if literally:
                name, key, csn, number, found = (value.decode().replace("'", "''") for value in values)
                text = f"'{name}', {key}, '{csn}', {number}, '{found}'"
                steps.append(Step(_INSERT.format(table=_beside(table), values=text)))
            else:
                steps.append(Step(_INSERT.format(table=_beside(table), values=_MARKS), values))
        return steps

    def _prepare_row(self, table: TableName) -> None:
        checkpoint_sql.require(self._connection, transaction_table(table))

    @property
    def _origin_name(self) -> str:
        return f"{self._group}_{self._number}"

    @property
    def _lock(self) -> str:
        return lanes_lock.shared_lock()


class WatermarkTarget(PostgresTarget):
    """The connection that moves the group's row; it applies nothing itself."""

    def start(self) -> tuple[CheckpointRow, list[str], list[int]]:
        """The row, the ids applied above it, and the rows that name them; no lane of an earlier run is left.

        Raises ConflictError when one is and does not end.
        """
        connection, table = self._idle(), self._checkpoint_table
        self.await_lanes()
        row = checkpoint_sql.read(connection, table, self._group, self._key) or self._begin
        found = session.execute(
            connection,
            f"SELECT log_cmplt_xids_seq, log_cmplt_xids FROM {_beside(table)} WHERE group_name = %s AND group_key = %s",
            [self._group.upper(), self._key],
        )
        ids = dict.fromkeys(xid for _, text in found for xid in text.split(","))
        return row, list(ids), [int(sequence) for sequence, _ in found]

    def save(self, marks: Marks) -> None:
        """Move the row, and take away the names that it has passed, in one transaction."""
        table, connection = self._checkpoint_table, self._idle()
        low = marks.low
        columns = to_columns(low._replace(same_csn=_fitting(marks.applied)))
        upper, last = marks.high
        columns = columns._replace(
            log_csn=str(upper) if upper is not None else columns.log_csn, log_xid=last[:128] or None
        )
        with session.transaction(connection):
            moved = session.execute(
                connection,
                checkpoint_sql.set_columns(table),
                [*columns, self._group.upper(), self._key],
            )
            if not moved:
                raise ApplyError(
                    self._gone, code="GGS-00516", hint="restart the group: it takes the position of its file"
                )
            if marks.finished:
                session.execute(
                    connection,
                    f"DELETE FROM {_beside(table)} WHERE group_name = %s AND group_key = %s"
                    " AND log_cmplt_xids_seq = ANY(%s)",
                    [self._group.upper(), self._key, list(marks.finished)],
                )
        self._commits += 1

    @property
    def _checkpoint_table(self) -> TableName:
        if self._table is None:
            raise ApplyError("a parallel Replicat needs a checkpoint table", hint="ADD REPLICAT …, CHECKPOINTTABLE …")
        return self._table


_MARKS = "$1, $2::bigint, $3, $4::integer, $5"
_INSERT = (
    "INSERT INTO {table} (group_name, group_key, log_cmplt_csn, log_cmplt_xids_seq, log_cmplt_xids) VALUES ({values})"
)


def row_numbers(sequences: Sequence[int]) -> Iterator[int]:
    """Numbers for rows of the transaction table, behind those that it has."""
    return itertools.count(max(sequences, default=0) + 1)


def _beside(table: TableName) -> str:
    return quote_table(transaction_table(table))


def _parts(ids: Sequence[str]) -> Iterator[str]:
    """The ids in as few texts as the table's column allows."""
    part: list[str] = []
    size = 0
    for xid in ids:
        if part and size + len(xid) + 1 > LONGEST_IDS:
            yield ",".join(part)
            part, size = [], 0
        part.append(xid)
        size += len(xid) + 1
    if part:
        yield ",".join(part)


def _fitting(ids: Sequence[str]) -> tuple[str, ...]:
    """As many ids as the main row can show; the transaction table has those above the low watermark anyway."""
    return tuple(next(_parts(ids), "").split(",")) if ids else ()
