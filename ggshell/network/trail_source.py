"""One trail of this home that another home reads: its bytes as frames, from a place to the durable end.

The reader keeps a copy with the same file numbers and RBAs, so a place says exactly what it has. A trail that was restored
or written again has other bytes before that place; the digest of the last ones shows it.
"""

from __future__ import annotations

import hashlib
import os
import threading
from typing import Final

import numpy as np

from ggshell.errors import TrailError
from ggshell.network.frames import INVALID, USUAL_DATA, Frame, FrameKind
from ggshell.network.opening import Opening
from ggshell.record.operation import TransInd
from ggshell.trail.decode import damaged, good_records
from ggshell.trail.durable import DurableMark
from ggshell.trail.name import TrailName
from ggshell.trail.opened import OpenedFile, open_file
from ggshell.trail.positions import first_since
from ggshell.trail.reach import require_reachable
from ggshell.trail.reader import VisibleEnd
from ggshell.trail.waking import Listener
from ggshell.types import TrailPosition

TAIL_BYTES: Final = 64 << 10
AT_END: Final = 1
"""``DurableMark.tables`` of a frame after which the source has nothing more now; a copy of a trail needs no other value."""
REWRITTEN: Final = "GGS-00962"
_AGAIN: Final = (
    "restore the trail; or run ALTER RECVPATH … BEGIN SEQNO n RBA 0: what the target trail already contains is skipped"
)


def tail_digest(name: TrailName, place: TrailPosition) -> str:
    """Return the digest of the bytes before a place in its file. Raises OSError."""
    with name.file(place.seqno).open("rb") as file:
        first = max(0, place.rba - TAIL_BYTES)
        return hashlib.sha256(os.pread(file.fileno(), place.rba - first, first)).hexdigest()


class TrailSource:
    """Reads the frames of a trail. Any thread can use it; they take turns."""

    def __init__(self, name: TrailName, opening: Opening) -> None:
        """Begin where the opening says.

        Raises TrailError if the trail has lost ``reached`` or ``wanted``, or has other bytes before ``reached``; DiskError.
        """
        self.name = name
        reached = TrailPosition(*opening.reached) if opening.reached is not None else None
        wanted = TrailPosition(*opening.wanted) if opening.wanted is not None else None
        for place in (reached, wanted):
            if place is not None:
                require_reachable(name, place)
        if reached is not None and reached.rba and tail_digest(name, reached) != opening.tail:
            raise TrailError(
                f"trail {name} has other contents before {reached} than its reader received: it was written again,"
                " for example after its home was restored from a backup",
                code=REWRITTEN,
                hint=_AGAIN,
            )
        self._place = reached
        self._turn = threading.Lock()
        self._closed = False
        self._file: OpenedFile | None = None
        self._visible = VisibleEnd(name)
        self.end = self._visible.read()
        """The durable end of the trail when it was last read; None if it has no file."""
        if reached is None and opening.at_end and self.end is not None:
            self._place = TrailPosition(self.end.seqno, 0)
        self.begin: TrailPosition | None = None
        """The place of the first transaction since the time that was asked for; None if no time was."""
        if reached is None and opening.since:
            self.begin = first_since(name, opening.since)
            self._place = TrailPosition(self.begin.seqno, 0)
        self._listener = Listener(name)

    def fileno(self) -> int:
        """Readable when the trail has grown, until ``drain`` is called."""
        return self._listener.fileno()

    def drain(self) -> None:
        self._listener.drain()

    def next(self) -> Frame | None:
        """Return the next frame; None if there is nothing more now.

        Raises TrailError: INVALID for a file that was replaced, which the reader's next connection judges; otherwise for
        damage, or a file that is missing. Raises DiskError, OSError.
        """
        with self._turn:
            while not self._closed:
                place = self._place
                frame = self._next()
                if frame is not None or self._place == place:
                    return frame
        return None

    def close(self) -> None:
        with self._turn:
            if not self._closed:
                self._closed = True
                self._close_file()
                self._listener.close()
                self._visible.close()

    def _next(self) -> Frame | None:
        """Return the next frame; None at the end of a file, after going to the next one, and at the end of the trail."""
        end = self.end = self._visible.read()
        place = self._place = self._place or self._first()
        if place is None:
            return None
        if end is None or place >= end:
            if end is None or place > end:
                require_reachable(self.name, place)
            return None
        file = self._file or self._open(place)
        if file is None:
            return None
        if place.rba == 0:
            return self._create(file, end)
        limit = end.rba if end.seqno == file.seqno else file.size()
        if place.rba < limit:
            return self._append(file, place, limit, end)
        self._close_file()
        self._place = TrailPosition(place.seqno + 1, 0)
        return None

    def _first(self) -> TrailPosition | None:
        files = self.name.sequences()
        return TrailPosition(files[0], 0) if files else None

    def _open(self, place: TrailPosition) -> OpenedFile | None:
        try:
            self._file = open_file(self.name, place.seqno)
        except FileNotFoundError:
            require_reachable(self.name, place)
            return None
        return self._file

    def _create(self, file: OpenedFile, end: TrailPosition) -> Frame:
        place = TrailPosition(file.seqno, 0)
        self._place = TrailPosition(file.seqno, file.first)
        return Frame(FrameKind.CREATE, place, file.read(file.first, 0))

    def _append(self, file: OpenedFile, place: TrailPosition, limit: int, end: TrailPosition) -> Frame:
        data = file.read(min(USUAL_DATA, limit - place.rba), place.rba)
        if not file.is_in_place():
            raise TrailError(f"trail file {file.path} was replaced while it was read", code=INVALID)
        settled: int | None = len(data)
        if place.rba + len(data) < end.rba or file.seqno != end.seqno:
            data, settled = _whole_records(data, file, place.rba)
        self._place = following = TrailPosition(file.seqno, place.rba + len(data))
        if settled is None:
            return Frame(FrameKind.APPEND, place, data)
        mark = DurableMark(TrailPosition(file.seqno, place.rba + settled), None, AT_END if following == end else 0)
        return Frame(FrameKind.APPEND, place, data, mark)

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _whole_records(data: bytes, file: OpenedFile, rba: int) -> tuple[bytes, int | None]:
    """Return the whole records of some bytes, and the place in them after the last transaction that ends there, if any.

    Raises TrailError for damage."""
    records = good_records(data, file.path, rba)
    if not records.end:
        fault = records.fault
        raise damaged(file.path, rba + (fault.place if fault else 0), fault.expected if fault else "a whole record")
    rows = np.flatnonzero(records.is_row)
    ends = np.flatnonzero(records.header["trans_ind"][rows] >= TransInd.END)
    if not len(ends):
        return data[: records.end], None
    following = int(ends[-1]) + 1
    settled = int(records.start[rows[following]]) if following < len(rows) else records.end
    return data[: records.end], settled
