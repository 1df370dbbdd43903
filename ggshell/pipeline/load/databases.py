"""What LOAD asks of the two databases. All methods raise DatabaseError and ConnectionLostError."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from ggshell.pipeline.load.tasks import RunTask
from ggshell.types import Csn, TableName

Wait = Callable[[int], bool]
"""Waits until a descriptor is readable; False when the work is to end instead."""


class SourceTable(NamedTuple):
    """A table with rows of its own. ``columns``: names and types of those with stored values.

    ``bytes``, ``blocks``, ``rows``: its size, its pages and about how many rows it has. ``portable``: the binary form of
    every column is the same in each version of the database. ``logged``: later changes are in the log. ``secured``: row
    security hides rows from the user. ``root``: the table by whose name the log has the changes of this partition.
    """

    name: TableName
    columns: tuple[tuple[str, str], ...]
    bytes: int
    blocks: int
    rows: int
    portable: bool
    logged: bool = True
    secured: bool = False
    root: TableName | None = None


class Definitions(NamedTuple):
    """The definitions of the source: statements before and after the rows, and what they need.

    ``sum`` identifies them. ``removal``: the statements that remove the objects. ``roles``: the roles that they name.
    """

    before: tuple[RunTask, ...]
    after: tuple[RunTask, ...]
    removal: str
    sum: str
    roles: frozenset[str]


NO_DEFINITIONS = Definitions((), (), "", "", frozenset())


LOCK_MILLISECONDS: Final = 2000
"""How long a job, or the program that reads the definitions, waits for its locks on tables of the source.

The snapshot has locked the same tables, so they wait only for DDL that itself waits for the snapshot's locks. The
server cannot detect this deadlock, and every later statement on the table would wait as well.
"""


class LoadSnapshot(Protocol):
    """A snapshot of the source, with locks that keep its tables as they are. ``csn``: the last commit in it."""

    csn: Csn
    setup: Any
    """What the jobs need in order to read it, without the target."""
    divides: bool
    """Whether a range of pages can be read without reading the whole table."""
    encoding: str
    """The encoding that both streams must use; empty if it does not matter."""

    def tables(self) -> Sequence[SourceTable]: ...

    def definitions(self) -> Definitions:
        """Raises NotFoundError if the program that reads them is missing or too old."""
        ...

    def sequences(self, *, every: bool) -> Sequence[RunTask]:
        """The statements that set the sequences: those of the tables, or all of their schemas."""
        ...

    def views(self) -> Sequence[RunTask]:
        """The statements that fill the materialized views which have rows in the source."""
        ...

    def parents(self) -> Sequence[TableName]:
        """The tables whose rows are all in their partitions."""
        ...

    def close(self) -> None: ...


class TargetTable(NamedTuple):
    """A table of the target. ``empty``: it has no row; ``referenced``: foreign keys refer to it; ``fires``: it has triggers."""

    columns: tuple[tuple[str, str], ...]
    empty: bool
    referenced: bool
    fires: bool
    secured: bool


class TableRecord(Protocol):
    """What the target has recorded about a table."""

    @property
    def csn(self) -> str: ...
    @property
    def rows(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    @property
    def complete(self) -> bool: ...


class LoadTarget(Protocol):
    """The target of a load."""

    @property
    def books(self) -> LoadRecords: ...

    def tables(self, names: Iterable[TableName]) -> dict[TableName, TargetTable]:
        """Those of some tables that exist."""
        ...

    def missing_roles(self, roles: Iterable[str]) -> list[str]: ...

    def silent(self) -> bool:
        """Whether this user may keep triggers from firing."""
        ...

    def empty(self, table: TableName) -> None:
        """Remove the rows of a table, and what is recorded about it."""
        ...

    def remove(self, statements: str) -> None:
        """Remove the definitions of an earlier load, and everything that is recorded."""
        ...

    def job_setup(self, source: Any) -> Any:
        """Return the setup of a job for the snapshot's setup."""
        ...

    def analyze(self, table: TableName, *, parent: bool = False) -> str:
        """The statement that computes the statistics of a table."""
        ...

    def close(self) -> None: ...


class LoadRecords(Protocol):
    """The bookkeeping in the target."""

    def lock(self) -> bool: ...
    def create(self) -> None: ...
    def definitions(self) -> tuple[str, str] | None: ...
    def record_definitions(self, content: str, removal: str) -> None: ...
    def tables(self) -> Any: ...
    def entries(self) -> set[str]: ...
    def forget_entries(self, keys: Iterable[str] | None = None) -> None: ...
