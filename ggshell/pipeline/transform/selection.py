"""Selects rows of batches and keeps transactions well-formed.

The rest of a transaction must still begin once and end once, even if a large transaction arrives in several pieces and
its first or last piece loses all rows. The last rows of an unfinished transaction are therefore held until either more
of its rows arrive or its end is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ggshell.record.change import ChangeBatch
from ggshell.record.definition import TableDefinition
from ggshell.record.operation import DDL_OPERATIONS, NO_OPERATIONS, TRUNCATES
from ggshell.record.sequences import is_sequence
from ggshell.record.transaction import Completed, TransactionPiece
from ggshell.types import TableName


class Selection:
    """Passes on the rows of selected tables, except those of transactions that the output already holds.

    ``after``: the transactions that the output holds; they are dropped completely. The rules, each tested by its
    number:
    1. No row leaves of a transaction that ``after`` holds.
    2. A row of a table, or of an operation on a table, that is not selected does not leave; a transaction without any
       other row leaves no trace. DDL records always leave.
    3. The first row of a transaction that leaves begins the transaction.
    4. The last row of a transaction that leaves ends the transaction, even if its own piece did not.
    5. ``since`` (microseconds since 1970, from BEGIN with a time): no transaction leaves before the first one that
       committed at that time or later. All transactions after that one leave, since commit times do not always rise in
       commit order.
    """

    def __init__(
        self,
        wanted: Callable[[TableName], bool],
        after: Completed | None = None,
        *,
        truncates: bool = True,
        since: int = 0,
        ignored: Callable[[TableName], frozenset[int]] | None = None,
        sequences: Callable[[TableName], bool] | None = None,
    ) -> None:
        """``ignored``: returns the operation types of a table that do not leave; ``sequences``: other sequences to select."""
        self._sequences = sequences
        self._wanted = wanted
        self._ignored = ignored
        self._truncates = truncates
        self._after = after
        self._since = since
        self._known: dict[TableDefinition, bool] = {}
        self._begun = False
        self._held: ChangeBatch | None = None

    def select(self, batch: ChangeBatch) -> Iterator[ChangeBatch]:
        """Return the batches that leave as a result of this one.

        These are none, the batch itself, or a smaller one, preceded by held rows.
        """
        keep = self._wanted_rows(batch)
        if self._held is None and not self._begun and keep is None and not self._any_known(batch):
            if batch.pieces and batch.pieces[-1].ends and batch.pieces[0].begins:
                yield batch
                return
            keep = np.ones(len(batch), dtype=bool)
        yield from self._rebuild(batch, np.ones(len(batch), dtype=bool) if keep is None else keep)

    def whole_from(self, batch: ChangeBatch) -> int | None:
        """Return the first row from which the batch passes unchanged, and before which nothing does; None if ``select``
        must work.

        The rows before it belong to transactions that the output holds."""
        if self._held is not None or self._since or self._wanted_rows(batch) is not None:
            return None
        if self._after is not None and batch.pieces[0].header.csn <= self._after.csn:
            held = [self._after.holds(piece.header) for piece in batch.pieces]
            count = held.index(False) if False in held else len(held)
            if any(held[count:]) or (count and self._begun):
                return None
            if count:
                return batch.pieces[count].first if count < len(held) else len(batch)
        return 0 if batch.pieces[0].begins is not self._begun else None

    def passed(self, batch: ChangeBatch) -> None:
        """Note that a batch has left as ``whole_from`` said, without ``select``."""
        self._begun = not batch.pieces[-1].ends

    def _any_known(self, batch: ChangeBatch) -> bool:
        if self._after is None and not self._since:
            return False
        return any(self._left_out(piece) for piece in batch.pieces)

    def _left_out(self, piece: TransactionPiece) -> bool:
        """Apply rules 1 and 5; call it in commit order."""
        if self._after is not None and self._after.holds(piece.header):
            return True
        if piece.header.commit_time < self._since:
            return True
        self._since = 0
        return False

    def _wanted_rows(self, batch: ChangeBatch) -> NDArray[np.bool_] | None:
        """A mask of the rows that are selected; None if all of them are."""
        flags = []
        for table in batch.tables:
            flag = self._known.get(table)
            if flag is None:
                flag = self._known[table] = self._wanted(table.name) or self._is_wanted_sequence(table)
            flags.append(flag)
        kept = None if self._truncates else ~batch.of_types(TRUNCATES)
        for number, table in enumerate(batch.tables):
            left_out = self._ignored(table.name) if self._ignored is not None else NO_OPERATIONS
            if left_out:
                there = (batch.table != number) | ~batch.of_types(left_out)
                kept = there if kept is None else kept & there
        if not all(flags) and any(not table.columns for table in batch.tables):
            flags = self._with_ddl(batch, flags)
        nowhere = batch.table >= len(flags)  # rows that an earlier stage dropped
        if nowhere.any():
            kept = ~nowhere if kept is None else kept & ~nowhere
            flags.append(False)
        if all(flags):
            return kept if kept is not None and not kept.all() else None
        mask: NDArray[np.bool_] = np.array(flags, dtype=bool)[np.minimum(batch.table, len(flags) - 1)]
        return mask if kept is None else mask & kept

    def _is_wanted_sequence(self, table: TableDefinition) -> bool:
        return self._sequences is not None and is_sequence(table) and self._sequences(table.name)

    def _with_ddl(self, batch: ChangeBatch, flags: list[bool]) -> list[bool]:
        """Select the objects of DDL records: the source has chosen its statements by the rules of DDL."""
        objects = set(batch.table[batch.of_types(DDL_OPERATIONS)].tolist())
        return [flag or number in objects for number, flag in enumerate(flags)]

    def _rebuild(self, batch: ChangeBatch, keep: NDArray[np.bool_]) -> Iterator[ChangeBatch]:
        pieces: list[TransactionPiece] = []
        rows: list[NDArray[np.int64]] = []
        count = 0
        for piece in batch.pieces:
            inside = np.flatnonzero(keep[piece.first : piece.first + piece.count]) + piece.first
            if self._left_out(piece):
                inside = inside[:0]
            if self._held is not None and not pieces and (len(inside) or piece.ends):
                yield self._release(self._held, ended=not len(inside))
            if len(inside):
                pieces.append(TransactionPiece(piece.header, count, len(inside), not self._begun, piece.ends))
                rows.append(inside)
                count += len(inside)
                self._begun = True
            elif piece.ends and pieces and not pieces[-1].ends:
                pieces[-1] = replace(pieces[-1], ends=True)
            if piece.ends:
                self._begun = False
        if not pieces:
            return
        chosen = batch.take(np.concatenate(rows), tuple(pieces))
        if pieces[-1].ends:
            yield chosen
            return
        self._held = chosen

    def _release(self, held: ChangeBatch, *, ended: bool) -> ChangeBatch:
        """Return the held rows, marked as the end of their transaction if no more of it will follow."""
        self._held = None
        last = replace(held.pieces[-1], ends=ended)
        return replace(held, pieces=(*held.pieces[:-1], last))
