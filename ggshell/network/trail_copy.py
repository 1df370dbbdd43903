"""A copy of a trail of another home, with the same file numbers and RBAs: asks that home's service for what is missing.

The copy is written like any trail that arrives: bytes, one sync for all frames that have arrived, the durable mark, the
acknowledgement.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ggshell.errors import ConnectionLostError, ProcessError
from ggshell.network.frames import decode_frame
from ggshell.network.handshake import Sender, open_trail, refused
from ggshell.network.link import LOST, Link
from ggshell.network.opening import Opening, Refusal, decode_message
from ggshell.network.proven import THIS_HOME
from ggshell.network.receiver import ReceivedTrail
from ggshell.network.trail_owner import TrailOwner
from ggshell.network.trail_source import AT_END, tail_digest
from ggshell.trail.name import TrailName
from ggshell.types import TrailPosition

MOST_AT_ONCE: Final = 4 << 20
"""Bytes of frames that are written before they are synced and acknowledged."""


class CopyStart(NamedTuple):
    """Where a copy without files begins: at the beginning of a file, which contains a ``wanted`` place.

    None: at the first file of the source, with ``at_end`` at the file of its durable end, with ``since`` at that of the first
    transaction that committed at this time or later (microseconds since 1970)."""

    wanted: TrailPosition | None
    at_end: bool = False
    since: int = 0


class TrailCopy:
    """The copy of a trail under its lock. Used by one thread, except ``durable`` and ``is_complete``."""

    def __init__(self, name: TrailName, source: str) -> None:
        """Recover the copy. ``source``: where it comes from. Raises TrailError, ConflictError, DiskError."""
        self.name = name
        self._received = ReceivedTrail(name, TrailOwner("", "", source, proven=THIS_HOME), None)
        mark = self._received.opened.mark
        self.durable: TrailPosition | None = mark.position if mark is not None else None
        """The end of what can be read; None without a file."""
        self.is_complete = False
        """Whether the copy had everything that the source had at its last message."""
        self.source_end: TrailPosition | None = None
        """The durable end of the source trail when the connection was made; None if it had no file."""
        self.begin: TrailPosition | None = None
        """Where the rows begin that ``CopyStart`` asks for: since a time, or at ``source_end``."""
        self.on_line = 0
        """Bytes of the messages that have arrived over this connection."""
        self._answer: bytes | None = None

    def open(
        self,
        link: Link,
        where: str,
        trail: str,
        reader: Sender,
        start: CopyStart,
        compress: int | None = None,
        extract: str = "",
    ) -> None:
        """Ask for what is missing. ``where``: the service, for messages; ``trail``: the source trail as it is named there.
        ``compress``: the smallest data in bytes that the service is to compress; None: none. ``extract``: the passive Extract
        without which reading must end.

        Raises ConnectionLostError, and ProcessError if the service refuses.
        """
        reached = self.durable
        if reached is None and start.wanted is not None:
            reached = TrailPosition(start.wanted.seqno, 0)
        opening = _opening(trail, reader)
        if reached is not None:
            opening.reached = (reached.seqno, reached.rba)
            opening.tail = tail_digest(self.name, reached) if reached.rba else ""
        if start.wanted is not None:
            opening.wanted = (start.wanted.seqno, start.wanted.rba)
        opening.at_end, opening.since, opening.compress = start.at_end, start.since, compress
        opening.extract = extract
        opened = open_trail(link, where, opening, reader)
        mark = opened.mark
        self.source_end = mark.position if mark is not None else None
        self.begin = TrailPosition(*opened.begin) if opened.begin is not None else self.source_end
        self.is_complete = self.source_end is None or (self.durable is not None and self.durable >= self.source_end)

    def take(self, link: Link, where: str, timeout: float, *, has_room: bool) -> None:
        """Write what has arrived and acknowledge it; wait at most ``timeout`` seconds for the first frame.

        Without ``has_room`` it is acknowledged later, so the source soon sends nothing more. Raises ConnectionLostError,
        ProcessError for a refusal, TrailError for a frame out of place, DiskError.
        """
        messages: list[bytes] = []
        size = 0
        message = link.receive(timeout)
        while message is not None:
            if isinstance(message, str):
                raise _refused(where, message)
            messages.append(message)
            size += len(message)
            message = link.receive(0.0) if size < MOST_AT_ONCE else None
        if messages:
            self._write(messages)
        if self._answer is not None and has_room:
            link.send(self._answer)
            self._answer = None

    @property
    def received(self) -> int:
        """Bytes of the trail that have arrived over this connection."""
        return self._received.received

    def _write(self, messages: list[bytes]) -> None:
        last = decode_frame(messages[-1])
        self.on_line += sum(map(len, messages))
        self.is_complete = last.end is not None and last.end.tables == AT_END
        self._answer = self._received.take(messages)
        if self._received.durable >= TrailPosition(0, 0):
            self.durable = self._received.durable

    def close(self) -> None:
        """Release the copy."""
        self._received.close()


def forget_reading(link: Link, where: str, trail: str, reader: Sender) -> None:
    """Notify a source that this reader no longer needs its trail. Raises ConnectionLostError, ProcessError."""
    opening = _opening(trail, reader)
    opening.forgets = True
    open_trail(link, where, opening, reader)


def _opening(trail: str, reader: Sender) -> Opening:
    opening = reader.opening(trail)
    opening.reads = True
    return opening


def _refused(where: str, message: str) -> ConnectionLostError | ProcessError:
    found = decode_message(message)
    if isinstance(found, Refusal):
        return refused(where, found)
    return ConnectionLostError(f"{where} sent a second opening message", code=LOST)
