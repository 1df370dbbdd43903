"""A DuckDB file as a target: many groups gather into one transaction with the last of their checkpoint rows.

A statement costs milliseconds, whatever number of rows it has, and a commit tens; so changes are folded into few statements,
and commits wait until enough has gathered or somebody wants to know (``settle``).  An error ends a DuckDB transaction, and
there are no savepoints: to go back to a mark, what came before it is done again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ggshell.apply.checkpoint_table import group_key
from ggshell.apply.error_rules import UNIQUE
from ggshell.apply.target import CheckpointRow, Refusal, TableMapping, TargetTable
from ggshell.clock import Clock, SystemClock
from ggshell.databases.duckdb import checkpoint_sql, session
from ggshell.databases.duckdb.arrow_rows import arrow_rows
from ggshell.databases.duckdb.changes import Change, Kind, changes
from ggshell.databases.duckdb.folding import Work, works
from ggshell.databases.duckdb.journal import Journal, Marked, Part
from ggshell.databases.duckdb.refusals import missing, refusal
from ggshell.databases.duckdb.statements import ROWS, Statements
from ggshell.databases.duckdb.target_tables import target_table
from ggshell.errors import ApplyError
from ggshell.record.change import ChangeBatch
from ggshell.types import TableName, TrailPosition

if TYPE_CHECKING:
    import duckdb

GATHER_ROWS = 50_000
"""Rows that gather before they are applied and their commits done in one."""

GATHER_BYTES = 32 << 20
GATHER_SECONDS = 0.5
"""How long a commit waits for others at most, while rows keep coming."""

FIRST_GATHER = 1
"""How many rows gather after a refusal: the next one is found the sooner, and the number doubles with each commit."""


class DuckTarget:
    """The one connection that applies one group's rows."""

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
    ) -> None:
        """``begin``: the group's first row, when the checkpoint table has none yet.  Without a ``table`` the target keeps no
        position (NODBCHECKPOINT).  ``gather``: rows that one transaction takes, if more than one group gives.

        Raises DatabaseError, ConflictError, NotFoundError."""
        self._login = login
        self._group = group
        self._home = home
        self._table = table
        self._key = group_key(group, home)
        self.found = False
        self._begin = CheckpointRow(begin, None) if isinstance(begin, TrailPosition) else begin
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
        self._marked: Marked | None = None
        self._connect()

    @property
    def key(self) -> int:
        """The group's key in the checkpoint table."""
        return self._key

    @property
    def database(self) -> str:
        """The name of the database."""
        return session.database_name(self._login)

    def database_facts(self) -> dict[str, str]:
        """What @GETENV's DBENVIRONMENT tells."""
        ((version,),) = session.execute(self._connection, "SELECT version()")
        return {"DBNAME": self.database, "DBUSER": "duckdb", "DBVERSION": str(version)}

    @property
    def confirmed(self) -> int:
        return self._commits

    def describe(self, table: TableName) -> TargetTable | None:
        return target_table(self._connection, table)

    def fetch(self, mapping: TableMapping, key: Mapping[int, bytes | None]) -> dict[int, bytes | None] | None:
        rows = session.execute(self._connection, *self._of(mapping).fetch(key))
        if not rows:
            return None
        indexes = [index for index, column in enumerate(mapping.columns) if column is not None]
        return {
            index: None if text is None else str(text).encode() for index, text in zip(indexes, rows[0], strict=True)
        }

    def move(self, position: TrailPosition) -> None:
        """Read on from another place of the trail; what is applied stays known, and is left out there."""
        if self._table is not None:
            checkpoint_sql.move(self._connection, self._table, self._group, self._key, position)

    def checkpoint(self) -> CheckpointRow | None:
        if self._table is None:
            return None
        return checkpoint_sql.read(self._connection, self._table, self._group, self._key)

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
        refused = self.settle()
        if refused is not None:
            return refused
        number = int(batch.table[row])
        try:
            found = changes(batch, row, row + 1, {number: mapping})
        except ApplyError as error:
            return Refusal(error.message)
        self._ensure_begun()
        for change in found:
            refused = self._collision(change) or self._do(
                Work(mapping, change.kind, change.columns, [change.values], change)
            )
            if refused is not None:
                return refused
        self._journal.add(Part(batch, row, row + 1, {number: mapping}, singly=True))
        return None

    def commit(self, row: CheckpointRow, ids: Sequence[str] = ()) -> Refusal | None:
        """The commit itself waits until enough has gathered."""
        if ids:
            raise ApplyError("a DuckDB file has one writer: no lanes can name transactions in it")
        self._whole += self._open
        self._open = []
        now = self._clock.steady()
        if self._boundary is None:
            self._since = now
        self._boundary = row
        self._waiting += 1
        few = self._worked + self._rows < self._gather and self._bytes < GATHER_BYTES
        return None if few and now < self._since + GATHER_SECONDS else self._commit_whole()

    def settle(self) -> Refusal | None:
        return self._commit_whole() or self._work_open()

    def mark(self) -> Refusal | None:
        refused = self.settle()
        if refused is None:
            self._ensure_begun()
            self._marked = self._journal.mark()
        return refused

    def back_to_mark(self) -> bool:
        marked = self._marked
        if marked is None:
            self.rollback()
            return False
        if not self._broken and not self._open and not self._journal.moved(marked):
            return True
        parts = self._journal.until(marked)
        self.rollback()
        self._ensure_begun()
        if parts is None or any(self._work(part) is not None for part in parts):
            self.rollback()
            return False
        self._marked = self._journal.mark()
        return True

    def rollback(self) -> None:
        if self._begun:
            self._begun = False
            session.execute(self._connection, "ROLLBACK")
        self._forget()
        self._gather = FIRST_GATHER

    def durable(self) -> None:
        """Each commit waits for the disk."""

    def reconnect(self) -> None:
        """Raises DatabaseError, ConflictError."""
        self.close()
        self._connect()

    def close(self) -> None:
        self._connection.close()

    def _connect(self) -> None:
        self._connection: duckdb.DuckDBPyConnection = session.connect(self._login)
        self._statements: dict[int, Statements] = {}
        self._begun = False
        self._forget()
        try:
            if self._table is not None:
                checkpoint_sql.require(self._connection, self._table)
                added = checkpoint_sql.insert(
                    self._connection, self._table, self._group, self._key, self._begin, self._home
                )
                self.found = not added
        except BaseException:
            self._connection.close()
            raise

    def _forget(self) -> None:
        """Nothing is under way: neither gathered rows nor a transaction."""
        self._whole, self._open, self._boundary = [], [], None
        self._rows = self._bytes = self._waiting = 0
        self._new_transaction()

    def _new_transaction(self) -> None:
        self._journal = Journal()
        self._marked, self._broken = None, False
        self._worked = 0

    def _ensure_begun(self) -> None:
        if not self._begun:
            session.execute(self._connection, "BEGIN")
            self._begun = True

    def _commit_whole(self) -> Refusal | None:
        """Apply and commit what lies before the last boundary."""
        if self._boundary is None:
            return None
        self._ensure_begun()
        refused = self._work_all(self._whole)
        if refused is not None:
            return refused
        if self._table is not None and not checkpoint_sql.update(
            self._connection, self._table, self._group, self._key, self._boundary
        ):
            self.rollback()
            raise ApplyError(
                f"group {self._group.upper()} has no row in checkpoint table {self._table} any more",
                code="GGS-00516",
                hint="restart the group: it takes the position of its checkpoint file",
            )
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
        """Apply the rows of the group that is not whole yet."""
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

    def _work(self, part: Part) -> Refusal | None:
        try:
            for work in works(changes(part.batch, part.first, part.last, part.mappings)):
                refused = self._do(work)
                if refused is not None:
                    self._broken = True
                    return refused
        except ApplyError as error:
            self._broken = True
            return Refusal(error.message)
        self._journal.add(part)
        return None

    def _do(self, work: Work) -> Refusal | None:
        """Carry out one statement; the rows that it does not find are a refusal."""
        statements = self._of(work.mapping)
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
        found = work.kind in (Kind.INSERT, Kind.TRUNCATE) or count == len(work.rows)
        return refused or (None if found else missing(len(work.rows), count))

    def _run(self, text: str, values: Sequence[str] = ()) -> tuple[int, Refusal | None]:
        """Run a statement; how many rows it changed.  Raises ConnectionLostError."""
        import duckdb

        try:
            rows = self._connection.execute(text, list(values)).fetchall()
        except duckdb.Error as error:
            self._broken = True
            return 0, refusal(error)
        return (int(rows[0][0]) if rows else 0), None

    def _collision(self, change: Change) -> Refusal | None:
        """Whether a row with the key of an insert is there already, asked where the answer is worth more than the question:
        an error would end the transaction, and what came before the mark would be to do again."""
        if self._marked is None or change.kind is not Kind.INSERT:
            return None
        there = self._of(change.mapping).there(change)
        if there is None or not session.execute(self._connection, *there):
            return None
        return Refusal("a row with this key is there already", UNIQUE)

    def _of(self, mapping: TableMapping) -> Statements:
        # Keyed by identity: hashing a mapping would read all its columns, and the statements keep it alive.
        known = self._statements.get(id(mapping))
        if known is None:
            known = self._statements[id(mapping)] = Statements(mapping)
        return known
