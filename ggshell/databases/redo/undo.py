"""Which row of its transaction a ROLLBACK row takes back.

The server undoes a statement, or what came after a savepoint, from the last change to the first, and logs each as the opposite
change of the same row with ROLLBACK = 1.  So the row that is taken back is the last one that is still alive of the same table,
address and opposite operation.
"""

from __future__ import annotations

from typing import NamedTuple

from ggshell.capture.cache import OpenTransaction
from ggshell.databases.redo.messages import mark_of, unpack_row
from ggshell.databases.redo.rows import Operation, RedoRow

_OPPOSITE = {
    Operation.INSERT: Operation.DELETE,
    Operation.DELETE: Operation.INSERT,
    Operation.UPDATE: Operation.UPDATE,
}
_RUN = 10_000


class _Alive(NamedTuple):
    mark: int
    operation: int
    owner: str
    table: str
    row_id: str


class UndoStack:
    """The rows of one transaction that are still alive, in order; made when its first ROLLBACK row comes."""

    def __init__(self, transaction: OpenTransaction) -> None:
        self._alive: list[_Alive] = []
        for _, parts in transaction.runs(_RUN):
            for part in parts:
                for message in part:
                    row = unpack_row(message)
                    self._alive.append(_Alive(row.mark, row.operation, row.owner, row.table, row.row_id))

    def push(self, row: RedoRow, mark: int) -> None:
        """A row that came behind those that the stack was made of."""
        self._alive.append(_Alive(mark, row.operation, row.owner, row.table, row.row_id))

    def take_back(self, row: RedoRow) -> bytes | None:
        """The mark of the row that a ROLLBACK row takes back; None when there is none."""
        wanted = _OPPOSITE.get(Operation(row.operation))
        for at in range(len(self._alive) - 1, -1, -1):
            found = self._alive[at]
            if (
                found.operation == wanted
                and (found.owner, found.table) == (row.owner, row.table)
                and (not row.row_id or not found.row_id or found.row_id == row.row_id)
            ):
                del self._alive[at]
                return mark_of(found.mark)
        return None
