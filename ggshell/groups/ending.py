"""The end of a run (END): which rows come before it, and when it is reached."""

from __future__ import annotations

from ggshell.clock import local_text
from ggshell.groups.lifecycle import GroupContext
from ggshell.home.events import Severity
from ggshell.parameters.process_parameters import RunEnd
from ggshell.record.change import ChangeBatch


class Ending:
    """Ends a run gracefully before the first transaction that committed at the END time or later.

    Everything that follows is left for the next run, even transactions that committed earlier, because commit times do not
    always increase with commit order.
    """

    def __init__(self, context: GroupContext, end: RunEnd) -> None:
        self._context = context
        self._runtime = end.runtime
        self.moment = context.clock.now() if end.runtime else end.moment

    @property
    def passed(self) -> bool:
        """Whether the END time has passed, so that new commits come after it."""
        return self.moment is not None and self._context.clock.now() >= self.moment

    def before(self, batch: ChangeBatch) -> ChangeBatch | None:
        """Return the transactions of a batch that come before the end, or None; stop the run if the end is in the batch."""
        if self.moment is None:
            return batch
        for number, piece in enumerate(batch.pieces):
            if piece.header.commit_time >= self.moment:
                self.reached()
                return batch.until_piece(number) if number else None
        return batch

    def trail_read(self) -> None:
        """End the run if END RUNTIME is set; called at the end of a trail.

        With another END time, the trail may still be behind and contain earlier transactions later.
        """
        if self._runtime:
            self.reached()

    def reached(self) -> None:
        """Stop the run and report why."""
        if self.moment is not None and not self._context.runner.stop_requested:
            text = (
                f"END reached: transactions committed at {local_text(self.moment)} or later are left for the next run."
            )
            self._context.report.event(Severity.INFO, "GGS-00513", text)
            self._context.runner.stop()
