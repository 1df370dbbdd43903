"""PostgreSQL as a target: applies rows and the checkpoint row in one transaction, pipelined.

Commits are asynchronous (``synchronous_commit = off``). The rows and the checkpoint row are in one transaction, so
changes that are lost in a server crash are applied again. ``durable`` waits until the commits are on disk, before
anything relies on them. While the server works on one group, the next one is prepared here; a group is sent as soon as
the results of the previous one have arrived.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ggshell.connectors.pipelined_target import SAVEPOINT, PipelinedTarget
from ggshell.connectors.postgres import checkpoint_sql, origins, session, session_locks, shapes
from ggshell.connectors.postgres.apply_steps import MOST_ROWS, StepMaker
from ggshell.connectors.postgres.apply_wire import ApplyPipeline, ApplyStep
from ggshell.connectors.postgres.checkpoint_sql import PostgresCheckpointTables
from ggshell.connectors.postgres.ddl_execution import DdlExecution
from ggshell.connectors.postgres.ddl_outside import OutsideStatement, outside_statement
from ggshell.connectors.postgres.target_tables import fetch_row, target_table
from ggshell.errors import ApplyError, ConnectionLostError, DatabaseError
from ggshell.links import LINKS
from ggshell.pipeline.apply.checkpoint_table import group_key
from ggshell.pipeline.apply.target import (
    DDL_REPORT,
    NO_LIMITS,
    PLAIN_SESSION,
    BatchLimits,
    CheckpointRow,
    Noted,
    Refusal,
    SessionOptions,
    TableMapping,
    TargetNames,
    TargetTable,
)
from ggshell.record.change import ChangeBatch
from ggshell.record.ddl import DdlStatement
from ggshell.types import TableName, TrailPosition

if TYPE_CHECKING:
    import psycopg


TRIGGER_FIRES: Final = (
    "Trigger {} also fires for the rows that this Replicat applies, which already have its effects."
    " DBOPTIONS SUPPRESSTRIGGERS prevents this."
)


class PostgresTarget(PipelinedTarget[ApplyStep]):
    """A connection that applies the rows of one group.

    It holds an advisory lock on the group's key. A session left by a killed process may still be committing, and the
    checkpoint row must not be read before that session has ended.
    """

    _wire: ApplyPipeline
    _commit_step = ApplyStep("COMMIT", commits=True)
    takes_sequences = True
    foreign_key_hint = (
        "if the source changed rows that refer to each other in one statement, set DBOPTIONS DEFERREFCONST (the foreign key"
        " has to be DEFERRABLE) or DBOPTIONS SUPPRESSTRIGGERS"
    )

    def __init__(
        self,
        conninfo: str,
        group: str,
        home: str,
        table: TableName | None,
        begin: CheckpointRow | TrailPosition,
        *,
        options: SessionOptions = PLAIN_SESSION,
        limits: BatchLimits = NO_LIMITS,
        has_row: bool = False,
        key: int | None = None,
    ) -> None:
        """Connect, lock the group and make sure that its checkpoint row exists.

        ``begin`` is the group's first checkpoint row, used when the checkpoint table has none yet. ``has_row`` means
        that the group already had a row, so the row must exist. ``key`` is the key of that row; without it, the key is
        derived from ``home``. Without a ``table`` the target stores no position (NODBCHECKPOINT).

        Raises DatabaseError, ConnectionLostError, ConflictError and NotFoundError, and ApplyError if the row no longer exists.
        """
        own_key = group_key(group, home) if key is None else key
        row = CheckpointRow(begin, None) if isinstance(begin, TrailPosition) else begin
        super().__init__(group, home, table, own_key, row, has_row=has_row, limits=limits)
        self._conninfo = conninfo
        self._options = options
        self._update = checkpoint_sql.update_text(table) if table is not None else ""
        self._begin_steps = _BEGINS[: 1 + options.defer_constraints]
        self._durable = 0
        self._sent: shapes.Shapes = {}
        self._altered = False
        self.origin = origins.Origin("")
        self._connect()

    @property
    def database(self) -> str:
        """The name of the database."""
        return str(self._connection.info.dbname)

    def database_facts(self) -> dict[str, str]:
        """The facts that @GETENV returns for DBENVIRONMENT. Everything sent must be answered first."""
        name, user, version = session.database_facts(self._idle())
        return {"DBNAME": name, "DBUSER": user, "DBVERSION": version}

    def describe(self, table: TableName) -> TargetTable | None:
        return target_table(self._idle(), table)

    def fetch(self, mapping: TableMapping, key: Mapping[int, bytes | None]) -> dict[int, bytes | None] | None:
        try:
            return fetch_row(self._idle(), mapping, key)
        except DatabaseError:
            self._doubted = True
            self.rollback()
            raise

    def await_appliers(self) -> None:
        """Wait until all appliers of the group's parallel Replicat have ended.

        An applier may still commit after its process was killed. Raises ConflictError when an applier does not end.
        """
        session_locks.wait_for_appliers(self._idle(), self._group, self._key, self._program)

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
        """Convert rows to steps, and send the collected steps when they reach a limit."""
        try:
            steps = self._maker.steps(batch, first, last, mappings)
        except ApplyError as error:
            return self._refused(Refusal.of(error))
        return self._gathered(steps, last - first, batch.size(first, last))

    def apply_one(self, batch: ChangeBatch, row: int, mapping: TableMapping) -> Refusal | None:
        number = int(batch.table[row])
        try:
            steps = self._maker.steps(batch, row, row + 1, {number: mapping}, bulk=False)
        except ApplyError as error:
            return self._refused(Refusal.of(error))
        self._steps += steps
        refusal = self._push() or self._collect()
        if refusal is None or not refusal.missing:
            return refusal
        try:
            self._steps += self._maker.replacement(batch, row, mapping)
        except ApplyError as error:
            return self._refused(Refusal.of(error))
        return (self._push() or self._collect()) if self._steps else refusal

    def _last_steps(self, row: CheckpointRow, ids: Sequence[str]) -> Sequence[ApplyStep]:
        last = next((step for step in reversed(self._steps) if step.data is not None or step.values is not None), None)
        literally = last is None or last.data is not None
        touched = self._maker.touched
        if self._table is None:
            return shapes.checks(touched, prepared=not literally)
        return self._position(self._table, row, ids, touched, literally=literally)

    def _next_group(self) -> None:
        self._sent = self._maker.touched
        self._maker.begin()

    def _position(
        self, table: TableName, row: CheckpointRow, ids: Sequence[str], touched: shapes.Shapes, *, literally: bool
    ) -> list[ApplyStep]:
        """The steps that check the touched tables and write the position; ``literally`` means without parameters."""
        if literally:
            update = checkpoint_sql.update_literally(table, row, self._group, self._key)
            return [*shapes.checks(touched, prepared=False), ApplyStep(update, on_failure=self._gone)]
        values = checkpoint_sql.update_values(row, self._group, self._key)
        one = shapes.only_typed(touched)
        if one is None:
            return [*shapes.checks(touched, prepared=True), ApplyStep(self._update, values, on_failure=self._gone)]
        # The usual case: checking the one table within the same statement costs almost nothing.
        text = checkpoint_sql.update_text(table, shapes.columns(*one))
        return [ApplyStep(text, values, on_failure=self._gone, opening=shapes.opening(*one))]

    def execute_ddl(self, statement: DdlStatement, names: TargetNames, noted: Noted) -> Refusal | None:
        """Execute a DDL statement. The tables touched before are checked first, as they may change now."""
        refusal = self._refused(self._wire.send(shapes.checks(self._maker.touched, prepared=False)) or self._collect())
        if refusal is not None:
            return refusal
        self.forget_tables()
        self._altered = True
        defers = self._options.defer_constraints
        refusal = self._wire.run("SET CONSTRAINTS ALL IMMEDIATE") if defers else None
        refusal = refusal or self._ddl.run(statement, names, noted, local=True)
        if refusal is None and statement.tag == "CREATE TRIGGER" and not self._options.suppress_triggers:
            noted(DDL_REPORT, TRIGGER_FIRES.format(statement.main.name))
        return refusal or (self._wire.run("SET CONSTRAINTS ALL DEFERRED") if defers else None)

    def runs_outside(self, statement: DdlStatement) -> bool:
        return outside_statement(statement) is not None

    def execute_outside(
        self, statement: DdlStatement, names: TargetNames, noted: Noted, *, again: bool
    ) -> Refusal | None:
        self.forget_tables()
        found = outside_statement(statement)
        if again and found is not None and OutsideStatement(found, statement, names).resume(self._idle()):
            return None
        return self._ddl.run(statement, names, noted, local=False)

    def forget_tables(self) -> None:
        self._maker, self._sent = StepMaker(self._limits.batch_rows or MOST_ROWS), {}
        if not self._wire.in_transaction:
            self._wire.forget()

    def set_savepoint(self) -> Refusal | None:
        refusal = self.await_answers()
        if refusal is not None:
            return refusal
        steps = [] if self._begun else list(self._begin_steps)
        self._altered = self._altered and self._begun
        if self._has_savepoint:
            steps.append(ApplyStep(f"RELEASE SAVEPOINT {SAVEPOINT}"))
        self._begun = self._has_savepoint = True
        return self._wire.send([*steps, ApplyStep(f"SAVEPOINT {SAVEPOINT}")]) or self._collect()

    def rollback_to_savepoint(self) -> bool:
        self._forget()
        self._wire.collect()
        if not self._has_savepoint or not self._wire.in_transaction:
            self.rollback()
            return False
        self._begun, self._owed = True, False
        refusal = self._wire.run(f"ROLLBACK TO SAVEPOINT {SAVEPOINT}")
        if refusal is not None:
            self.rollback()
            return False
        self._require_same()
        return True

    def rollback(self) -> None:
        self._forget()
        # Whatever was in flight is rolled back or committed by now, and its results have been checked.
        self._wire.collect()
        try:
            if self._altered:
                self._require_same_altered()
        finally:
            if self._wire.in_transaction:
                self._wire.run("ROLLBACK")
            self._no_transaction()
        if self._altered:
            self._altered = False
            self.forget_tables()
        self._require_same()
        self._maker.begin()

    def _require_same_altered(self) -> None:
        """Do what ``_require_same`` does while tables still are as this transaction has altered them."""
        to_savepoint = f"ROLLBACK TO SAVEPOINT {SAVEPOINT}"
        if self._doubted and self._has_savepoint and self._wire.in_transaction and self._wire.run(to_savepoint) is None:
            self._require_same()
        self._doubted = False

    def _require_same(self) -> None:
        """After a refusal, raise TargetChangedError if a changed table may be the cause.

        Statements without a result yet belong to this transaction or to the previous one, so the tables of both are
        checked.
        """
        if self._doubted:
            self._doubted = False
            shapes.require_same(self._idle(), {**self._sent, **self._maker.touched})

    def durable(self) -> None:
        """Make all commits durable. One durable commit makes all earlier ones durable.

        It runs on a second connection when this one is busy.
        """
        confirmed = self.confirmed
        if confirmed == self._durable:
            return
        if self._begun or self._wire.busy:
            with session.connect(self._conninfo, program=self._program) as beside:
                session.execute(beside, _DURABLE)
        else:
            session.execute(self._idle(), _DURABLE)
        self._durable = confirmed

    def close(self) -> None:
        self._connection.close()

    @property
    def unmarked(self) -> str:
        return self.origin.missing

    @property
    def _origin_name(self) -> str:
        return self._group

    @property
    def _lock(self) -> str:
        """The SQL statement that takes the group's lock, or waits for it."""
        return "SELECT pg_advisory_lock(%s)"

    def _connect(self) -> None:
        self._connection: psycopg.Connection[Any] = session.connect(self._conninfo, program=self._program)
        link = LINKS.of(self._connection)
        self._wire = ApplyPipeline(self._connection.pgconn, lambda: link is not None and link.canceled)
        self._maker = StepMaker(self._limits.batch_rows or MOST_ROWS)
        self._doubted, self._sent = False, {}
        self._forget()
        self._no_transaction()
        self._altered = False
        try:
            self._prepare_session()
            if self._table is not None:
                self._prepare_row(self._table)
        except BaseException:
            self._connection.close()
            raise

    def _prepare_session(self) -> None:
        connection = self._connection
        session.require_primary(connection)
        lock = [checkpoint_sql.GROUP_LOCK | self._key]
        if not session_locks.locked(connection, self._lock, lock, session_locks.LOCK_SECONDS):
            raise session_locks.applied_by_another(self._group, self._program)
        session.execute(connection, "SET synchronous_commit = off")
        # The check of a table's shape must see the current catalog, whatever the role's or the database's default
        # isolation is.
        session.execute(connection, "SET default_transaction_isolation = 'read committed'")
        session.execute(connection, "SET idle_in_transaction_session_timeout = 0")
        if self._options.suppress_triggers:
            self._suppress_triggers(connection)
        self.origin = origins.take_origin(connection, self._origin_name, self._key)
        self._ddl = DdlExecution(connection, self._wire, marked=bool(self.origin.name))

    def _suppress_triggers(self, connection: psycopg.Connection[Any]) -> None:
        try:
            session.execute(connection, "SET session_replication_role = replica")
        except DatabaseError as error:
            if isinstance(error, ConnectionLostError):
                raise
            raise DatabaseError(
                f"DBOPTIONS SUPPRESSTRIGGERS failed: {error.message}",
                hint="GRANT SET ON PARAMETER session_replication_role TO the Replicat's user (PostgreSQL 15 or later), or"
                " use DBOPTIONS DEFERREFCONST",
            ) from error

    def _idle(self) -> psycopg.Connection[Any]:
        """The connection in a state in which psycopg can run statements. All results must have arrived."""
        self._wire.leave()
        return self._connection

    @property
    def _tables(self) -> PostgresCheckpointTables:
        return PostgresCheckpointTables(self._idle())

    def _started(self) -> None:
        self._altered = False

    def _doubt(self, refused: Refusal) -> None:
        self._doubted = True
        if refused.state == shapes.TABLE_CHANGED:
            self.rollback()
            raise shapes.changed(", ".join(sorted({**self._sent, **self._maker.touched})))


_BEGINS: Final = (ApplyStep("BEGIN"), ApplyStep("SET CONSTRAINTS ALL DEFERRED"))
_DURABLE = """DO $$ BEGIN
  PERFORM set_config('synchronous_commit', 'on', true);
  PERFORM pg_logical_emit_message(true, 'ggs.durable', '');
END $$"""
