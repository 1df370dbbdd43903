"""Sessions with a database that may go away: each is followed by another, after a pause in which requests are answered."""

from __future__ import annotations

from collections.abc import Callable

from ggshell.errors import ConnectionLostError
from ggshell.process.backoff import Backoff
from ggshell.process.lifecycle import GroupContext
from ggshell.store.events import Severity


def run_sessions(context: GroupContext, session: Callable[[Backoff], None], close: Callable[[], None]) -> None:
    """Call ``session`` until the group is told to stop; ``close`` lets go of the connections of one that broke.

    A session resets the pauses once it is connected, and returns when the group is to stop.
    """
    backoff = Backoff()
    while not context.runner.stop_requested:
        try:
            session(backoff)
        except ConnectionLostError as error:
            close()
            pause = backoff.next()
            context.report.event(Severity.WARNING, error.code, f"{error} - trying again in {pause:g} seconds.")
            until = context.clock.steady() + pause
            while not context.runner.stop_requested and context.clock.steady() < until:
                context.runner.wait([], until - context.clock.steady())
