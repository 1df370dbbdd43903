"""Sessions with a database that may go away: each is followed by another, after a pause in which requests are answered."""

from __future__ import annotations

from collections.abc import Callable

from ggshell.errors import ConnectionLostError, TransactionAbortedError
from ggshell.process.backoff import Backoff
from ggshell.process.lifecycle import GroupContext
from ggshell.store.events import Severity


def run_sessions(context: GroupContext, session: Callable[[Backoff], None], close: Callable[[], None]) -> None:
    """Call ``session`` until the group is told to stop; ``close`` lets go of the connections of one that broke.

    A session says ``connected`` once it is, and returns when the group is to stop.  One that ends with a transaction
    to be begun anew is followed by another after that transaction's own pause.
    """
    backoff = Backoff()
    while not context.runner.stop_requested:
        try:
            session(backoff)
        except ConnectionLostError as error:
            close()
            pause = backoff.next()
            context.report.event(Severity.WARNING, error.code, f"{error} - trying again in {pause:g} seconds.")
            _wait(context, pause)
        except TransactionAbortedError as error:
            close()
            context.report.event(Severity.WARNING, error.code, str(error))
            _wait(context, error.pause)


def connected(context: GroupContext, backoff: Backoff) -> None:
    """Begin the pauses anew; when some had to be made, the report tells that they are over."""
    if backoff.attempts:
        context.report.event(Severity.INFO, "GGS-00506", f"Connected again at try {backoff.attempts}.")
    backoff.reset()


def _wait(context: GroupContext, seconds: float) -> None:
    """Answer requests meanwhile; a wish to stop ends the wait."""
    until = context.clock.steady() + seconds
    while not context.runner.stop_requested and context.clock.steady() < until:
        context.runner.wait([], until - context.clock.steady())
