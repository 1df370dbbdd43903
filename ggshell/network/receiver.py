"""One trail that another home writes here: takes messages, writes files, and answers with acknowledgements.

The order is the writer's own: bytes, one sync for all frames that have arrived, the durable mark, the acknowledgement.
A frame that does not continue at the end of the trail is refused, so nothing is written twice or skipped.
"""

from __future__ import annotations

import base64
import struct
import threading
from collections.abc import Sequence
from typing import Final

from ggshell.errors import ConflictError, TrailError
from ggshell.network.frames import INVALID, Acknowledgement, Frame, FrameKind, decode_frame, encode_acknowledgement
from ggshell.network.opening import Opened, position_text
from ggshell.network.trail_owner import TrailOwner, claim, require_sender
from ggshell.trail.blocks import Data
from ggshell.trail.durable import DurableMark
from ggshell.trail.fileheader import decode_header
from ggshell.trail.files import LocalTrailFiles, unwritable
from ggshell.trail.name import LAST_FILE, TrailName
from ggshell.trail.opened import open_file
from ggshell.trail.reach import MISSING
from ggshell.trail.removing import remove_held
from ggshell.types import TrailPosition

_SEND_AGAIN: Final = (
    "restore it from a backup; or run DELETE RECVPATH … PURGE in the target home, then ALTER DISTPATH … BEGIN SEQNO n RBA 0"
    " for a path, ALTER EXTRACT …, EXTSEQNO n, EXTRBA 0 for a pump: from there on it sends what the trail lacks"
)
"""What to do if files of the trail are lost."""


class ReceivedTrail:
    """A trail under its lock while a sender is connected. Any thread can use it; it is closed between two calls of ``take``."""

    def __init__(
        self, name: TrailName, sender: TrailOwner, reached: TrailPosition | None, purge: int | None = None
    ) -> None:
        """Record whose trail it is and recover it.

        ``reached``: its end by the sender's checkpoint; ``purge``: the sequence number from which on the sender's own files
        are removed first.

        Raises ConflictError if another process or sender writes the trail, TrailError if it has lost data, DiskError.
        """
        self.name = name
        self._files = _claimed(name, sender, purge)
        self._guard = threading.Lock()
        self._closed = False
        self._taken = 0
        self.received = 0
        """Bytes of the trail that have arrived."""
        self._place: TrailPosition | None = None
        self._end: DurableMark | None = None
        try:
            self.opened = self._recover(reached, is_sent=bool(sender.home))
        except OSError as error:
            self._files.close()
            raise unwritable(name, error) from error
        except BaseException:
            self._files.close()
            raise

    def _recover(self, reached: TrailPosition | None, *, is_sent: bool) -> Opened:
        try:
            end = self._files.recover(reached)
        except TrailError as error:
            if error.code == MISSING and is_sent:
                error.hint = _SEND_AGAIN
            raise
        if end is not None and self._files.continue_at(end) is None:
            end = self._files.recover(reached)  # the last file had no complete header
            if end is not None:
                self._files.continue_at(end)
        if end is None:
            return Opened(str(self.name.folder), self.name.prefix)
        self._place, self._end = end.position, end
        self._files.flush(b"", end)
        self._files.settle()
        transactions = sorted(self._files.transactions_of(end.csn)) if end.csn is not None else []
        header = base64.b64encode(_header_of(self.name, end.position.seqno)).decode()
        return Opened(str(self.name.folder), self.name.prefix, position_text(end), transactions, header)

    @property
    def durable(self) -> TrailPosition:
        """The end of the trail that its readers may see."""
        return self._files.shown.position

    def take(self, messages: Sequence[Data]) -> bytes:
        """Write the frames of these messages, sync once, and return the acknowledgement.

        Raises TrailError for a frame that is damaged or out of place, DiskError.
        """
        with self._guard:
            if self._closed:
                raise TrailError(f"trail {self.name} was closed while a sender was connected", code=INVALID)
            return self._take(messages)

    def _take(self, messages: Sequence[Data]) -> bytes:
        last: Data = b""
        try:
            for message in messages:
                if last:
                    self._files.append(last)
                frame = decode_frame(message)
                last = self._write(frame)
                self.received += len(frame.data)
                self._taken += len(message)
            if self._end is not None and self._end != self._files.shown:
                self._files.flush(last, self._end)  # written here: it is synced at once
            else:
                if last:
                    self._files.append(last)
                self._files.finish_appending()  # the caller uses the memory of the messages again
        except OSError as error:
            raise unwritable(self.name, error) from error
        durable = self.durable if self._end is not None else TrailPosition(0, 0)
        return encode_acknowledgement(Acknowledgement(durable, self._taken))

    def close(self) -> None:
        """Release the trail, after a call of ``take`` that another thread has begun."""
        with self._guard:
            self._closed = True
            self._files.close()

    def _write(self, frame: Frame) -> Data:
        """Do what a frame asks for; return the bytes to append after that."""
        if frame.kind is FrameKind.CREATE:
            self._create(frame)
        elif frame.kind is FrameKind.CONTINUE:
            self._continue(frame)
        else:
            return self._append(frame)
        return b""

    def _create(self, frame: Frame) -> None:
        expected = 0 if self._place is None else self._place.seqno + 1
        if (
            frame.place.rba
            or not expected <= frame.place.seqno <= LAST_FILE
            or (self._place is not None and frame.place.seqno != expected)
        ):
            raise self._out_of_place(frame)
        header = bytes(frame.data)
        _require_header(header)
        if self._end is not None:
            self._files.flush(b"", self._end)
        self._files.create(frame.place.seqno, header)
        self._place = TrailPosition(frame.place.seqno, len(frame.data))

    def _append(self, frame: Frame) -> Data:
        if frame.place != self._place:
            raise self._out_of_place(frame)
        if frame.data:
            self._place = TrailPosition(frame.place.seqno, frame.place.rba + len(frame.data))
        if frame.end is not None:
            if not (self._shown <= frame.end.position <= self._place):
                raise self._out_of_place(frame)
            self._end = frame.end
        return frame.data

    def _continue(self, frame: Frame) -> None:
        """Go back to the end of the last whole transaction: the sender sends the unfinished one again."""
        if self._end is None or frame.end != self._end or frame.place != self._end.position:
            raise self._out_of_place(frame)
        self._files.flush(b"", self._end)
        self._files.continue_at(self._end)
        self._place = self._end.position

    @property
    def _shown(self) -> TrailPosition:
        return TrailPosition(0, 0) if self._end is None else self._end.position

    def _out_of_place(self, frame: Frame) -> TrailError:
        return TrailError(
            f"trail {self.name} ends at {self._place}, but a frame for {frame.place} arrived",
            code=INVALID,
            hint="the sender connects again and continues at the end of the trail",
        )


def _claimed(name: TrailName, sender: TrailOwner, purge: int | None) -> LocalTrailFiles:
    """Open the files of a trail after recording whose it is, and removing those that its sender writes again."""

    def prepare() -> None:
        if claim(name, sender) is not None and purge is not None:
            remove_held(name, purge)

    try:
        return LocalTrailFiles.open(name, prepare)
    except ConflictError:
        require_sender(name, sender)  # another sender may hold the lock: then the error names it
        raise


def _require_header(header: bytes) -> None:
    """Raise TrailError (GGS-00955) unless the data of a frame begins a file that can be read."""
    try:
        decode_header(header)
    except (ValueError, IndexError, struct.error) as error:
        raise TrailError(f"a frame does not begin a trail file; expected {error}", code=INVALID) from error


def _header_of(name: TrailName, seqno: int) -> bytes:
    file = open_file(name, seqno)
    try:
        return file.read(file.first, 0)
    finally:
        file.close()
