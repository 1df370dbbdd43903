"""Skip transactions that are already applied: guarantee 1 of delivery, and half of guarantee 2."""

from __future__ import annotations

from collections.abc import Sequence

from ggshell.pipeline.apply.groups import without
from ggshell.pipeline.apply.target import CheckpointRow
from ggshell.record.transaction import TransactionPiece
from ggshell.types import Csn


class AcceptedTransactions:
    """Keeps the highest transaction that was accepted, starting from a checkpoint row."""

    def __init__(self, row: CheckpointRow | None, *, forgetful: bool = False) -> None:
        """``forgetful``: the caller ensures that each transaction arrives once, so every transaction counts as new."""
        self._forgetful = forgetful
        self._last: Csn | None = row.csn if row is not None else None
        self._split = row.split if row is not None else None
        self._skipped = 0
        # Without ids, every transaction with this CSN counts as applied.
        self._ids: set[str] | None = set(row.same_csn) if row is not None and row.same_csn else None

    def fresh(self, pieces: Sequence[TransactionPiece]) -> list[TransactionPiece]:
        """Return the pieces that are not applied yet; they count as applied once their transaction has ended."""
        if self._forgetful:
            return list(pieces)
        result = []
        last, ids = self._last, self._ids
        for piece in pieces:
            csn = piece.header.csn
            if last is not None and csn <= last and (csn < last or ids is None or piece.header.xid in ids):
                continue
            wanted: TransactionPiece | None = piece
            if self._split is not None:
                wanted = self._after_split(piece)
            if wanted is not None:
                result.append(wanted)
            if piece.ends:
                if csn == last and ids is not None:
                    ids.add(piece.header.xid)
                else:
                    last, ids = csn, {piece.header.xid}
        self._last, self._ids = last, ids
        return result

    def _after_split(self, piece: TransactionPiece) -> TransactionPiece | None:
        """Return a piece of a split transaction without the operations that are already committed."""
        split = self._split
        if split is None or (split.csn, split.xid) != (piece.header.csn, piece.header.xid):
            self._split = None
            return piece
        if piece.begins:
            self._skipped = 0
        skip = min(piece.count, split.operations - self._skipped)
        self._skipped += skip
        if piece.ends or skip < piece.count:
            self._split = None
        return without(piece, skip) if skip < piece.count else None
