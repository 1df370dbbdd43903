"""Choose rows of batches without breaking transactions.

What is left of a transaction must still begin once and end once, also when a large one comes in several pieces and its
first or last piece loses all rows.  So the last rows of an unended transaction are held back until either more rows of it
come or its end is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ggshell.record.change import ChangeBatch
from ggshell.record.definition import TableDefinition
from ggshell.record.operation import NO_OPERATIONS, IoType
from ggshell.record.transaction import TransactionPiece
from ggshell.types import Csn, TableName


class Selection:
    """Passes on the rows of wanted tables, of transactions above a CSN.

    ``after``: transactions with a CSN up to it were passed on before (they stand in the output already) and are dropped
    whole.  Guards, each tested by its number:

    1. a transaction with csn <= after: no row of it leaves;
    2. a row of an unwanted table, or of an operation that is not wanted of it, does not leave; a transaction without any other
       row leaves no trace;
    3. the first row that leaves of a transaction begins it;
    4. the last row that leaves of a transaction ends it, even if its own piece did not;
    5. ``since`` (microseconds since 1970, BEGIN with a time): no transaction leaves before the first that committed at that
       time or later; all behind it leave, since commit times need not rise with commit order.
    """

    def __init__(
        self,
        wanted: Callable[[TableName], bool],
        after: Csn | None = None,
        *,
        truncates: bool = True,
        since: int = 0,
        ignored: Callable[[TableName], frozenset[int]] | None = None,
    ) -> None:
        """``ignored``: the operation types of a table that do not leave."""
        self._wanted = wanted
        self._ignored = ignored
        self._truncates = truncates
        self._after = after
        self._since = since
        self._known: dict[TableDefinition, bool] = {}
        self._begun = False
        self._held: ChangeBatch | None = None

    def select(self, batch: ChangeBatch) -> Iterator[ChangeBatch]:
        """The batches that leave because of this one: none, itself, or a smaller one (with held rows before it)."""
        keep = self._wanted_rows(batch)
        if self._held is None and not self._begun and keep is None and not self._any_known(batch):
            if batch.pieces and batch.pieces[-1].ends and batch.pieces[0].begins:
                yield batch
                return
            keep = np.ones(len(batch), dtype=bool)
        yield from self._rebuild(batch, np.ones(len(batch), dtype=bool) if keep is None else keep)

    def _any_known(self, batch: ChangeBatch) -> bool:
        if self._after is None and not self._since:
            return False
        return any(self._left_out(piece) for piece in batch.pieces)

    def _left_out(self, piece: TransactionPiece) -> bool:
        """Guards 1 and 5; to be asked in commit order."""
        if self._after is not None and piece.header.csn <= self._after:
            return True
        if piece.header.commit_time < self._since:
            return True
        self._since = 0
        return False

    def _wanted_rows(self, batch: ChangeBatch) -> NDArray[np.bool_] | None:
        """A mask of the rows whose table is wanted; None when all are."""
        flags = []
        for table in batch.tables:
            flag = self._known.get(table)
            if flag is None:
                flag = self._known[table] = self._wanted(table.name)
            flags.append(flag)
        kept = None if self._truncates else batch.io_type != IoType.PURGE_DATA
        for number, table in enumerate(batch.tables):
            left_out = self._ignored(table.name) if self._ignored is not None else NO_OPERATIONS
            if left_out:
                there = (batch.table != number) | ~np.isin(batch.io_type, list(left_out))
                kept = there if kept is None else kept & there
        nowhere = batch.table >= len(flags)  # what a stage before left out
        if nowhere.any():
            kept = ~nowhere if kept is None else kept & ~nowhere
            flags.append(False)
        if all(flags):
            return kept if kept is not None and not kept.all() else None
        mask: NDArray[np.bool_] = np.array(flags, dtype=bool)[np.minimum(batch.table, len(flags) - 1)]
        return mask if kept is None else mask & kept

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
        """What was held back, with its end when nothing more of its transaction will come."""
        self._held = None
        last = replace(held.pieces[-1], ends=ended)
        return replace(held, pieces=(*held.pieces[:-1], last))
