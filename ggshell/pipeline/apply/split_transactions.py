"""Source transactions that MAXTRANSOPS splits into several target transactions: how much of one is applied."""

from __future__ import annotations

from collections.abc import Sequence

from ggshell.pipeline.apply import groups
from ggshell.pipeline.apply.groups import BatchSpan
from ggshell.pipeline.apply.target import CheckpointRow
from ggshell.record.change import ChangeBatch
from ggshell.record.transaction import TransactionPiece
from ggshell.types import TrailPosition


class SplitTransaction:
    """The source transaction that is being applied; without MAXTRANSOPS none is entered."""

    def __init__(self) -> None:
        self._begin: TrailPosition | None = None
        self._applied = 0

    def enter(self, batch: ChangeBatch, piece: TransactionPiece, last: CheckpointRow | None) -> None:
        """Begin a transaction, or continue it with its next piece; ``last``: the row of the last commit."""
        if piece.begins:
            self._begin, self._applied = groups.begin_of(batch, piece), 0
        elif self._begin is None:
            # The beginning was applied before a restart; the checkpoint row holds its position.
            self._begin = last.position if last is not None else groups.begin_of(batch, piece)
            split = last.split if last is not None else None
            self._applied = split.operations if split is not None else 0

    def add(self, operations: int) -> None:
        """Record that so many more operations of the transaction are in a target transaction."""
        self._applied += operations

    def boundary(self, spans: Sequence[BatchSpan], last: CheckpointRow | None) -> CheckpointRow:
        """Return the checkpoint row that is committed with spans; ``last``: the row of the commit before."""
        end = spans[-1]
        if end.ends or self._begin is None:
            return groups.boundary(spans, last)
        whole = [span for span in groups.transactions(spans) if span[-1].ends]
        before = groups.boundary([part for parts in whole for part in parts], last) if whole else last
        return groups.split_boundary(self._begin, end.pieces[-1], self._applied, before)
