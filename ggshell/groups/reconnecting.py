"""Reconnects to a database: runs one session after another, with pauses in which requests are answered.

A server that repeatedly ends its log at the same position gets longer pauses, and finally an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ggshell.errors import (
    CaptureError,
    ConnectionLostError,
    LogRefusedError,
    TargetChangedError,
    TransactionAbortedError,
)
from ggshell.groups.lifecycle import GroupContext
from ggshell.home.events import Severity

T = TypeVar("T")
FIRST_SECONDS = 0.25
LONGEST_SECONDS = 10.0


class Backoff:
    """Exponential backoff: the wait doubles from 0.25 to 10 seconds; ``reset`` starts over after a success."""

    def __init__(self) -> None:
        self._pause = FIRST_SECONDS
        self.attempts = 0

    def next(self) -> float:
        """Return the seconds to wait before the next attempt."""
        pause, self._pause = self._pause, min(self._pause * 2, LONGEST_SECONDS)
        self.attempts += 1
        return pause

    def reset(self) -> None:
        self._pause = FIRST_SECONDS
        self.attempts = 0


CHANGE_SECONDS = 0.05
"""Seconds before a target is opened again after a table of it has changed."""


def run_sessions(context: GroupContext, session: Callable[[Backoff], None], close: Callable[[], None]) -> None:
    """Call ``session`` until the group is to stop; ``close`` releases the connections of a failed session.

    A session calls ``connected`` once it is connected, and returns when the group is to stop. After an aborted transaction,
    the next session starts after that transaction's own pause. After a change of a target table, the next session reads the
    new definition.
    """
    backoff = Backoff()
    while not context.runner.stop_requested:
        try:
            session(backoff)
        except ConnectionLostError as error:
            close()
            if context.runner.stop_requested:
                return  # the connection was canceled or lost while the process was stopping
            _pause(context, backoff, error)
        except TransactionAbortedError as error:
            close()
            context.report.event(Severity.WARNING, error.code, str(error))
            _wait(context, error.pause)
        except TargetChangedError as error:
            close()
            context.report.event(Severity.INFO, error.code, str(error))
            _wait(context, CHANGE_SECONDS)


def attempt(context: GroupContext, action: Callable[[], T]) -> T | None:
    """Return the result of an action, which is tried again with pauses while the connection cannot be made.

    Returns None if the group is to stop before.
    """
    backoff = Backoff()
    while not context.runner.stop_requested:
        try:
            found = action()
        except ConnectionLostError as error:
            if context.runner.stop_requested:
                return None
            _pause(context, backoff, error)
            continue
        connected(context, backoff)
        return found
    return None


def _pause(context: GroupContext, backoff: Backoff, error: ConnectionLostError) -> None:
    _wait(context, announce(context, backoff, error))


def announce(context: GroupContext, backoff: Backoff, error: ConnectionLostError) -> float:
    """Report an error after which the next attempt comes; return the seconds until then."""
    pause = backoff.next()
    context.waits(error.located)
    context.report.event(Severity.WARNING, error.code, f"{error} - retrying in {pause:g} seconds.")
    return pause


def connected(context: GroupContext, backoff: Backoff) -> None:
    """Record that the group continues: reset the backoff; report the connection if it took several attempts."""
    context.waits("")
    if backoff.attempts:
        context.report.event(Severity.INFO, "GGS-00506", f"Reconnected at attempt {backoff.attempts}.")
    backoff.reset()


def _wait(context: GroupContext, seconds: float) -> None:
    """Wait and answer requests; a stop request ends the wait."""
    until = context.clock.steady() + seconds
    while not context.runner.stop_requested and context.clock.steady() < until:
        context.runner.wait([], until - context.clock.steady())


MOST_TIMES = 10
"""The maximum number of failures at one position, with pauses of up to 10 seconds; further attempts would not help."""


class StuckLog:
    """Counts the failures at the furthest position that was read."""

    def __init__(self) -> None:
        self.times = 0
        self._furthest = -1
        self._reason = ""

    def refused(self, error: LogRefusedError, read: int) -> None:
        """Record that the server ended its log after position ``read``.

        Raises CaptureError if that has happened too often.
        """
        if read > self._furthest:
            self.times, self._furthest = 0, read
        self.times += 1
        self._reason = error.message
        if self.times > MOST_TIMES:
            raise CaptureError(
                f"{self._reason}; attempt {self.times} at the same position",
                code="GGS-00508",
                hint="correct the cause that the server reports; or UNREGISTER and REGISTER EXTRACT, ALTER EXTRACT …, BEGIN"
                " NOW, and load the tables again",
            )

    def passed(self, read: int) -> bool:
        """Whether reading has passed the position of every failure; if so, reset the count."""
        if self.times and read > self._furthest:
            self.times = 0
            return True
        return False

    @property
    def words(self) -> str:
        """The text for STATUS; empty if there was no failure at this position."""
        return f"Waiting: {self._reason} ({self.times} times at the same position)" if self.times else ""
