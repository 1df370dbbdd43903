"""Where a run is to end (END): which rows come before it, and when no more of them can come."""

from __future__ import annotations

from dataclasses import replace

from ggshell.clock import local_text
from ggshell.params.run_end import RunEnd
from ggshell.process.lifecycle import GroupContext
from ggshell.record.change import ChangeBatch
from ggshell.store.events import Severity


class Ending:
    """Ends the run of a process, gracefully, before the first transaction that committed at a moment or later.

    What comes behind it is left for the next run, also what committed earlier: commit times need not rise with commit order.
    """

    def __init__(self, context: GroupContext, end: RunEnd) -> None:
        self._context = context
        self._runtime = end.runtime
        self.moment = context.clock.now() if end.runtime else end.moment

    @property
    def passed(self) -> bool:
        """Whether whatever commits from now on lies behind the end."""
        return self.moment is not None and self._context.clock.now() >= self.moment

    def before(self, batch: ChangeBatch) -> ChangeBatch | None:
        """The transactions of a trail's batch that come before the end, None when none does; the run ends behind them."""
        if self.moment is None:
            return batch
        for number, piece in enumerate(batch.pieces):
            if piece.header.commit_time >= self.moment:
                self.reached()
                kept = batch.take(slice(0, piece.first), batch.pieces[:number])
                return replace(kept, end_rba=int(batch.rba[piece.first])) if number else None
        return batch

    def trail_read(self) -> None:
        """A trail has been read to its end: that ends a run with END RUNTIME.  At another time a trail may still be behind."""
        if self._runtime:
            self.reached()

    def reached(self) -> None:
        """Stop, and say why."""
        if self.moment is not None and not self._context.runner.stop_requested:
            text = f"END is reached: what committed at {local_text(self.moment)} or later is left for the next run."
            self._context.report.event(Severity.INFO, "GGS-00513", text)
            self._context.runner.stop()
