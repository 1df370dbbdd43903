"""A DuckDB file as a target: applies several groups in one transaction, with the last of their checkpoint rows.

A statement takes milliseconds, regardless of its number of rows, and a commit takes tens of milliseconds. Therefore changes
are folded into few statements, and a commit waits until enough rows are collected or until its result is needed
(``await_answers``). An error ends a DuckDB transaction, and DuckDB has no savepoints. To return to a savepoint, the changes
before it are applied again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ggshell.clock import Clock, SystemClock
from ggshell.connectors.checkpointed_target import CheckpointedTarget
from ggshell.connectors.duckdb import session
from ggshell.connectors.duckdb.checkpoint_sql import DuckCheckpointTables
from ggshell.connectors.duckdb.ddl import old_name, own_statements
from ggshell.connectors.duckdb.session import refusal, target_table
from ggshell.connectors.duckdb.statements import ROWS, DuckDBStatements, arrow_rows
from ggshell.errors import ApplyError
from ggshell.pipeline.apply.checkpoint_table import group_key, row_gone, to_columns
from ggshell.pipeline.apply.error_rules import UNIQUE
from ggshell.pipeline.apply.folding import Change, ChangeKind, StatementRows, changes, statement_rows
from ggshell.pipeline.apply.target import CheckpointRow, Noted, Refusal, TableMapping, TargetNames, TargetTable
from ggshell.record.change import ChangeBatch
from ggshell.record.ddl import DdlStatement
from ggshell.types import TableName, TrailPosition

if TYPE_CHECKING:
    import duckdb


GATHER_ROWS = 50_000
"""Number of rows that are collected before they are applied and committed together."""

GATHER_BYTES = 32 << 20
GATHER_SECONDS = 0.5
"""The longest time that a commit waits for others while rows keep arriving, in seconds."""

FIRST_GATHER = 1
"""Rows to collect after a refusal, to find the next refused row sooner. The number doubles with each commit."""


class DuckTarget(CheckpointedTarget):
    """The single connection that applies the rows of one group."""

    takes_sequences = False
    foreign_key_hint = "if the source changed rows that refer to each other, drop the foreign key in the target"

    def __init__(
        self,
        login: str,
        group: str,
        home: str,
        table: TableName | None,
        begin: CheckpointRow | TrailPosition,
        *,
        gather: int = GATHER_ROWS,
        clock: Clock | None = None,
        has_row: bool = False,
        key: int | None = None,
    ) -> None:
        """Open the file and make sure that the group's checkpoint row exists.

        ``begin`` is the group's first checkpoint row, used when the checkpoint table has none yet. ``has_row`` means
        that the group already had a row, so the row must exist. ``key`` is the key of that row; without it, the key is
        derived from ``home``. Without a ``table`` the target stores no position (NODBCHECKPOINT). ``gather`` is the
        number of rows per transaction, when several groups share one.

        Raises DatabaseError, ConflictError and NotFoundError, and ApplyError if the row no longer exists.
        """
        own_key = group_key(group, home) if key is None else key
        row = CheckpointRow(begin, None) if isinstance(begin, TrailPosition) else begin
        super().__init__(group, home, table, own_key, row, has_row=has_row)
        self._login = login
        self._most = self._gather = gather
        self._clock = clock or SystemClock()
        self._since = 0.0
        self._commits = 0
        self._begun = self._broken = False
        self._worked = 0
        self._whole: list[Part] = []
        self._open: list[Part] = []
        self._boundary: CheckpointRow | None = None
        self._rows = self._bytes = self._waiting = 0
        self._journal = Journal()
        self._savepoint: JournalPosition | None = None
        self._connect()

    @property
    def database(self) -> str:
        """The name of the database."""
        return session.database_name(self._login)

    def database_facts(self) -> dict[str, str]:
        """The facts that @GETENV returns for DBENVIRONMENT."""
        ((version,),) = session.execute(self._connection, "SELECT version()")
        return {"DBNAME": self.database, "DBUSER": "duckdb", "DBVERSION": str(version)}

    @property
    def confirmed(self) -> int:
        return self._commits

    def describe(self, table: TableName) -> TargetTable | None:
        return target_table(self._connection, table)

    def fetch(self, mapping: TableMapping, key: Mapping[int, bytes | None]) -> dict[int, bytes | None] | None:
        rows = session.execute(self._connection, *self._statements_of(mapping).fetch(key))
        if not rows:
            return None
        indexes = [index for index, column in enumerate(mapping.columns) if column is not None]
        return {
            index: None if text is None else str(text).encode() for index, text in zip(indexes, rows[0], strict=True)
        }

    def apply(self, batch: ChangeBatch, first: int, last: int, mappings: dict[int, TableMapping]) -> Refusal | None:
        part = Part(batch, first, last, mappings)
        before = self._open[-1] if self._open else None
        if before is not None and before.batch is batch and before.last == first and before.mappings is mappings:
            self._open[-1] = before._replace(last=last)
        else:
            self._open.append(part)
        self._rows += last - first
        self._bytes += part.size
        if self._rows < self._most and self._bytes < GATHER_BYTES:
            return None
        return self._commit_whole() or self._work_open()

    def apply_one(self, batch: ChangeBatch, row: int, mapping: TableMapping) -> Refusal | None:
        refused = self.await_answers()
        if refused is not None:
            return refused
        number = int(batch.table[row])
        try:
            found = changes(batch, row, row + 1, {number: mapping})
        except ApplyError as error:
            return Refusal.of(error)
        self._ensure_begun()
        for change in found:
            refused = self._collision(change) or self._do(
                StatementRows(mapping, change.kind, change.columns, [change.values], change)
            )
            if refused is not None:
                return refused
        self._journal.add(Part(batch, row, row + 1, {number: mapping}, singly=True))
        return None

    def commit(self, row: CheckpointRow, ids: Sequence[str] = ()) -> Refusal | None:
        """End a group. Its transaction is committed once enough rows are collected."""
        if ids:
            raise ApplyError("a DuckDB file has a single writer: it does not support appliers")
        self._whole += self._open
        self._open = []
        now = self._clock.steady()
        if self._boundary is None:
            self._since = now
        self._boundary = row
        self._waiting += 1
        few = self._worked + self._rows < self._gather and self._bytes < GATHER_BYTES
        return None if few and now < self._since + GATHER_SECONDS else self._commit_whole()

    def execute_ddl(self, statement: DdlStatement, names: TargetNames, noted: Noted) -> Refusal | None:
        """Execute DuckDB's own statements that do the same; refuse a statement that has none."""
        texts = own_statements(statement, names, self.describe(names.table(old_name(statement))))
        if isinstance(texts, Refusal):
            return texts
        self._ensure_begun()
        return self._execute(Executed(tuple(texts)))

    def runs_outside(self, statement: DdlStatement) -> bool:
        return False

    def execute_outside(
        self, statement: DdlStatement, names: TargetNames, noted: Noted, *, again: bool
    ) -> Refusal | None:
        return self.execute_ddl(statement, names, noted)

    def forget_tables(self) -> None:
        self._statements.clear()

    def await_answers(self) -> Refusal | None:
        return self._commit_whole() or self._work_open()

    def set_savepoint(self) -> Refusal | None:
        refused = self.await_answers()
        if refused is None:
            self._ensure_begun()
            self._savepoint = self._journal.position()
        return refused

    def rollback_to_savepoint(self) -> bool:
        savepoint = self._savepoint
        if savepoint is None:
            self.rollback()
            return False
        if not self._broken and not self._open and not self._journal.moved(savepoint):
            return True
        parts = self._journal.until(savepoint)
        self.rollback()
        self._ensure_begun()
        if parts is None or any(self._work(part) is not None for part in parts):
            self.rollback()
            return False
        self._savepoint = self._journal.position()
        return True

    def rollback(self) -> None:
        if self._begun:
            self._begun = False
            session.execute(self._connection, "ROLLBACK")
        self._forget()
        self._gather = FIRST_GATHER

    def durable(self) -> None:
        """Do nothing: each commit already waits for the disk."""

    def reconnect(self) -> None:
        """Close the connection and open a new one. Raises DatabaseError, ConflictError."""
        self.close()
        self._connect()

    def close(self) -> None:
        self._connection.close()

    def _connect(self) -> None:
        self._connection: duckdb.DuckDBPyConnection = session.connect(self._login)
        self._statements: dict[int, DuckDBStatements] = {}
        self._begun = False
        self._forget()
        try:
            if self._table is not None:
                self._prepare_row(self._table)
        except BaseException:
            self._connection.close()
            raise

    @property
    def _tables(self) -> DuckCheckpointTables:
        return DuckCheckpointTables(self._connection)

    def _forget(self) -> None:
        """Reset to no collected rows and no transaction."""
        self._whole, self._open, self._boundary = [], [], None
        self._rows = self._bytes = self._waiting = 0
        self._new_transaction()

    def _new_transaction(self) -> None:
        self._journal = Journal()
        self._savepoint, self._broken = None, False
        self._worked = 0

    def _ensure_begun(self) -> None:
        if not self._begun:
            session.execute(self._connection, "BEGIN")
            self._begun = True

    def _commit_whole(self) -> Refusal | None:
        """Apply and commit everything before the last group boundary."""
        if self._boundary is None:
            return None
        self._ensure_begun()
        refused = self._work_all(self._whole)
        if refused is not None:
            return refused
        if self._table is not None and not self._tables.update(
            self._table, self._group, self._key, to_columns(self._boundary)
        ):
            self.rollback()
            raise row_gone(self._group, self._table)
        refused = self._run("COMMIT")[1]
        self._begun = False
        if refused is not None:
            return refused
        self._commits += self._waiting
        self._gather = min(self._most, self._gather * 2)
        self._whole, self._boundary, self._waiting = [], None, 0
        self._rows, self._bytes = sum(part.last - part.first for part in self._open), sum(p.size for p in self._open)
        self._new_transaction()
        return None

    def _work_open(self) -> Refusal | None:
        """Apply the collected rows of the group that is not complete yet."""
        if not self._open:
            return None
        self._ensure_begun()
        parts, self._open = self._open, []
        self._worked += self._rows
        self._rows = self._bytes = 0
        return self._work_all(parts)

    def _work_all(self, parts: Sequence[Part]) -> Refusal | None:
        for part in parts:
            refused = self._work(part)
            if refused is not None:
                return refused
        return None

    def _execute(self, ddl: Executed) -> Refusal | None:
        for text in ddl.texts:
            refused = self._run(text)[1]
            if refused is not None:
                return refused
        self._statements.clear()
        self._journal.add(ddl)
        return None

    def _work(self, part: Part | Executed) -> Refusal | None:
        if isinstance(part, Executed):
            return self._execute(part)
        try:
            for work in statement_rows(changes(part.batch, part.first, part.last, part.mappings)):
                refused = self._do(work)
                if refused is not None:
                    self._broken = True
                    return refused
        except ApplyError as error:
            self._broken = True
            return Refusal.of(error)
        self._journal.add(part)
        return None

    def _do(self, work: StatementRows) -> Refusal | None:
        """Run one statement. Rows that it does not find are a refusal."""
        statements = self._statements_of(work.mapping)
        if work.alone is not None:
            single = statements.one(work.alone)
            if single is None:
                return None
            count, refused = self._run(*single)
        else:
            text = statements.many(work.kind, work.columns)
            if not text:
                return None
            self._connection.register(ROWS, arrow_rows(work.rows, statements.arrays(work.columns)))
            count, refused = self._run(text)
        found = work.kind in (ChangeKind.INSERT, ChangeKind.TRUNCATE) or count == len(work.rows)
        return refused or (None if found else Refusal.of_missing(len(work.rows), count))

    def _run(self, text: str, values: Sequence[str] = ()) -> tuple[int, Refusal | None]:
        """Run a statement and return the number of rows it changed. Raises ConnectionLostError."""
        import duckdb

        try:
            rows = self._connection.execute(text, list(values)).fetchall()
        except duckdb.Error as error:
            self._broken = True
            return 0, refusal(error)
        return (int(rows[0][0]) if rows else 0), None

    def _collision(self, change: Change) -> Refusal | None:
        """Check whether a row with the key of an insert already exists.

        The query runs only after a savepoint. There it is worth its cost, because an error would end the transaction, and
        everything before the savepoint would have to be applied again.
        """
        if self._savepoint is None or change.kind is not ChangeKind.INSERT:
            return None
        there = self._statements_of(change.mapping).conflicting_rows(change)
        if there is None or not session.execute(self._connection, *there):
            return None
        return Refusal("a row with this key already exists", UNIQUE)

    def _statements_of(self, mapping: TableMapping) -> DuckDBStatements:
        # Keyed by identity: hashing a mapping would read all its columns. The statements keep the mapping alive.
        known = self._statements.get(id(mapping))
        if known is None:
            known = self._statements[id(mapping)] = DuckDBStatements(mapping)
        return known


# What a transaction has applied so far, instead of a savepoint, which DuckDB does not have.


JOURNAL_BYTES = 256 << 20
"""Maximum bytes of a transaction that are kept. A larger transaction cannot be applied again."""


class Part(NamedTuple):
    """Rows of a batch to apply; ``singly`` means that they came one at a time."""

    batch: ChangeBatch
    first: int
    last: int
    mappings: dict[int, TableMapping]
    singly: bool = False

    @property
    def size(self) -> int:
        return self.batch.size(self.first, self.last)


class Executed(NamedTuple):
    """DuckDB's statements for one DDL statement."""

    texts: tuple[str, ...]
    last: int = 0
    size: int = 0


class JournalPosition(NamedTuple):
    """A position within a transaction: the number of parts applied, the parts kept, and the end of the last one."""

    done: int
    parts: int
    last: int


class Journal:
    """The parts applied since the transaction began."""

    def __init__(self) -> None:
        self._parts: list[Part | Executed] = []
        self._bytes = 0
        self._done = 0

    def add(self, part: Part | Executed) -> None:
        """Record what was applied. Adjacent single rows become one part, which is applied again as a whole."""
        self._done += 1
        self._bytes += part.size
        if self._bytes > JOURNAL_BYTES:
            self._parts.clear()
            return
        before = self._parts[-1] if self._parts else None
        if isinstance(before, Part) and isinstance(part, Part) and _follows(before, part):
            self._parts[-1] = before._replace(last=part.last, mappings={**before.mappings, **part.mappings})
        else:
            self._parts.append(part)

    def position(self) -> JournalPosition:
        return JournalPosition(self._done, len(self._parts), self._parts[-1].last if self._parts else 0)

    def moved(self, savepoint: JournalPosition) -> bool:
        """Whether anything was applied since the savepoint."""
        return self._done != savepoint.done

    def until(self, savepoint: JournalPosition) -> list[Part | Executed] | None:
        """What was applied before a savepoint. None if it is no longer kept."""
        if self._bytes > JOURNAL_BYTES:
            return None
        parts = self._parts[: savepoint.parts]
        if parts:
            parts[-1] = parts[-1]._replace(last=savepoint.last)
        return parts


def _follows(before: Part, part: Part) -> bool:
    """Whether a single row directly follows other single rows, and its table is mapped the same way."""
    if not (before.singly and part.singly) or before.batch is not part.batch or before.last != part.first:
        return False
    return all(before.mappings.get(number, mapping) is mapping for number, mapping in part.mappings.items())
