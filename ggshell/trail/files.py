"""The files of a trail as its writer uses them: create, append, make durable, show to readers, cut off.

``TrailFiles`` is what a writer needs. ``LocalTrailFiles`` are files of this machine; the files of another home are
reached through its receiver (ggshell.network.remote_files), which uses ``LocalTrailFiles`` there.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import NamedTuple, Protocol

from ggshell.errors import DiskError, TrailError
from ggshell.files import sync_directory
from ggshell.trail.blocks import BlockWriter, Data, begin_file, write_all
from ggshell.trail.durable import DurableMark, MarkWriter
from ggshell.trail.file_index import keep_index
from ggshell.trail.finding import transactions_of
from ggshell.trail.name import TrailName, index_path
from ggshell.trail.opened import open_file
from ggshell.trail.reach import MISSING, RESTORE
from ggshell.trail.recover import find_end
from ggshell.trail.removing import remove_file, trail_lock
from ggshell.trail.waking import Waker
from ggshell.types import Csn, TrailPosition

NOTHING_SHOWN = DurableMark(TrailPosition(-1, -1), None)


class Transfer(NamedTuple):
    """How the connection to a receiver works. ``where``: the receiver; ``sent``: bytes of the trail; ``on_line``: bytes on the
    line; ``in_flight``: bytes that are not acknowledged yet; ``round_trip``: seconds."""

    where: str
    sent: int
    on_line: int
    in_flight: int
    round_trip: float


class TrailFiles(Protocol):
    """The files of one trail, held by one writer. Every method may raise DiskError, TrailError or OSError.

    Files of another machine also raise ConnectionLostError; after it they cannot be used."""

    name: TrailName
    shown: DurableMark
    """The durable end that readers may read up to."""

    @property
    def transfer(self) -> Transfer | None:
        """How the connection to a receiver works now; None for files of this machine."""

    restarts_are_recorded: bool
    """Whether a writer that continues the trail appends a restart record."""

    def file_name(self, seqno: int) -> str:
        """Return the path of a file, for headers and messages."""

    def recover(self, reached: TrailPosition | None) -> DurableMark | None:
        """Return the end of the last whole transaction; None if the trail has no file. See ``recover.find_end``."""

    def continue_at(self, end: DurableMark) -> bytes | None:
        """Remove everything after ``end`` and continue there; return the header record of its file.

        None if the file has no complete header: it is removed, and the caller creates it again."""

    def create(self, seqno: int, header: bytes) -> None:
        """Begin a file; its header and its name are durable on return, or before anything that follows."""

    def keep_index(self, seqno: int, data: bytes) -> None:
        """Write the index of a file that is finished (``file_index``); nothing depends on it."""

    def append(self, data: Data) -> None:
        """Append to the newest file, in the background."""

    def flush(self, data: Data, end: DurableMark) -> None:
        """Append, make everything durable, show it to readers up to ``end``, and wake them."""

    def flush_in_order(self, data: Data, end: DurableMark) -> None:
        """Append, and make everything durable before anything that follows; files of another machine do not wait for that."""

    def is_flushing(self) -> bool:
        """Whether a background flush still works."""

    def flush_behind(self, data: Data, end: DurableMark) -> None:
        """Like ``flush``, but in the background. Only if none works."""

    def finish_behind(self) -> None:
        """Wait for the background flush and show what it made durable."""

    def settle(self) -> None:
        """Make what was recovered durable, with the mark itself; called once, when the writer has opened the trail."""

    def transactions_of(self, csn: Csn) -> frozenset[str]:
        """Return the ids of the trail's transactions with its last CSN."""

    def wake(self) -> Sequence[int]:
        """Descriptors that are readable when ``check`` has something to take; none for files of this machine."""

    def check(self) -> None:
        """Check, while there is nothing to write, that the trail can still be written."""

    def close(self) -> None:
        """Release the trail. What was not flushed is dropped."""


class LocalTrailFiles:
    """The files of a trail on this machine, under the trail's lock."""

    restarts_are_recorded = True
    transfer = None

    def __init__(self, name: TrailName, holds: contextlib.ExitStack) -> None:
        self.name = name
        self.shown = NOTHING_SHOWN
        self._holds = holds
        self._descriptor = -1
        self._seqno = 0
        self._path = ""
        self._unsynced = False
        self._behind: Future[None] | None = None
        self._behind_end = NOTHING_SHOWN
        self._blocks = BlockWriter()
        holds.callback(self._close_file)
        self._mark = MarkWriter(name)
        holds.callback(self._mark.close)
        self._waker = Waker(name)
        holds.callback(self._waker.close)

    @classmethod
    def open(cls, name: TrailName, prepare: Callable[[], None] | None = None) -> LocalTrailFiles:
        """Take the trail's lock; call ``prepare`` before a file is opened.

        Raises ConflictError if another process writes the trail, DiskError, and what ``prepare`` raises."""
        with contextlib.ExitStack() as holds:
            try:
                name.folder.mkdir(parents=True, exist_ok=True)
                holds.enter_context(trail_lock(name))
                if prepare is not None:
                    prepare()
                files = cls(name, holds)
            except OSError as error:
                raise unwritable(name, error) from error
            files._holds = holds.pop_all()
        return files

    def file_name(self, seqno: int) -> str:
        return str(self.name.file(seqno))

    def recover(self, reached: TrailPosition | None) -> DurableMark | None:
        self.name.unfinished().unlink(missing_ok=True)
        return find_end(self.name, reached)

    def continue_at(self, end: DurableMark) -> bytes | None:
        self._close_file()
        self._unsynced = False
        for seqno in reversed([each for each in self.name.sequences() if each > end.position.seqno]):
            remove_file(self.name.file(seqno))
        path = self.name.file(end.position.seqno)
        index_path(path).unlink(missing_ok=True)  # the file may reach the same size again with other rows
        if end.position.rba == 0:  # the file's header is incomplete too
            path.unlink()
            return None
        file = open_file(self.name, end.position.seqno)
        header = file.read(file.first, 0)
        file.close()
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self._seqno, self._path = end.position.seqno, str(path)
        os.ftruncate(self._descriptor, end.position.rba)
        os.fsync(self._descriptor)
        sync_directory(self.name.folder)
        return header

    def create(self, seqno: int, header: bytes) -> None:
        self._blocks.wait()
        if self._unsynced:  # a file is synced before the next one is created
            os.fdatasync(self._descriptor)
            self._unsynced = False
        self._close_file()
        self._descriptor, self._seqno = begin_file(self.name, seqno, header), seqno
        self._path = str(self.name.file(seqno))
        self._mark.sync()
        sync_directory(self.name.folder)

    def keep_index(self, seqno: int, data: bytes) -> None:
        keep_index(self.name.file(seqno), data)

    def append(self, data: Data) -> None:
        self._unsynced = self._unsynced or bool(data)
        self._blocks.write_behind(self._descriptor, data)

    def finish_appending(self) -> None:
        """Wait until everything appended is in the file, durable or not. Raises OSError."""
        self._blocks.wait()

    def flush(self, data: Data, end: DurableMark) -> None:
        self.finish_behind()
        self._blocks.wait()
        write_all(self._descriptor, data)
        if data or self._unsynced:
            os.fdatasync(self._descriptor)
            self._unsynced = False
        self._show(end)

    def flush_in_order(self, data: Data, end: DurableMark) -> None:
        self.flush(data, end)

    def is_flushing(self) -> bool:
        return self._behind is not None and not self._behind.done()

    def flush_behind(self, data: Data, end: DurableMark) -> None:
        self.finish_behind()
        if data or self._unsynced:
            self._behind = self._blocks.sync_behind(self._descriptor, data)
            self._behind_end, self._unsynced = end, False

    def finish_behind(self) -> None:
        if self._behind is not None:
            behind, self._behind = self._behind, None
            behind.result()
            self._show(self._behind_end)

    def transactions_of(self, csn: Csn) -> frozenset[str]:
        return transactions_of(self.name, csn)

    def wake(self) -> Sequence[int]:
        return ()

    def check(self) -> None:
        """A local file shows at the next flush whether it is still there."""

    def close(self) -> None:
        self._holds.close()

    def settle(self) -> None:
        self._mark.sync()
        sync_directory(self.name.folder)

    def _close_file(self) -> None:
        self._blocks.close()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _show(self, end: DurableMark) -> None:
        """Make the trail visible to readers up to this place."""
        self._require_file(end.position)
        if end != self.shown:
            self.shown = end
            self._mark.write(end)
            self._waker.wake()

    def _require_file(self, end: TrailPosition) -> None:
        """Check that the open file is still the one in the folder and is not shorter than its durable end.

        Otherwise the rows would be written to a file that is not part of the trail. Raises TrailError."""
        mine = os.fstat(self._descriptor)
        if not _is_same(self._path, mine):
            raise _lost_file(self._path, mine.st_size, "was deleted or replaced while it was being written")
        if end.seqno == self._seqno and mine.st_size < end.rba:
            raise _lost_file(self._path, mine.st_size, "is shorter than the data that was written to it")


def _is_same(path: str, mine: os.stat_result) -> bool:
    try:
        found = os.stat(path)  # noqa: PTH116 - called at every flush
    except FileNotFoundError:
        return False
    return (found.st_dev, found.st_ino) == (mine.st_dev, mine.st_ino)


def _lost_file(path: str, size: int, said: str) -> TrailError:
    return TrailError(f"trail file {path} {said}", code=MISSING, where=f"{path}, RBA {size}", hint=RESTORE)


def unwritable(name: TrailName, error: OSError) -> DiskError:
    """Return the error for a trail whose folder or files cannot be written."""
    return DiskError(
        f"cannot write trail {name}: {error.strerror}", hint="free space or correct the permissions of the folder"
    )
