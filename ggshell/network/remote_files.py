"""The files of a trail in another home, as a trail's writer uses them: every operation is a frame to the receiver there.

Nothing is kept here but the marks that the receiver has not acknowledged yet. The durable end follows acknowledgements only.
"""

from __future__ import annotations

import base64
import struct
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from ggshell.errors import ProcessError, TrailError
from ggshell.network.frames import (
    INVALID,
    LONGEST_DATA,
    USUAL_DATA,
    Acknowledgement,
    Compression,
    Frame,
    FrameKind,
    decode_acknowledgement,
    frame_parts,
)
from ggshell.network.handshake import Sender, open_trail, refused
from ggshell.network.link import NOT_A_RECEIVER, Link
from ggshell.network.opening import Opened, Refusal, decode_message
from ggshell.trail.blocks import Data
from ggshell.trail.durable import DurableMark
from ggshell.trail.fileheader import decode_header
from ggshell.trail.files import NOTHING_SHOWN, Transfer
from ggshell.trail.name import DIGITS, TrailName
from ggshell.types import Csn, TrailPosition

WINDOW: Final = 128 << 20
"""Bytes of frames that may be under way before the sender waits: enough for 1 GB/s over a round trip of 100 ms."""
MOST_WAITING: Final = 1 << 20
"""Bytes of frames that may wait in this process until the network takes them; those that are under way use no memory here."""
ROUND_SECONDS: Final = 1.0


class Pace(NamedTuple):
    """How much is sent at once, in bytes. ``window``: the most that is not acknowledged yet, 0 for one message; ``data``: the
    most of a trail in one message."""

    window: int = WINDOW
    data: int = LONGEST_DATA


FULL_PACE: Final = Pace()
FAST: Final = 8 << 20
"""Bytes a second that make a line fast: a long frame then takes no longer than a usual one on a slow line."""
MEASURED_SECONDS: Final = 0.05


class _Speed:
    """Whether the receiver takes frames fast. Long frames cost less, but a slow line may break before it has carried one."""

    def __init__(self, now: float) -> None:
        self.is_fast = False
        self._since, self._before = now, 0

    def took(self, taken: int, now: float) -> None:
        """Note how many bytes the receiver has taken since the opening."""
        seconds = now - self._since
        if seconds >= MEASURED_SECONDS:
            self.is_fast = taken - self._before >= FAST * seconds
            self._since, self._before = now, taken


class RemoteTrailFiles:
    """The files of one trail in another home. After ConnectionLostError they can no longer be used."""

    restarts_are_recorded = False
    """A bad line reconnects often; the trail must not grow by that."""

    def __init__(
        self,
        link: Link,
        where: str,
        trail: str,
        sender: Sender,
        reached: TrailPosition | None,
        compression: Compression | None = None,
        pace: Pace = FULL_PACE,
        purge: int | None = None,
    ) -> None:
        """Open the trail. ``where``: the receiver, for messages; ``reached``: the trail's end by the sender's checkpoint.

        Raises ConnectionLostError, and ProcessError or TrailError if the receiver refuses.
        """
        self._link = link
        self._where = where
        self._compression = compression
        self._pace = pace
        self._marks: deque[DurableMark] = deque()
        self._sent = self._on_line = self._taken = 0
        self._speed = _Speed(link.now())
        self.shown = NOTHING_SHOWN
        self._headers: dict[int, bytes] = {}
        try:
            self._opened = self._open(trail, sender, reached, purge)
            self._end = self._found()
        except BaseException:
            link.close()
            raise
        self.name = TrailName(Path(self._opened.folder), self._opened.prefix)
        self._place = TrailPosition(0, 0) if self._end is None else self._end.position
        self._furthest = self._place

    def _open(self, trail: str, sender: Sender, reached: TrailPosition | None, purge: int | None) -> Opened:
        opening = sender.opening(trail)
        opening.reached = (reached.seqno, reached.rba) if reached is not None and reached.rba else None
        opening.purge = purge
        return open_trail(self._link, self._where, opening, sender)

    def _found(self) -> DurableMark | None:
        """Return the end of the trail that the receiver has opened. Raises ProcessError if that is not valid."""
        try:
            end = self._opened.mark
            if end is not None:
                header = base64.b64decode(self._opened.header, validate=True)
                decode_header(header)
                self._headers[end.position.seqno] = header
        except (ValueError, IndexError, struct.error) as error:
            raise ProcessError(f"{self._where} is not a receiver of trails: {error}", code=NOT_A_RECEIVER) from error
        return end

    @property
    def transfer(self) -> Transfer:
        """How the connection works now."""
        return Transfer(self._where, self._sent, self._on_line, self._on_line - self._taken, self._link.round_trip)

    def file_name(self, seqno: int) -> str:
        return f"{self.name}{seqno:0{DIGITS}d}"

    def recover(self, reached: TrailPosition | None) -> DurableMark | None:
        """Return what the receiver found when it opened the trail; it has the sender's checkpoint since then."""
        if self._end is not None:
            self.shown = self._end
        return self._end

    def continue_at(self, end: DurableMark) -> bytes | None:
        if end.position != self._place:
            self._send(Frame(FrameKind.CONTINUE, end.position, b"", end))
            self.flush(b"", end)
        self._place = end.position
        return self._headers[end.position.seqno]

    def create(self, seqno: int, header: bytes) -> None:
        self._place = TrailPosition(seqno, 0)
        oldest = self.shown.position.seqno  # an unfinished transaction may be sent again from there
        self._headers = {each: data for each, data in self._headers.items() if each >= oldest} | {seqno: header}
        self._send(Frame(FrameKind.CREATE, self._place, header))
        self._place = TrailPosition(seqno, len(header))

    def keep_index(self, seqno: int, data: bytes) -> None:
        """Not sent: the receiver's readers make the index when they need it."""

    def append(self, data: Data) -> None:
        self._append(data, None)

    def flush(self, data: Data, end: DurableMark) -> None:
        self.flush_behind(data, end)
        self.finish_behind()

    def flush_in_order(self, data: Data, end: DurableMark) -> None:
        self.flush_behind(data, end)

    def is_flushing(self) -> bool:
        """Frames follow each other without waiting; the window limits them."""
        self._take_answers(0.0)
        return False

    def flush_behind(self, data: Data, end: DurableMark) -> None:
        if data or (end != self.shown and (not self._marks or self._marks[-1] != end)):
            self._append(data, end)

    def finish_behind(self) -> None:
        while self._marks:
            self._take_answers(ROUND_SECONDS)

    def settle(self) -> None:
        """The receiver has made durable what it recovered."""

    def transactions_of(self, csn: Csn) -> frozenset[str]:
        if self._end is None or self._end.csn != csn:
            return frozenset()  # sent over this connection: the caller knows them
        return frozenset(self._opened.transactions)

    def wake(self) -> Sequence[int]:
        return (self._link.fileno(),)

    def check(self) -> None:
        """Take what has arrived and keep the connection alive. Raises ConnectionLostError if it was lost."""
        self._take_answers(0.0)

    def close(self) -> None:
        self._link.close()

    def _append(self, data: Data, end: DurableMark | None) -> None:
        view = memoryview(data)
        most = self._pace.data if self._speed.is_fast else min(self._pace.data, USUAL_DATA)
        while True:
            part, view = view[:most], view[most:]
            last = not view
            if part or end is not None:
                self._send(Frame(FrameKind.APPEND, self._place, part, end if last else None))
                self._place = self._place._replace(rba=self._place.rba + len(part))
            if last:
                return

    def _send(self, frame: Frame) -> None:
        head, data = frame_parts(frame, self._compression)
        size = len(head) + len(data)
        while self._on_line - self._taken + size > self._pace.window and self._on_line > self._taken:
            self._take_answers(ROUND_SECONDS)
        self._sent += len(frame.data)
        self._on_line += size
        if frame.end is not None:
            self._marks.append(frame.end)
            self._furthest = max(self._furthest, frame.end.position)
        self._link.send(head, data)
        self._link.drain(MOST_WAITING)

    def _take_answers(self, timeout: float) -> None:
        """Take the acknowledgements that have arrived; wait for the first one."""
        message = self._link.receive(timeout)
        while message is not None:
            if isinstance(message, str):
                found = decode_message(message)
                if isinstance(found, Refusal):
                    raise refused(self._where, found)
                raise TrailError(f"{self._where} sent a second opening message", code=INVALID)
            self._acknowledged(decode_acknowledgement(message))
            is_last = self._taken == self._on_line  # a look for more costs as much time as sending a small frame
            message = None if is_last else self._link.receive(0.0)

    def _acknowledged(self, found: Acknowledgement) -> None:
        """Show what the receiver has made durable. Raises TrailError for more or less than it can have made so."""
        if not self._taken <= found.taken <= self._on_line or found.durable > self._furthest:
            raise TrailError(
                f"{self._where} acknowledges {found.durable} and {found.taken} bytes, but {self._on_line} bytes up to"
                f" {self._furthest} were sent",
                code=INVALID,
            )
        self._taken = found.taken
        self._speed.took(self._taken, self._link.now())
        while self._marks and self._marks[0].position <= found.durable:
            self.shown = self._marks.popleft()
        if self._marks and self._taken == self._on_line:
            raise TrailError(
                f"{self._where} has taken everything up to {self._furthest}, but acknowledges {found.durable} only",
                code=INVALID,
            )
