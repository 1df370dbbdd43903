"""A connection to PostgreSQL whose statements have a time limit on this side.

A server that is stopped, or a network that loses every packet, cannot end a statement by itself. When the limit is reached,
the server is asked to cancel the statement, and the connection is closed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import capabilities

if TYPE_CHECKING:
    from ggshell.time_limit import TimeLimit

CANCEL_SECONDS: Final = 2.0
"""How long the server may take to accept the request to cancel a statement."""


class LimitReachedError(psycopg.OperationalError):
    """The time limit of a statement was reached; its connection is closed."""


class LimitedConnection(psycopg.Connection[Any]):
    """A connection that ends when the limit is reached. ``limit``: None until the login is complete."""

    limit: TimeLimit | None = None

    def wait(self, gen: Generator[Any, Any, Any], *arguments: Any, **named: Any) -> Any:
        """Wait for the server, as every operation of the driver does. Raises LimitReachedError."""
        if self.limit is None:
            return super().wait(gen, *arguments, **named)
        try:
            return super().wait(_limited(gen, self.limit), *arguments, **named)
        except LimitReachedError:
            self.give_up()
            raise

    def now(self) -> float:
        """The moment from which ``require_time`` measures, in seconds."""
        return self.limit.now() if self.limit is not None else 0.0

    def require_time(self, since: float) -> None:
        """Raise LimitReachedError if a wait that began at a moment must end; the connection is then closed."""
        reason = self.limit.refusal(since) if self.limit is not None else ""
        if reason:
            self.give_up()
            raise LimitReachedError(reason)

    def give_up(self) -> None:
        """Ask the server to cancel the running statement, and close the connection without waiting for it."""
        with contextlib.suppress(psycopg.Error):  # it does not answer, or nothing runs any more
            if capabilities.has_cancel_safe():
                self.cancel_safe(timeout=CANCEL_SECONDS)
        self.pgconn.finish()


def _limited(gen: Generator[Any, Any, Any], limit: TimeLimit) -> Generator[Any, Any, Any]:
    """Pass a generator of the driver on. Raises LimitReachedError when the server was silent for too long.

    The driver resumes it when the server has sent something, and several times a second when it has not.
    """
    try:
        since, ready = limit.now(), 0
        _require(limit, since)
        state = next(gen)
        while True:
            ready = yield state
            state = gen.send(ready)
            since = limit.now() if ready else since
            _require(limit, since)
    except StopIteration as end:
        return end.value


def _require(limit: TimeLimit, since: float) -> None:
    reason = limit.refusal(since)
    if reason:
        raise LimitReachedError(reason)
