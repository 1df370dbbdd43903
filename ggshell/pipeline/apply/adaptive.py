"""Parallel delivery that notices where several appliers do not pay, and applies over the group's own connection there.

Both ways record what is applied in the group's checkpoint row. A change waits until everything before it is applied and
recorded in the row; later rows are then applied with the other delivery.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from ggshell.clock import Clock
from ggshell.pipeline.apply.delivery import Delivery
from ggshell.pipeline.apply.parallel import ParallelDelivery
from ggshell.pipeline.apply.parallelism import ParallelismChoice
from ggshell.pipeline.apply.target import CheckpointRow
from ggshell.record.change import ChangeBatch
from ggshell.record.transaction import TransactionPiece

FIRST_PART: Final = 500
"""Operations of a batch that are fed at once, until their rate is known."""
PART_SECONDS: Final = 0.1, 0.4
"""A part takes about so long, at least and at most: the way can change after each."""
SMALLEST_PART: Final = 100


class AdaptiveDelivery:
    """Applies batches over one connection or on several appliers.

    Guards, each tested by its number:

    1. transactions that an earlier run applied above the checkpoint row are known to the appliers' side only, so that side
       works until the row has passed them;
    2. the way changes only between source transactions, after everything fed is committed and in the checkpoint row;
    3. each way starts at the row that the other one left.
    """

    def __init__(
        self,
        own: Delivery,
        open_parallel: Callable[[CheckpointRow], ParallelDelivery],
        choice: ParallelismChoice,
        clock: Clock,
        parallel: ParallelDelivery | None = None,
    ) -> None:
        """``own``: a delivery over the group's own connection; ``open_parallel``: starts the appliers at a row of the group;
        ``parallel``: the appliers if they have to begin."""
        self._own = own
        self._open_parallel = open_parallel
        self._choice = choice
        self._clock = clock
        self._parallel = parallel
        self._current: Delivery | ParallelDelivery = parallel or own
        self._part = FIRST_PART
        if parallel is None:
            own.start()

    @property
    def applied(self) -> CheckpointRow | None:
        return self._current.applied

    @property
    def pending(self) -> bool:
        return self._current.pending

    @property
    def threads(self) -> Sequence[int]:
        """No threads: the appliers record the transactions above the group's row by their ids."""
        return ()

    @property
    def oldest(self) -> int:
        return self._current.oldest

    def activity(self) -> dict[str, Any]:
        """Return what the appliers do, for STATUS; one connection alone has no appliers."""
        return self._current.activity() or {"appliers": []}

    def feed(self, batch: ChangeBatch) -> None:
        """Hand a batch on; it may be applied later. Raises ApplyError, ConnectionLostError."""
        pieces = batch.pieces
        while pieces:
            count = _first_of(pieces, self._part)
            self._feed(batch if count == len(batch.pieces) else replace(batch, pieces=pieces[:count]))
            pieces = pieces[count:]

    def advance(self) -> None:
        self._current.advance()
        if not self._current.pending:
            self._choice.idle()

    def wake(self) -> list[int]:
        return self._current.wake()

    def flush(self) -> None:
        self._current.flush()

    def save(self) -> None:
        """Save the low watermark to the checkpoint row; one connection has saved it with its rows."""
        self._current.save()

    def note(self) -> bool:
        return False

    def abandon(self) -> None:
        self._current.abandon()

    def end(self) -> None:
        if self._parallel is not None:
            self._parallel.end()

    def _feed(self, part: ChangeBatch) -> None:
        began = self._clock.steady()
        self._current.feed(part)
        self._measure(part, self._clock.steady() - began)
        is_several = self._current is self._parallel
        if self._choice.several is is_several:
            self._choice.applied(self._current.operations)
        if self._choice.several is not is_several and part.pieces[-1].ends:
            self._change()

    def _measure(self, part: ChangeBatch, seconds: float) -> None:
        """Set the size of the following parts by the time that this one took."""
        shortest, longest = PART_SECONDS
        if seconds > longest:
            self._part = max(SMALLEST_PART, self._part // 2)
        elif seconds < shortest:
            self._part = max(self._part, 2 * sum(piece.count for piece in part.pieces))

    def _change(self) -> None:
        """Switch to the other delivery if everything fed can be committed now; otherwise a later call does it."""
        self._current.flush()
        if self._current.pending:
            return
        if self._current is self._own:
            self._current = self._appliers(self._own.applied)
        elif self._parallel is None or self._parallel.is_clear:
            self._own.start()
            self._current = self._own

    def _appliers(self, row: CheckpointRow | None) -> Delivery | ParallelDelivery:
        if row is None:  # nothing was applied yet
            return self._own
        if self._parallel is None:
            self._parallel = self._open_parallel(row)
        else:
            self._parallel.continue_at(row)
        return self._parallel


def _first_of(pieces: Sequence[TransactionPiece], operations: int) -> int:
    """Return how many of the first pieces have together at least so many operations."""
    for number, piece in enumerate(pieces, 1):
        operations -= piece.count
        if operations <= 0:
            return number
    return len(pieces)
