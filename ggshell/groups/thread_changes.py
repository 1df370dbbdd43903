"""Check that MAP still assigns rows to the threads that may have applied them.

Each thread of a coordinated Replicat has its own row in the checkpoint table, which covers everything that was assigned to it.
After a run that did not stop cleanly, threads have applied transactions that the group's row does not cover. If MAP assigned
the rows of such a transaction to another thread now, they would be skipped or applied again, by the row of that thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ggshell.errors import StateError
from ggshell.home.checkpoint import AssignedThreads
from ggshell.pipeline.apply.target import CheckpointRow
from ggshell.record.change import ChangeBatch
from ggshell.record.name_patterns import matches
from ggshell.trail.name import TrailName
from ggshell.trail.reader import TrailReader
from ggshell.types import Csn, TableName

Assigned = Sequence[AssignedThreads]
CHANGED = "GGS-00566"


def require_same_threads(
    trail: TrailName, start: CheckpointRow, reached: Csn | None, before: Assigned, now: Assigned
) -> None:
    """Check the transactions between the group's row and the furthest row of its threads (``reached``).

    ``before``: the threads of the run before, empty if they are not known. Raises StateError for a table that has rows in
    these transactions and other threads now; TrailError.
    """
    if not before or before == now or reached is None or (start.csn is not None and reached < start.csn):
        return
    for table in _tables(trail, start, reached):
        earlier, present = _assignment(before, table), _assignment(now, table)
        if present is not None and present != earlier:
            raise StateError(
                f"MAP assigns {table} to {_words(present)}, but the last run assigned it to {_words(earlier)} and did not"
                f" stop cleanly: its threads have applied different transactions up to CSN {reached}",
                code=CHANGED,
                hint="assign the table as before, START the group, and STOP it (not KILL) when the threads have caught up; then"
                " change the threads",
            )


def _tables(trail: TrailName, start: CheckpointRow, reached: Csn) -> Iterator[TableName]:
    """Yield the tables of the transactions after the group's row up to a CSN."""
    reader = TrailReader(trail, start.position)
    try:
        while (batch := reader.read()) is not None:
            yield from _tables_of(batch, start.csn, reached)
            if batch.pieces[-1].header.csn > reached:
                return
    finally:
        reader.close()


def _tables_of(batch: ChangeBatch, low: Csn | None, high: Csn) -> Iterator[TableName]:
    rows = np.zeros(len(batch), dtype=np.bool_)
    for piece in batch.pieces:
        if (low is None or piece.header.csn >= low) and piece.header.csn <= high:
            rows[piece.first : piece.first + piece.count] = True
    for number in np.unique(batch.table[rows]).tolist():
        yield batch.tables[number].name


def _assignment(assigned: Assigned, table: TableName) -> AssignedThreads | None:
    """Return the threads of a table by the first MAP that selects it, without the names in MAP; None if there is no MAP."""
    found = next((each for each in assigned if matches(each.source, table)), None)
    return None if found is None else found._replace(source="")


def _words(assigned: AssignedThreads | None) -> str:
    if assigned is None:
        return "no thread"
    if assigned.barrier:
        return "all threads (COORDINATED)"
    if assigned.first == assigned.last:
        return f"thread {assigned.first}"
    by = f" by {', '.join(assigned.columns)}" if assigned.columns else ""
    return f"threads {assigned.first} to {assigned.last}{by}"
