"""What a path or pump says about its receivers: whether it is connected, and what waits to be sent or acknowledged."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from ggshell.clock import Clock
from ggshell.errors import GgsError
from ggshell.groups.lifecycle import GroupContext
from ggshell.groups.outputs import roll
from ggshell.groups.progress import ReadingProgress
from ggshell.home.checkpoint import Checkpoint, WriteCheckpoint
from ggshell.monitoring.group_lag import first_unprocessed
from ggshell.network.link import LOST
from ggshell.trail.files import Transfer
from ggshell.types import TrailPosition


class ConnectionState:
    """Whether the receivers of a group are connected, since when, and the error that ended the last connection."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.connected = False
        self.since = clock.now()
        self.error = ""
        self.lost = 0
        """How often a connection was lost or could not be made."""

    def opened(self) -> None:
        self.connected, self.since, self.error = True, self._clock.now(), ""

    def failed(self, error: GgsError) -> None:
        if self.connected:
            self.connected, self.since = False, self._clock.now()
        self.error = error.located
        self.lost += 1

    def lost_by(self, error: GgsError) -> None:
        """Record the error if it is one of the connection to a receiver; a database can also be lost."""
        if error.code == LOST:
            self.failed(error)

    def answer(self, transfers: Sequence[Transfer] = ()) -> dict[str, Any]:
        """Return what STATUS says of the connection. Times are in microseconds since 1970."""
        return {
            "connection": {
                "connected": self.connected,
                "since": self.since,
                "error": self.error,
                "lost": self.lost,
            },
            "receivers": [each._asdict() for each in transfers],
        }

    def answer_of_source(self, transfer: Transfer | None) -> dict[str, Any]:
        """Return what STATUS says of the connection to the source of a trail.

        ``transfer``: ``sent`` is what has arrived over this connection, ``in_flight`` what waits here for the target trail.
        """
        return {**self.answer(), "sources": [transfer._asdict()] if transfer is not None else []}


def written(write: Sequence[WriteCheckpoint]) -> list[dict[str, Any]]:
    """Return the durable positions for the answer to STATUS; in another home, what the receiver has acknowledged."""
    return [
        {"trail": item.shown, "seqno": item.current.seqno, "rba": item.current.rba, "timestamp": item.current_time}
        for item in write
    ]


def answer_while_waiting(context: GroupContext, state: ConnectionState) -> None:
    """Answer requests while no receiver is connected: from the checkpoint and the source trail."""
    checkpoint = context.checkpoint
    progress = ReadingProgress(context.clock, checkpoint.record_time, checkpoint.caught_up, lambda: context.ahead)
    progress.behind()
    place = checkpoint.read.current
    read = progress.read_answer(
        checkpoint.read.trail, place if isinstance(place, TrailPosition) else TrailPosition(0, 0)
    )
    receivers = ", ".join(each.receiver.partition("?")[0] for each in checkpoint.write if each.is_elsewhere)

    def status() -> dict[str, Any]:
        status = f"Waiting for {receivers}" if receivers else "Starting"
        remote = state.answer() if receivers else {}
        return {"status": status, "read": read, "write": written(checkpoint.write), "slot": {}, **remote}

    def lag() -> dict[str, Any]:
        waits = [f"Waiting for {receivers}" + (f": {state.error}" if state.error else "")] if receivers else []
        return {**_waiting_lag(context, checkpoint, progress), "obstacles": waits}

    context.verb("GETLAG", lambda _: lag(), live=lambda _: lag())
    context.verb("STATUS", lambda _: status(), live=lambda _: status())
    context.verb("ROLLOVER", lambda _: roll(context, None))
    context.reporting.roll_trail(lambda: roll(context, None))


def _waiting_lag(context: GroupContext, checkpoint: Checkpoint, progress: ReadingProgress) -> dict[str, Any]:
    """Return the age of the first record of the source trail that is not acknowledged."""
    place, now = checkpoint.read.current, context.clock.now()
    if not isinstance(place, TrailPosition):
        return progress.lag_answer()
    try:
        waits = first_unprocessed(context.home, checkpoint.read.trail, place)
    except GgsError:
        return progress.lag_answer()
    if waits is None:
        return {"lag_seconds": 0.0, "at_eof": True, "now": now}
    return {"lag_seconds": max(0.0, (now - context.ahead - waits) / 1e6), "at_eof": False, "now": now}


class Unacknowledged:
    """The commit time of the oldest transaction that was sent and not acknowledged by every receiver."""

    def __init__(self) -> None:
        self._marks: deque[tuple[int, tuple[int, ...]]] = deque()
        self._first = 0

    def wrote(self, commit_time: int) -> None:
        """Record that a transaction was written, to be sent with the next flush."""
        self._first = self._first or commit_time

    def sent(self, transfers: Sequence[Transfer]) -> None:
        """Record that everything written is on its way."""
        if self._first:
            self._marks.append((self._first, tuple(each.on_line for each in transfers)))
            self._first = 0

    def oldest(self, transfers: Sequence[Transfer]) -> int:
        """Return the commit time of what waits longest, 0 if nothing waits."""
        taken = [each.on_line - each.in_flight for each in transfers]
        while self._marks and all(mark <= now for mark, now in zip(self._marks[0][1], taken, strict=True)):
            self._marks.popleft()
        return self._marks[0][0] if self._marks else self._first

    def clear(self) -> None:
        """Everything is acknowledged."""
        self._marks.clear()
        self._first = 0
