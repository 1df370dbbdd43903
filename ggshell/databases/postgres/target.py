"""PostgreSQL as a target: rows and checkpoint row in one transaction, sent ahead of their answers.

Commits are asynchronous (``synchronous_commit = off``): rows and checkpoint row are one transaction, so what a crash of
the server takes is applied again; ``durable`` waits before anybody relies on it.  While the server works on one group the
next one is prepared here; a group is sent when the one before is answered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ggshell.apply.checkpoint_table import group_key
from ggshell.apply.target import NO_LIMITS, BatchLimits, CheckpointRow, Refusal, TableMapping, TargetTable
from ggshell.databases.postgres import apply_origin, checkpoint_sql, lanes_lock, session
from ggshell.databases.postgres.apply_steps import MOST_ROWS, StepMaker
from ggshell.databases.postgres.apply_wire import CHECKPOINT_GONE, Step, Wire
from ggshell.databases.postgres.present_row import fetch_row
from ggshell.databases.postgres.target_tables import target_table
from ggshell.errors import ApplyError, ConflictError
from ggshell.record.change import ChangeBatch
from ggshell.types import TableName, TrailPosition

if TYPE_CHECKING:
    import psycopg

STREAM_ROWS = 4000
"""Rows of an unfinished group that are sent without waiting for its commit."""

STREAM_BYTES = 4 << 20

LOCK_SECONDS = 20
"""How long to wait for the end of an earlier session of the same group."""

_LOCK = 0x6767_0000_0000
_SAVEPOINT = "ggs_mark"


class PostgresTarget:
    """A connection that applies one group's rows.

    It holds an advisory lock of the group's key: a session that a killed process left behind may still be committing, and
    the checkpoint row must not be read before that is over.
    """

    def __init__(
        self,
        conninfo: str,
        group: str,
        home: str,
        table: TableName | None,
        begin: CheckpointRow | TrailPosition,
        *,
        suppress_triggers: bool = False,
        limits: BatchLimits = NO_LIMITS,
    ) -> None:
        """``begin``: the group's first row, when the checkpoint table has none yet.  Without a ``table`` the target keeps no
        position (NODBCHECKPOINT).  Raises DatabaseError, ConnectionLostError, ConflictError, NotFoundError."""
        self._conninfo = conninfo
        self._group = group
        self._home = home
        self._table = table
        self._key = group_key(group, home)
        self._begin = CheckpointRow(begin, None) if isinstance(begin, TrailPosition) else begin
        self._suppress_triggers = suppress_triggers
        self._limits = limits
        self._update = checkpoint_sql.update_text(table) if table is not None else ""
        self._gone = f"group {group.upper()} has no row in checkpoint table {table} any more"
        self._commits = self._durable = 0
        self._begun = self._owed = self._counted = self._marked = False
        self.origin: str | None = None
        self.found = False
        self._connect()

    @property
    def key(self) -> int:
        """The group's key in the checkpoint table."""
        return self._key

    @property
    def database(self) -> str:
        """The name of the database."""
        return str(self._connection.info.dbname)

    def database_facts(self) -> dict[str, str]:
        """What @GETENV's DBENVIRONMENT tells; everything sent must be settled."""
        name, user, version = session.database_facts(self._idle())
        return {"DBNAME": name, "DBUSER": user, "DBVERSION": version}

    @property
    def confirmed(self) -> int:
        return self._commits + self._wire.commits

    def describe(self, table: TableName) -> TargetTable | None:
        return target_table(self._idle(), table)

    def fetch(self, mapping: TableMapping, key: Mapping[int, bytes | None]) -> dict[int, bytes | None] | None:
        return fetch_row(self._idle(), mapping, key)

    def checkpoint(self) -> CheckpointRow | None:
        if self._table is None:
            return None
        return checkpoint_sql.read(self._idle(), self._table, self._group, self._key)

    def await_lanes(self) -> None:
        """Return when no lane of a parallel Replicat of the group is left, which may still commit though its process was
        killed.  Raises ConflictError when one does not end."""
        lanes_lock.wait_for_all(self._idle(), self._group, self._key, self._program)

    def applied_above(self) -> list[str]:
        """The transactions that lanes of a parallel Replicat have applied above the group's row."""
        row = self.checkpoint()
        if self._table is None or row is None:
            return []
        return checkpoint_sql.applied_above(self._idle(), self._table, self._group, self._key, row.csn)

    def move(self, position: TrailPosition) -> None:
        """Read on from another place of the trail; what is applied stays known, and is left out there."""
        if self._table is not None:
            checkpoint_sql.move(self._idle(), self._table, self._group, self._key, position)

    def apply(self, batch: ChangeBatch, first: int, last: int, mappings: dict[int, TableMapping]) -> Refusal | None:
        rows = self._limits.queue_rows
        if rows is None or last - first <= rows:
            return self._gather(batch, first, last, mappings)
        for low in range(first, last, rows):
            refusal = self._gather(batch, low, min(low + rows, last), mappings)
            if refusal is not None:
                return refusal
        return None

    def _gather(self, batch: ChangeBatch, first: int, last: int, mappings: dict[int, TableMapping]) -> Refusal | None:
        """Make steps of rows, and send what has gathered once it is enough."""
        try:
            steps = self._maker.steps(batch, first, last, mappings)
        except ApplyError as error:
            return Refusal(error.message)
        self._steps += steps
        self._rows += last - first
        self._bytes += int(batch.length[first:last].sum()) if last - first > 1 else int(batch.length[first])
        limits = self._limits
        enough = self._rows >= (limits.queue_rows or STREAM_ROWS) or self._bytes >= (limits.queue_bytes or STREAM_BYTES)
        enough = enough or (limits.queue_batches is not None and len(self._steps) >= limits.queue_batches)
        return self._push() if enough else None

    def apply_one(self, batch: ChangeBatch, row: int, mapping: TableMapping) -> Refusal | None:
        number = int(batch.table[row])
        try:
            steps = self._maker.steps(batch, row, row + 1, {number: mapping}, bulk=False)
        except ApplyError as error:
            return Refusal(error.message)
        self._steps += steps
        return self._push() or self._collect()

    def commit(self, row: CheckpointRow, ids: Sequence[str] = ()) -> Refusal | None:
        """Where every count of changed rows is known to be right the commit goes out with the rows, else when their
        answers have come."""
        counted = any(step.affects is not None for step in self._steps) or self._counted
        last = next((step for step in reversed(self._steps) if step.data is not None or step.values is not None), None)
        if self._table is not None:
            self._steps += self._position(self._table, row, ids, literally=last is None or last.data is not None)
        if not counted:
            self._steps.append(Step("COMMIT", commits=True))
        refusal = self._push()
        self._maker.begin()
        if refusal is None:
            self._owed, self._begun, self._counted = counted, counted, False
            self._marked = self._marked and counted
        return refusal

    def _position(self, table: TableName, row: CheckpointRow, ids: Sequence[str], *, literally: bool) -> list[Step]:
        """What writes the position; ``literally``: without parameters."""
        if literally:
            return [Step(checkpoint_sql.update_literally(table, row, self._group, self._key), guard=self._gone)]
        values = checkpoint_sql.update_values(row, self._group, self._key)
        return [Step(self._update, values, guard=self._gone)]

    def settle(self) -> Refusal | None:
        refusal = (self._push() if self._steps else None) or self._collect()
        if refusal is None and self._owed:
            self._owed = self._begun = self._marked = False
            refusal = self._wire.send([Step("COMMIT", commits=True)]) or self._collect()
        return refusal

    def mark(self) -> Refusal | None:
        refusal = self.settle()
        if refusal is not None:
            return refusal
        steps = [] if self._begun else [Step("BEGIN")]
        if self._marked:
            steps.append(Step(f"RELEASE SAVEPOINT {_SAVEPOINT}"))
        self._begun = self._marked = True
        return self._wire.send([*steps, Step(f"SAVEPOINT {_SAVEPOINT}")]) or self._collect()

    def back_to_mark(self) -> bool:
        self._forget()
        self._wire.collect()
        if not self._marked or not self._wire.in_transaction:
            self.rollback()
            return False
        self._begun, self._owed = True, False
        refusal = self._wire.run(f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}")
        if refusal is not None:
            self.rollback()
        return refusal is None

    def rollback(self) -> None:
        self._forget()
        # What was on its way is undone or committed by now; its answers have been looked at.
        self._wire.collect()
        if self._wire.in_transaction:
            self._wire.run("ROLLBACK")
        self._begun = self._owed = self._counted = self._marked = False
        self._maker.begin()

    def durable(self) -> None:
        """Any durable commit makes all earlier ones durable: one is made, on a connection beside when this one is busy."""
        confirmed = self.confirmed
        if confirmed == self._durable:
            return
        if self._begun or self._wire.busy:
            with session.connect(self._conninfo, program=self._program) as beside:
                session.execute(beside, _DURABLE)
        else:
            session.execute(self._idle(), _DURABLE)
        self._durable = confirmed

    def reconnect(self) -> None:
        """Raises DatabaseError, ConnectionLostError, ConflictError."""
        self._commits = self.confirmed
        self.close()
        self._connect()

    def close(self) -> None:
        self._connection.close()

    @property
    def _program(self) -> str:
        return f"ggshell replicat {self._group.upper()}"

    @property
    def _origin_name(self) -> str:
        return self._group

    @property
    def _lock(self) -> str:
        """Takes the group's lock, or waits for it."""
        return "SELECT pg_advisory_lock(%s)"

    def _connect(self) -> None:
        self._connection: psycopg.Connection[Any] = session.connect(self._conninfo, program=self._program)
        self._wire = Wire(self._connection.pgconn)
        self._maker = StepMaker(self._limits.batch_rows or MOST_ROWS)
        self._forget()
        self._begun = self._owed = self._counted = self._marked = False
        try:
            self._prepare_session()
            if self._table is not None:
                self._prepare_row(self._table)
        except BaseException:
            self._connection.close()
            raise

    def _prepare_row(self, table: TableName) -> None:
        checkpoint_sql.require(self._connection, table)
        self.found = not checkpoint_sql.insert(self._connection, table, self._group, self._key, self._begin, self._home)

    def _prepare_session(self) -> None:
        connection = self._connection
        session.require_primary(connection)
        session.execute(connection, f"SET lock_timeout = '{LOCK_SECONDS}s'")
        if not self._locked(connection):
            raise ConflictError(
                f"another session applies for group {self._group.upper()}",
                code="GGS-00515",
                hint=f"end it: SELECT pid FROM pg_stat_activity WHERE application_name = '{self._program}'",
            )
        session.execute(connection, "RESET lock_timeout")
        session.execute(connection, "SET synchronous_commit = off")
        session.execute(connection, "SET idle_in_transaction_session_timeout = 0")
        if self._suppress_triggers:
            session.execute(connection, "SET session_replication_role = replica")
        self.origin = apply_origin.take(connection, self._origin_name, self._key)

    def _locked(self, connection: psycopg.Connection[Any]) -> bool:
        import psycopg

        try:
            connection.execute(self._lock, [_LOCK | self._key])
        except psycopg.errors.LockNotAvailable:
            return False
        except psycopg.Error as error:
            raise session.translate(error) from error
        return True

    def _idle(self) -> psycopg.Connection[Any]:
        """The connection for statements of psycopg's own; everything sent must be answered."""
        self._wire.leave()
        return self._connection

    def _forget(self) -> None:
        self._steps: list[Step] = []
        self._rows = self._bytes = 0

    def _push(self) -> Refusal | None:
        """Send the steps that have gathered, as soon as those before are answered."""
        refusal = self._collect()
        if refusal is not None:
            return refusal
        steps: list[Step] = []
        if self._owed:
            steps.append(Step("COMMIT", commits=True))
            self._begun = self._owed = self._marked = False
        if not self._begun:
            steps.append(Step("BEGIN"))
            self._begun = True
        self._counted = self._counted or any(step.affects is not None for step in self._steps)
        steps += self._steps
        self._forget()
        return self._refused(self._wire.send(steps))

    def _collect(self) -> Refusal | None:
        return self._refused(self._wire.collect())

    def _refused(self, refusal: Refusal | None) -> Refusal | None:
        if refusal is not None and refusal.state == CHECKPOINT_GONE:
            raise ApplyError(
                refusal.text, code="GGS-00516", hint="restart the group: it takes the position of its checkpoint file"
            )
        return refusal


_DURABLE = """DO $$ BEGIN
  PERFORM set_config('synchronous_commit', 'on', true);
  PERFORM pg_logical_emit_message(true, 'ggs.durable', '');
END $$"""
