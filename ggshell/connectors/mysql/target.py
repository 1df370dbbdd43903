"""MariaDB or MySQL as a target: applies rows and the checkpoint row in one InnoDB transaction.

Changes are folded into few statements, and several statements are sent in one packet. While the server works on them, the
next group is prepared here. If the statements of a group must find their rows, its COMMIT is sent after their results have been
checked, together with the next group.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ggshell.connectors.mysql import checkpoint_sql
from ggshell.connectors.mysql.apply_wire import ONE_ROW, ApplyPipeline, ApplyStep
from ggshell.connectors.mysql.checkpoint_sql import MysqlCheckpointTables
from ggshell.connectors.mysql.column_text import raw_values, source_columns
from ggshell.connectors.mysql.ddl_execution import NOT_SUPPORTED, DdlExecution
from ggshell.connectors.mysql.link import enter
from ggshell.connectors.mysql.login import parse_login
from ggshell.connectors.mysql.refusals import CHANGED
from ggshell.connectors.mysql.session import connect, execute, server_version
from ggshell.connectors.mysql.statements import MysqlStatements
from ggshell.connectors.mysql.target_tables import target_table
from ggshell.connectors.pipelined_target import SAVEPOINT, STREAM_ROWS, PipelinedTarget
from ggshell.errors import ApplyError, ConflictError, DatabaseError, TargetChangedError
from ggshell.pipeline.apply.folding import ChangeKind, changes, statement_rows
from ggshell.pipeline.apply.target import (
    DDL_REPORT,
    CheckpointRow,
    Noted,
    Refusal,
    TableMapping,
    TargetNames,
    TargetTable,
)
from ggshell.record.change import ChangeBatch
from ggshell.record.ddl import DdlStatement, encode_ddl
from ggshell.types import TableName

if TYPE_CHECKING:
    from pymysql.connections import Connection

    from ggshell.connectors.target_setup import TargetSetup

LOCK_SECONDS: Final = 20
_CHANGED_STATES: Final = frozenset({str(number) for number in CHANGED} | {"42703", "42P01", "23502"})
"""What the server answers to a statement that was made for another definition of its table."""


class MysqlTarget(PipelinedTarget[ApplyStep]):
    """A connection that applies the rows of one group.

    It holds a named lock of the server. A session left by a killed process may still be committing, and the checkpoint row must
    not be read before that session has ended.
    """

    _begin_steps = (ApplyStep(b"BEGIN"),)
    _commit_step = ApplyStep(b"COMMIT", commits=True)
    takes_sequences = False
    foreign_key_hint = "if the source wrote the rows with foreign_key_checks = 0, drop the foreign key in the target"

    def __init__(self, setup: TargetSetup) -> None:
        """Connect, lock the group and make sure that its checkpoint row exists.

        Raises DatabaseError, ConnectionLostError, ConflictError and NotFoundError, and ApplyError if the row is missing.
        """
        super().__init__(
            setup.group,
            str(setup.home),
            setup.table,
            setup.key,
            setup.begin,
            has_row=setup.has_row,
            limits=setup.limits,
        )
        self._setup = setup
        self._login = setup.login
        self._flushed = 0
        self._doubted = self._lazy = self._has_rows = False
        self._described: dict[TableName, TargetTable | None] = {}
        self._connect()

    @property
    def database(self) -> str:
        """The name of the database."""
        address = parse_login(self._login)
        return address.database or address.shown

    def database_facts(self) -> dict[str, str]:
        """The facts that @GETENV returns for DBENVIRONMENT. Everything sent must be answered first."""
        version = server_version(self._connection).text
        return {"DBNAME": self.database, "DBUSER": parse_login(self._login).user, "DBVERSION": version}

    def describe(self, table: TableName) -> TargetTable | None:
        self._require_other(table)
        found = target_table(self._connection, table, any_engine=self._setup.options.any_engine)
        self._described[table] = found
        return found

    def _require_other(self, table: TableName) -> None:
        """Raise ApplyError if the server takes a table for one that is already known under a name in another case."""
        folded = str(table).lower()
        twin = next((name for name in self._described if name != table and str(name).lower() == folded), None)
        if self._folds_names and twin is not None:
            raise ApplyError(
                f"target tables {twin} and {table} are the same table: the server has lower_case_table_names = 1 or 2",
                code="GGS-00491",
                hint="name another TARGET for one of them in MAP",
            )

    def fetch(self, mapping: TableMapping, key: Mapping[int, bytes | None]) -> dict[int, bytes | None] | None:
        columns = {column.name: column for column in source_columns(self._connection, mapping.target.name)}
        mapped = [(index, columns[column.name]) for index, column in enumerate(mapping.columns) if column is not None]
        text = self._statements_of(mapping).fetch(key, [column.expression for _, column in mapped])
        with raw_values(self._connection), self._connection.cursor() as cursor:
            cursor.execute(text)
            row = cursor.fetchone()
        if row is None:
            return None
        return {index: column.text(value) for (index, column), value in zip(mapped, row, strict=True)}

    @property
    def _tables(self) -> MysqlCheckpointTables:
        return MysqlCheckpointTables(self._connection)

    def await_appliers(self) -> None:
        """Wait until all appliers of the group's parallel Replicat have ended. Raises ConflictError when one does not end."""
        names = [checkpoint_sql.applier_lock(self._key, number) for number in range(checkpoint_sql.MOST_APPLIERS)]
        marks = ", ".join(["IS_USED_LOCK(%s) IS NOT NULL"] * len(names))
        used = execute(self._connection, f"SELECT {marks}", names)[0]
        for name in [name for name, taken in zip(names, used, strict=True) if taken]:
            self._take_lock(name)
            execute(self._connection, "SELECT RELEASE_LOCK(%s)", [name])

    def apply(self, batch: ChangeBatch, first: int, last: int, mappings: dict[int, TableMapping]) -> Refusal | None:
        most = self._limits.queue_rows or STREAM_ROWS
        for low in range(first, last, most):
            refused = self._gather(batch, low, min(low + most, last), mappings)
            if refused is not None:
                return refused
        return None

    def _gather(self, batch: ChangeBatch, first: int, last: int, mappings: dict[int, TableMapping]) -> Refusal | None:
        """Convert rows to steps, and send the collected steps when they reach a limit."""
        steps: list[ApplyStep] = []
        try:
            for work in statement_rows(changes(batch, first, last, mappings)):
                made = [ApplyStep(*each) for each in self._statements_of(work.mapping).many(work)]
                steps += self._cascaded(work.kind, work.mapping.target, made)
        except ApplyError as error:
            return Refusal.of(error)
        self._has_rows = True
        return self._gathered(steps, last - first, batch.size(first, last))

    def _cascaded(self, kind: ChangeKind, target: TargetTable, steps: list[ApplyStep]) -> list[ApplyStep]:
        """Changes of rows that a change of a parent in the same transaction may already have removed or moved."""
        if kind is ChangeKind.DELETE:
            parents, changed = target.cascades, self._emptied
        elif kind in (ChangeKind.UPDATE, ChangeKind.MOVE):
            parents, changed = target.followed, self._moved
        else:
            return steps
        cascaded = any(parent in changed for parent in parents)
        if kind is not ChangeKind.UPDATE:
            changed.add(target.name)
        return [step._replace(affects=None) for step in steps] if cascaded else steps

    def apply_one(self, batch: ChangeBatch, row: int, mapping: TableMapping) -> Refusal | None:
        return self._gather(batch, row, row + 1, {int(batch.table[row]): mapping}) or self._push() or self._collect()

    def _last_steps(self, row: CheckpointRow, ids: Sequence[str]) -> Sequence[ApplyStep]:
        return () if self._table is None else self._position(self._table, row, ids)

    def _next_group(self) -> None:
        self._has_rows = False
        self._emptied.clear()
        self._moved.clear()

    def _position(self, table: TableName, row: CheckpointRow, ids: Sequence[str]) -> list[ApplyStep]:
        """The steps that write the position."""
        text = checkpoint_sql.update_text(table, row, self._group, self._key)
        return [ApplyStep(text), ApplyStep(ONE_ROW, on_failure=self._gone)]

    def execute_ddl(self, statement: DdlStatement, names: TargetNames, noted: Noted) -> Refusal | None:
        """Execute the first statement of a transaction with rows (CREATE TABLE … SELECT); the server commits it at once."""
        if self._has_rows:
            return Refusal(
                "the server commits at each DDL statement, and rows of its transaction precede it", NOT_SUPPORTED
            )
        refused = self.await_answers() or self._run("COMMIT")
        self._begun = self._owed = self._has_savepoint = False
        again = self.confirmed == self._at_connect
        refused = refused or self.execute_outside(statement, names, noted, again=again)
        return self.set_savepoint() or refused

    def runs_outside(self, statement: DdlStatement) -> bool:
        return True

    def execute_outside(
        self, statement: DdlStatement, names: TargetNames, noted: Noted, *, again: bool
    ) -> Refusal | None:
        execution = DdlExecution(self._connection, self.forget_tables)
        if self._table is None:
            return execution.run(statement, names, noted, again=again)
        mark, state = hashlib.sha256(encode_ddl(statement)).hexdigest(), execution.state(statement, names)
        begun, _, before = self._begun_ddl(self._table).partition(" ")
        again = again and begun == mark
        if again and before not in ("", state) and statement.operation == "ALTER":
            noted(DDL_REPORT, f"{statement.tag} of {statement.main.name} was executed before: its tables have changed.")
            return None
        if not again or not before:
            self._begin_ddl(self._table, f"{mark} {state}")
        refused = execution.run(statement, names, noted, again=again)
        if refused is not None:
            self._begin_ddl(self._table, mark)  # not executed, whatever changes the tables now
        return refused

    def _begun_ddl(self, table: TableName) -> str:
        return self._tables.begun_ddl(table, self._group, self._key)

    def _begin_ddl(self, table: TableName, text: str) -> None:
        self._tables.begin_ddl(table, self._group, self._key, text)

    def forget_tables(self) -> None:
        self._statements.clear()
        self._described.clear()

    def set_savepoint(self) -> Refusal | None:
        refused = self.await_answers()
        if refused is not None:
            return refused
        steps = [] if self._begun else [*self._begin_steps]
        self._begun = self._has_savepoint = True
        return self._refused(self._send([*steps, ApplyStep(f"SAVEPOINT {SAVEPOINT}".encode())])) or self._collect()

    def rollback_to_savepoint(self) -> bool:
        self._forget()
        self._wire.collect()
        if not self._has_savepoint or self._run(f"ROLLBACK TO SAVEPOINT {SAVEPOINT}") is not None:
            self.rollback()
            return False
        self._begun, self._owed = True, False
        self._require_same()
        return True

    def rollback(self) -> None:
        self._forget()
        self._wire.collect()  # what was in flight is rolled back or committed by now
        self._run("ROLLBACK")
        self._no_transaction()
        self._next_group()
        self._require_same()

    def durable(self) -> None:
        """Wait until everything committed is on disk, unless the server waits for the disk at each commit."""
        if not self._lazy or self._begun or self._wire.busy or self._flushed == self.confirmed:
            return
        try:
            execute(self._connection, "FLUSH NO_WRITE_TO_BINLOG ENGINE LOGS")
        except DatabaseError:
            self._lazy = False  # without the privilege RELOAD the server's own setting decides
        self._flushed = self.confirmed

    def close(self) -> None:
        if self._connection.open:
            self._connection.close()

    @property
    def _lock(self) -> str:
        """The name of the lock that this connection holds."""
        return checkpoint_sql.group_lock(self._key)

    def _connect(self) -> None:
        self._connection: Connection[Any] = connect(self._login, program=self._program, applies=True)
        self._link = enter(self._connection, self._login)
        self._statements: dict[int, MysqlStatements] = {}
        self._emptied: set[TableName] = set()
        self._moved: set[TableName] = set()
        self._no_transaction()
        self._doubted = self._has_rows = False
        self._forget()
        try:
            link = self._link
            self._wire: ApplyPipeline = ApplyPipeline(self._connection, lambda: link.canceled)
            self._at_connect = self.confirmed
            self._prepare_session()
            if self._table is not None:
                self._prepare_row(self._table)
        except BaseException:
            self._connection.close()
            raise

    def _prepare_session(self) -> None:
        self._take_lock(self._lock)
        ((read_only, form, logs, flush, folds),) = execute(
            self._connection,
            "SELECT @@GLOBAL.read_only, @@SESSION.binlog_format, @@GLOBAL.log_bin, @@GLOBAL.innodb_flush_log_at_trx_commit,"
            " @@GLOBAL.lower_case_table_names",
        )
        self._folds_names = int(folds) != 0
        if int(read_only):
            raise DatabaseError("the server is read-only", hint="log in to the primary, or SET GLOBAL read_only = 0")
        # InnoDB refuses changes at READ COMMITTED if they are logged as statements. Fewer locks are taken there.
        by_statement = str(form).upper() == "STATEMENT" and int(logs)
        level = "REPEATABLE READ" if by_statement else "READ COMMITTED"
        execute(self._connection, f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
        self._lazy, self._flushed = int(flush) != 1, self._commits

    def _take_lock(self, name: str) -> None:
        ((taken,),) = execute(self._connection, "SELECT GET_LOCK(%s, %s)", [name, LOCK_SECONDS])
        if not taken:
            raise ConflictError(
                f"another session is applying for group {self._group.upper()}",
                code="GGS-00515",
                hint=f"end it: SELECT IS_USED_LOCK('{name}'), then KILL the connection with this number",
            )

    def _statements_of(self, mapping: TableMapping) -> MysqlStatements:
        # Keyed by identity: hashing a mapping would read all its columns. The statements keep the mapping alive.
        known = self._statements.get(id(mapping))
        if known is None:
            known = self._statements[id(mapping)] = MysqlStatements(mapping)
        return known

    def _send(self, steps: Sequence[ApplyStep]) -> Refusal | None:
        self._link.running = True
        return super()._send(steps)

    def _run(self, text: str) -> Refusal | None:
        """Execute a statement that ends or undoes a part of the transaction."""
        refused = self._wire.run(text.encode())
        self._link.running = False
        return refused

    def _collect(self) -> Refusal | None:
        refused = super()._collect()
        self._link.running = False
        return refused

    def _doubt(self, refused: Refusal) -> None:
        self._doubted = refused.state in _CHANGED_STATES

    def _require_same(self) -> None:
        """After a refusal that another definition of a table may explain, raise TargetChangedError if one has changed."""
        if not self._doubted:
            return
        self._doubted = False
        known = dict(self._described)
        names = [str(name) for name, table in known.items() if self.describe(name) != table]
        if names:
            if self._begun:
                self._run("ROLLBACK")
                self._no_transaction()
            self.forget_tables()
            raise TargetChangedError(
                f"the definition of target table {', '.join(names)} has changed: it is read again, and uncommitted"
                " changes are applied again"
            )
