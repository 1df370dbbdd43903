"""The interface that apply requires of a target database, and the descriptions of tables that it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from ggshell.errors import ApplyError, ConnectionLostError
from ggshell.types import Csn, TableName, TrailPosition

if TYPE_CHECKING:
    from ggshell.pipeline.apply.error_rules import ErrorRules, Switches
    from ggshell.record.change import ChangeBatch
    from ggshell.record.ddl import DdlStatement
    from ggshell.record.definition import TableDefinition


class TargetColumn(NamedTuple):
    """A column of a target table.

    ``base_type``: the type without length or precision, to which a value is cast before it is compared; ``writable``: False
    for generated columns; ``comparable``: the type has an equality operator; ``exact``: equal values have the same text
    form (not so for numeric: 1.0 = 1.00); ``identity_always``: the database does not allow updates; ``holds``: if
    ``type_name`` is a domain, its underlying type with length or precision (empty: ``type_name`` itself); ``renewed``: an
    update that does not set the column changes it (ON UPDATE CURRENT_TIMESTAMP).
    """

    name: str
    type_name: str
    base_type: str = ""
    writable: bool = True
    comparable: bool = True
    exact: bool = True
    identity_always: bool = False
    holds: str = ""
    renewed: bool = False


class ForeignKey(NamedTuple):
    """Columns of a table that reference a parent's columns.

    ``same_text``: equal values of both have the same text form, if the types are exact.
    """

    columns: tuple[str, ...]
    parent: TableName
    parent_columns: tuple[str, ...]
    same_text: bool = True


class TargetTable(NamedTuple):
    """A target table as the database catalog describes it.

    ``key``: the primary key; ``unique``: each set of columns that a unique index covers, by name; ``routed``: a trigger may
    insert rows into another table, such as an inheritance child, which then belong to this one; ``bulk``: rows can be
    loaded with COPY; ``cascades``: the tables whose deletes cascade to its rows, directly or not; ``followed``: those whose
    updates of a key do; ``foreign``: foreign keys; ``referenced``: other tables have foreign keys to it; ``referred``: each
    set of its columns that they refer to, which need not be unique in every database; ``opaque``: it has a uniqueness rule
    that columns alone do not express (an expression, an exclusion constraint, NULLs that are not distinct); ``shape``:
    identifies this version of the table's structure, and is never reused after a change (empty if nothing else can change
    the table).
    """

    name: TableName
    columns: tuple[TargetColumn, ...]
    key: tuple[str, ...] = ()
    unique: tuple[frozenset[str], ...] = ()
    partitioned: bool = False
    routed: bool = False
    bulk: bool = True
    cascades: tuple[TableName, ...] = ()
    foreign: tuple[ForeignKey, ...] = ()
    referenced: bool = False
    opaque: bool = False
    shape: str = ""
    followed: tuple[TableName, ...] = ()
    referred: tuple[frozenset[str], ...] = ()


class TableMapping(NamedTuple):
    """How rows of a source table become rows of a target table.

    ``columns``: the target column of each source column index, None if it is left out. ``key``: the source column indexes
    that identify a row; ``single``: they match one row at most. ``compared_updates``, ``compared_deletes``: other columns
    whose old values, if a record holds them, must match the target's row (COMPARECOLS). ``refusals``: REPERROR in the MAP
    statement, None if it has none. ``switches``: those in effect for the MAP statement, None for those of the file.
    """

    source: TableDefinition
    target: TargetTable
    columns: tuple[TargetColumn | None, ...]
    key: tuple[int, ...]
    single: bool
    compared_updates: frozenset[int] = frozenset()
    compared_deletes: frozenset[int] = frozenset()
    refusals: ErrorRules | None = None
    switches: Switches | None = None

    def column(self, index: int) -> TargetColumn:
        """Return the target column of a mapped source column. Raises ValueError if the column is not mapped."""
        column = self.columns[index]
        if column is None:
            raise ValueError(f"column {index} is not mapped")
        return column

    def writable(self, index: int) -> bool:
        """Whether a source column's values can be written to the target."""
        column = self.columns[index]
        return column is not None and column.writable


class Split(NamedTuple):
    """A source transaction of which only the first ``operations`` operations are applied (MAXTRANSOPS)."""

    csn: Csn
    xid: str
    operations: int


class CheckpointRow(NamedTuple):
    """A Replicat's row in the checkpoint table: where to continue reading, and the last transaction applied as a whole.

    ``restart``: LOGBSN; ``same_csn``: the ids of all applied transactions that share ``csn`` (only the last one's id if it
    is the only one); ``split``: the following transaction if a part of it is applied; ``position`` is then its beginning.
    """

    position: TrailPosition
    csn: Csn | None
    xid: str = ""
    commit_time: int = 0
    restart: int = 0
    same_csn: tuple[str, ...] = ()
    split: Split | None = None


class BatchLimits(NamedTuple):
    """The limits of BATCHSQL; None uses the target's default.

    Rows per statement (OPSPERBATCH), and the rows, bytes and statements that are collected before they are sent
    (OPSPERQUEUE, BYTESPERQUEUE, BATCHESPERQUEUE)."""

    batch_rows: int | None = None
    queue_rows: int | None = None
    queue_bytes: int | None = None
    queue_batches: int | None = None


NO_LIMITS = BatchLimits()


class SessionOptions(NamedTuple):
    """DBOPTIONS: whether to suppress the target's triggers and foreign keys, and to defer constraints to the commit.

    ``any_engine``: whether tables without transactions are allowed."""

    suppress_triggers: bool = False
    defer_constraints: bool = False
    any_engine: bool = False


PLAIN_SESSION = SessionOptions()


class Refusal(NamedTuple):
    """A target's refusal of an operation or a commit.

    ``text``: the target's message; ``state``: its SQLSTATE; ``missing``: the row to change does not exist; ``transient``:
    a retry may succeed (deadlock, serialization failure, lock timeout); ``code`` and ``hint``: set if ggshell itself
    refuses the operation."""

    text: str
    state: str = ""
    missing: bool = False
    transient: bool = False
    code: str = ""
    hint: str = ""

    @classmethod
    def of(cls, error: ApplyError) -> Refusal:
        """Return the refusal of a record that cannot be applied to any row."""
        return cls(error.message, code=error.code, hint=error.hint)

    def aborted(self, attempts: int = 1) -> ConnectionLostError:
        """Return the error after which the process connects again and repeats what is not committed."""
        times = f" {attempts} times" if attempts > 1 else ""
        return ConnectionLostError(f"the target aborted a transaction{times}: {self.text}")

    @classmethod
    def of_missing(cls, wanted: int, found: int) -> Refusal:
        """Return the refusal of a statement that has found fewer rows than it must change, or more."""
        few = "no row was found" if wanted == 1 else f"{found} of {wanted} rows were found"
        return cls(f"{few} to change", missing=True)


Noted = Callable[[str, str], None]
"""Called with a message code and a text to report."""
DDL_REPORT: Final = "GGS-00579"
"""The code of what became of a DDL statement."""


class TargetNames(Protocol):
    """The names that objects of the source have in the target, by the MAP statements."""

    def table(self, name: TableName) -> TableName:
        """Return the target name of a table, or of another object that may hold rows."""
        ...

    def other(self, name: TableName) -> TableName:
        """Return the target name of an object of another kind."""
        ...

    def schema(self, owner: str) -> str:
        """Return the target name of a schema."""
        ...

    def session_schema(self, owner: str) -> str:
        """Return the target name of a schema in the search path of a statement."""
        ...


class Target(Protocol):
    """A database to which rows are applied, one transaction at a time.

    ``apply`` and ``commit`` may send without waiting, so a refusal may concern anything sent since the last ``await_answers``.
    After a refusal, ``rollback`` or ``rollback_to_savepoint`` must follow. Every method may raise ConnectionLostError; the
    checkpoint row then shows, after ``reconnect``, what was committed. Every method may raise TargetChangedError: a table
    no longer matches its mapping, everything uncommitted is rolled back, and the target must be opened again.

    ``foreign_key_hint``: what helps if the source changed rows that refer to each other, and a foreign key refuses them.
    """

    foreign_key_hint: str

    @property
    def confirmed(self) -> int:
        """The number of commits that are known to have succeeded on this connection."""
        ...

    @property
    def unmarked(self) -> str:
        """Why Extracts of the database cannot tell this connection's changes apart; empty if they can."""
        ...

    def describe(self, table: TableName) -> TargetTable | None:
        """Return a table; None if it does not exist. Everything sent must be answered."""
        ...

    def fetch(self, mapping: TableMapping, key: Mapping[int, bytes | None]) -> dict[int, bytes | None] | None:
        """Lock and return the current row with a key, by the source's column indexes; None if there is none.

        Everything sent must be answered."""
        ...

    def checkpoint(self) -> CheckpointRow | None:
        """Return the group's row of the checkpoint table; None if there is none."""
        ...

    def apply(self, batch: ChangeBatch, first: int, last: int, mappings: dict[int, TableMapping]) -> Refusal | None:
        """Apply rows ``first`` to ``last - 1``; ``mappings`` by the batch's table numbers. Other tables are skipped."""
        ...

    def apply_one(self, batch: ChangeBatch, row: int, mapping: TableMapping) -> Refusal | None:
        """Apply one row and wait for the answer."""
        ...

    def commit(self, row: CheckpointRow, ids: Sequence[str] = ()) -> Refusal | None:
        """Write the checkpoint row, or the ids of the transactions that end here (``ids``), and commit with the rows."""
        ...

    def execute_ddl(self, statement: DdlStatement, names: TargetNames, noted: Noted) -> Refusal | None:
        """Execute a DDL statement in the open transaction, after ``set_savepoint``, and wait for the answer.

        Afterwards ``describe`` returns the new definitions, and rows need new mappings."""
        ...

    def runs_outside(self, statement: DdlStatement) -> bool:
        """Whether a DDL statement can only be executed outside of a transaction."""
        ...

    def execute_outside(
        self, statement: DdlStatement, names: TargetNames, noted: Noted, *, again: bool
    ) -> Refusal | None:
        """Execute a DDL statement outside of a transaction; everything sent must be answered and committed.

        ``again``: it may have been executed before, completely or in part; what it has left is completed or replaced."""
        ...

    def forget_tables(self) -> None:
        """Forget what is known of tables: another connection has changed them. Everything sent must be answered."""
        ...

    def await_answers(self) -> Refusal | None:
        """Wait until everything sent is answered, including commits."""
        ...

    def set_savepoint(self) -> Refusal | None:
        """Wait until everything sent is answered, and set a savepoint."""
        ...

    def rollback_to_savepoint(self) -> bool:
        """Roll back to the savepoint; False if the whole transaction is lost."""
        ...

    def rollback(self) -> None:
        """Roll back everything that is not committed, and drop what was not yet sent."""
        ...

    def durable(self) -> None:
        """Wait until everything committed would survive a crash of the target."""
        ...

    def reconnect(self) -> None:
        """Replace a lost connection with a new one."""
        ...

    def close(self) -> None: ...


class GroupTarget(Target, Protocol):
    """The target of a whole group, with facts about itself; ``found``: the checkpoint table had a row for the group.

    ``takes_sequences``: whether it has sequences whose values can be set."""

    found: bool
    takes_sequences: bool

    def move(self, position: TrailPosition) -> None:
        """Continue from another place in the trail; transactions that are already applied are still skipped there."""
        ...

    @property
    def key(self) -> int:
        """The group's key in the checkpoint table."""
        ...

    @property
    def database(self) -> str:
        """The name of the database."""
        ...

    def database_facts(self) -> dict[str, str]:
        """Return the values of @GETENV ('DBENVIRONMENT'); everything sent must be answered."""
        ...
