"""The interface of an initial load to its source database: tables as of one snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ggshell.connectors.connector import DatabaseFacts
from ggshell.record.change import ChangeBatch
from ggshell.record.definition import TableDefinition
from ggshell.record.operation import IoType
from ggshell.record.transaction import TransactionHeader, TransactionPiece
from ggshell.types import Csn, TableName

Wait = Callable[[int], bool]
"""Waits until a descriptor is readable; False when the work is to end instead."""


class LoadTable(NamedTuple):
    """A table to read: its definition, and whether it is partitioned (its rows are then in other tables)."""

    definition: TableDefinition
    partitioned: bool = False


class TableSnapshot(Protocol):
    """A snapshot, and the tables in it."""

    csn: Csn
    """The last commit that the snapshot contains."""
    time: int
    """When it was taken, by the database's clock, in microseconds since 1970."""

    def tables(
        self, patterns: Sequence[str], wanted: Callable[[TableName], bool], keys: Callable[[TableName], tuple[str, ...]]
    ) -> list[LoadTable]:
        """Return the wanted tables of some patterns, each once, with referenced tables before those that refer to them.

        ``keys``: returns the KEYCOLS of a table. Raises NotFoundError for a pattern that matches no table.
        """
        ...

    def left_out(self, patterns: Sequence[str], wanted: Callable[[TableName], bool]) -> list[TableName]:
        """Return the tables that patterns match but whose later changes are not in the log."""
        ...

    def about(self, table: TableName) -> int:
        """Return the approximate number of rows of a table; 0 if it is unknown."""
        ...

    def read(self, number: int, table: LoadTable, predicate: str = "") -> Iterator[ChangeBatch]:
        """Return the rows of a table as the inserts of one transaction, in batches.

        ``number`` distinguishes this transaction from others with the same CSN. ``predicate``: a ``WHERE …`` clause.
        Raises DatabaseError, ConnectionLostError.
        """
        ...

    def close(self) -> None:
        """Release the snapshot."""
        ...


class TableSource(Protocol):
    """A database whose tables can be read as of one snapshot."""

    def facts(self) -> DatabaseFacts:
        """Return the facts of the database. Raises ConnectionLostError, DatabaseError."""
        ...

    def snapshot(self, group: str, wait: Wait) -> TableSnapshot | None:
        """Take a snapshot; None if ``wait`` says to end. Raises ConnectionLostError, DatabaseError."""
        ...


def loaded_rows(
    definition: TableDefinition,
    header: TransactionHeader,
    buffer: NDArray[np.uint8],
    places: tuple[NDArray[np.int64], NDArray[np.int64]],
    *,
    begins: bool,
) -> ChangeBatch:
    """Return rows as inserts of one transaction, which does not end with them.

    ``places``: where the image of each row starts in ``buffer``, and its length.
    """
    start, length = places
    count = len(start)
    return ChangeBatch(
        tables=(definition,),
        table=np.zeros(count, dtype=np.uint16),
        io_type=np.full(count, int(IoType.INSERT), dtype=np.uint8),
        position=np.full(count, header.csn.value, dtype=np.uint64),
        buffer=buffer.tobytes(),
        start=start,
        length=length,
        rba=np.zeros(count, dtype=np.int64),
        pieces=(TransactionPiece(header, 0, count, begins, False),),
    )


def parents_first(names: Iterable[TableName], parents: Mapping[TableName, Sequence[TableName]]) -> list[TableName]:
    """Return tables, and those that they refer to, each after those that it refers to.

    If tables refer to each other, the first one found comes last.
    """
    ordered: dict[TableName, None] = {}

    def put(name: TableName, on_way: set[TableName]) -> None:
        if name in ordered or name in on_way:
            return
        on_way.add(name)
        for parent in parents.get(name, ()):
            put(parent, on_way)
        ordered[name] = None

    for name in names:
        put(name, set())
    return list(ordered)
