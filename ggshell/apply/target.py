"""What apply needs of a database, and what it says about tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ggshell.apply.error_rules import ErrorRules
from ggshell.record.definition import TableDefinition
from ggshell.types import Csn, TableName, TrailPosition

if TYPE_CHECKING:
    from ggshell.record.change import ChangeBatch


class TargetColumn(NamedTuple):
    """A column of a target table.

    ``base_type`` is the type without length or precision (what a value is cast to before it is compared); ``writable`` is
    false for generated columns; ``comparable``: the type has an equality; ``exact``: equal values of it have one text form
    (numeric has not: 1.0 = 1.00); ``identity_always``: the database lets nobody update it.
    """

    name: str
    type_name: str
    base_type: str = ""
    writable: bool = True
    comparable: bool = True
    exact: bool = True
    identity_always: bool = False


class ForeignKey(NamedTuple):
    """Columns of a table that refer to a parent's."""

    columns: tuple[str, ...]
    parent: TableName
    parent_columns: tuple[str, ...]


class TargetTable(NamedTuple):
    """A target table as its catalog describes it.

    ``key`` is the primary key, ``unique`` every set of columns that a unique index covers, by names; ``bulk``: rows can be
    copied in; ``cascades``: the tables whose deleted rows take rows of this one with them; ``foreign``: its foreign keys,
    ``referenced``: other tables have some on it; ``opaque``: it has a unique rule that columns alone do not tell (an
    expression, an exclusion, NULLs that are not distinct).
    """

    name: TableName
    columns: tuple[TargetColumn, ...]
    key: tuple[str, ...] = ()
    unique: tuple[frozenset[str], ...] = ()
    partitioned: bool = False
    bulk: bool = True
    cascades: tuple[TableName, ...] = ()
    foreign: tuple[ForeignKey, ...] = ()
    referenced: bool = False
    opaque: bool = False


class TableMapping(NamedTuple):
    """How rows of a source table become rows of a target table.

    ``columns``: for each source column index its target column, None where it is left out.  ``key``: the source column
    indexes that find a row; ``single``: they find one row at most.  ``compared_updates``, ``compared_deletes``: others whose
    old values, where a record holds them, must be those of the target's row (COMPARECOLS).  ``refusals``: REPERROR within the
    MAP, None where there is none.
    """

    source: TableDefinition
    target: TargetTable
    columns: tuple[TargetColumn | None, ...]
    key: tuple[int, ...]
    single: bool
    compared_updates: frozenset[int] = frozenset()
    compared_deletes: frozenset[int] = frozenset()
    refusals: ErrorRules | None = None

    def column(self, index: int) -> TargetColumn:
        """The target column of a source column that is mapped.  Raises ValueError for one that is not."""
        column = self.columns[index]
        if column is None:
            raise ValueError(f"column {index} is not mapped")
        return column

    def writable(self, index: int) -> bool:
        """Whether a source column's values can be written."""
        column = self.columns[index]
        return column is not None and column.writable


class Split(NamedTuple):
    """A source transaction of which only the first ``operations`` are applied (MAXTRANSOPS)."""

    csn: Csn
    xid: str
    operations: int


class CheckpointRow(NamedTuple):
    """A Replicat's row of the checkpoint table: where to read on, and the last transaction that is applied whole.

    ``restart`` is LOGBSN; ``same_csn`` the ids of all transactions applied that share ``csn`` (the last one's id alone where
    no two do); ``split`` the transaction that follows when a part of it is applied already: ``position`` is its begin.
    """

    position: TrailPosition
    csn: Csn | None
    xid: str = ""
    commit_time: int = 0
    restart: int = 0
    same_csn: tuple[str, ...] = ()
    split: Split | None = None


class BatchLimits(NamedTuple):
    """BATCHSQL's limits, None where a target's own are best: rows of one statement (OPSPERBATCH), and how many rows, bytes and
    statements gather before they are sent (OPSPERQUEUE, BYTESPERQUEUE, BATCHESPERQUEUE)."""

    batch_rows: int | None = None
    queue_rows: int | None = None
    queue_bytes: int | None = None
    queue_batches: int | None = None


NO_LIMITS = BatchLimits()


class Refusal(NamedTuple):
    """A target's refusal of an operation or a commit: what it said, its SQLSTATE, whether the row to change was missing,
    whether the same may succeed when it is tried again (deadlock, serialization, lock time-out)."""

    text: str
    state: str = ""
    missing: bool = False
    transient: bool = False


class Target(Protocol):
    """A database that rows are applied to, one transaction at a time.

    ``apply`` and ``commit`` may send and not wait, so a refusal may concern anything sent since the last ``settle``; after
    one, ``rollback`` or ``back_to_mark`` must follow.  Every method may raise ConnectionLostError: what was committed then is
    for the checkpoint row to say, after ``reconnect``.
    """

    @property
    def confirmed(self) -> int:
        """How many commits are known to have succeeded on this connection."""
        ...

    def describe(self, table: TableName) -> TargetTable | None:
        """A table, None when it does not exist.  Everything sent must be settled."""
        ...

    def fetch(self, mapping: TableMapping, key: Mapping[int, bytes | None]) -> dict[int, bytes | None] | None:
        """The present row with a key, by the source's column indexes, and locked; None where there is none.  Everything sent
        must be settled."""
        ...

    def checkpoint(self) -> CheckpointRow | None:
        """The group's row of the checkpoint table, None when there is none."""
        ...

    def apply(self, batch: ChangeBatch, first: int, last: int, mappings: dict[int, TableMapping]) -> Refusal | None:
        """Apply rows ``first`` to ``last - 1``; ``mappings`` by the batch's table numbers, rows of others are left out."""
        ...

    def apply_one(self, batch: ChangeBatch, row: int, mapping: TableMapping) -> Refusal | None:
        """Apply one row and wait for the answer."""
        ...

    def commit(self, row: CheckpointRow, ids: Sequence[str] = ()) -> Refusal | None:
        """Write the checkpoint row, or name the transactions (``ids``) that end here, and commit, all in one transaction."""
        ...

    def settle(self) -> Refusal | None:
        """Wait until everything sent is answered, commits included."""
        ...

    def mark(self) -> Refusal | None:
        """Settle, and remember this place within the transaction."""
        ...

    def back_to_mark(self) -> bool:
        """Undo what came after the mark; False when the transaction is gone altogether."""
        ...

    def rollback(self) -> None:
        """Forget everything that is not committed, also what was never sent."""
        ...

    def durable(self) -> None:
        """Return when everything that was committed would survive a crash of the target."""
        ...

    def reconnect(self) -> None:
        """Open a new connection in place of a lost one."""
        ...

    def close(self) -> None: ...


class GroupTarget(Target, Protocol):
    """The target of a whole group, which can tell what it is; ``found``: the checkpoint table had a row of it."""

    found: bool

    def move(self, position: TrailPosition) -> None:
        """Read on from another place of the trail; what is applied stays known, and is left out there."""
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
        """What @GETENV's DBENVIRONMENT tells; everything sent must be settled."""
        ...
