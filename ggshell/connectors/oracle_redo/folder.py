"""A folder of redo segments as one stream of rows. Threads are merged by SCN, and new rows are waited for.

Only ``open_rows`` knows where rows come from, so a reader of a live database could be added there.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import sys
from collections import deque
from pathlib import Path
from typing import NamedTuple, Protocol

from ggshell.connectors.oracle_redo.login import folder_of
from ggshell.connectors.oracle_redo.rows import RedoRow
from ggshell.connectors.oracle_redo.segments import Segment, ThreadReader, find_segment, first_scn, list_segments
from ggshell.errors import CaptureError
from ggshell.types import LogPosition


class Waiting(NamedTuple):
    """Rows from an SCN on wait, because a thread whose last row had the SCN ``after`` may have earlier ones."""

    scn: int
    thread: int
    after: int


class RowSource(Protocol):
    """Rows in SCN order, read forward."""

    @property
    def waiting(self) -> Waiting | None:
        """The rows that were read but are not returned yet; None if there are none."""
        ...

    @property
    def bytes_read(self) -> int: ...

    def take(self) -> list[RedoRow]:
        """The next rows without waiting; empty when no more are available now.

        Raises CaptureError after returning the rows before the error, and ConnectionLostError.
        """
        ...

    def wait(self, timeout: float) -> bool: ...

    def fileno(self) -> int: ...

    def close(self) -> None: ...


def open_rows(login: str, start: LogPosition) -> RowSource:
    """Open the rows from an SCN on. ``start.sequence`` is the segment that contains it, or 0 if that is not known.

    Raises CaptureError when the log that contains the SCN no longer exists, DatabaseError when the folder does not exist.
    """
    return RedoFolder(folder_of(login), start)


class RedoFolder:
    """The merged threads of a folder."""

    def __init__(self, folder: Path, start: LogPosition) -> None:
        self._folder = folder
        self._start = start
        self._threads: dict[int, _Thread] = {}
        self._listed = 0
        self._watch = FolderWatch(folder)
        try:
            self._rescan(opening=True)
        except BaseException:
            self.close()
            raise

    @property
    def bytes_read(self) -> int:
        return sum(thread.reader.bytes_read for thread in self._threads.values())

    @property
    def waiting(self) -> Waiting | None:
        waits = [thread.rows[0].scn for thread in self._threads.values() if thread.rows]
        idle = [(thread.head, number) for number, thread in self._threads.items() if not thread.rows]
        if not waits or not idle:
            return None
        after, number = min(idle)
        return Waiting(min(waits), number, after)

    def take(self) -> list[RedoRow]:
        self._watch.clear()
        for thread in self._threads.values():
            if not thread.rows:
                thread.fill()
        # A thread may have been opened. Its rows must not come after later ones of a thread that always has more.
        if self._has_changed() or not any(thread.rows for thread in self._threads.values()):
            self._rescan(opening=False)
        threads = self._threads.values()
        rows = next(iter(threads)).take_all() if len(threads) == 1 else self._merge()
        failure = next((thread.failure for thread in threads if thread.failure is not None), None)
        if not rows and failure is not None:
            raise failure
        return rows

    def _has_changed(self) -> bool:
        """Whether the folder has other files than when this was last asked."""
        try:
            before, self._listed = self._listed, self._folder.stat().st_mtime_ns
        except OSError:  # listing it says why
            return True
        return self._listed != before

    def _rescan(self, *, opening: bool) -> None:
        """Add the threads that exist. The first row of one that appears while others are read must follow theirs."""
        for number, segments in sorted(list_segments(self._folder).items()):
            if number in self._threads:
                continue
            segment = find_segment(segments, self._start.csn)
            if segment is None:
                continue
            if opening:
                _require(segments[min(segments)], self._start, self._folder)
            thread = _Thread(ThreadReader(self._folder, number, segment, self._start.csn))
            self._threads[number] = thread
            thread.fill()

    def _merge(self) -> list[RedoRow]:
        """Merge rows until a thread has none left, because its next rows may precede those of the others."""
        result: list[RedoRow] = []
        while self._threads:
            heads = sorted((thread.head, number) for number, thread in self._threads.items())
            thread, bound = self._threads[heads[0][1]], heads[1]
            if not thread.rows:
                break
            while thread.rows and (thread.rows[0].scn, heads[0][1]) < bound:
                result.append(thread.rows.popleft())
            if not thread.rows:
                thread.fill()
        return result

    def wait(self, timeout: float) -> bool:
        poll = select.poll()
        poll.register(self.fileno(), select.POLLIN)
        return bool(poll.poll(timeout * 1000))

    def fileno(self) -> int:
        return self._watch.fileno()

    def close(self) -> None:
        for thread in self._threads.values():
            thread.reader.close()
        self._watch.close()


class _Thread:
    """The rows of one thread that were read and not returned yet."""

    def __init__(self, reader: ThreadReader) -> None:
        self.reader = reader
        self.rows: deque[RedoRow] = deque()
        self.failure: CaptureError | None = None
        self._last = 0

    @property
    def head(self) -> int:
        """The lowest SCN that may come next."""
        return self.rows[0].scn if self.rows else self._last

    def fill(self) -> None:
        """Read more rows. An error of the log is kept, so that the rows before it are returned first."""
        if self.failure is not None:
            return
        try:
            self.rows.extend(self.reader.read())
        except CaptureError as error:
            self.failure = error
        if self.rows:
            self._last = self.rows[-1].scn

    def take_all(self) -> list[RedoRow]:
        rows, self.rows = list(self.rows), deque()
        return rows


def _require(earliest: Segment, start: LogPosition, folder: Path) -> None:
    """Raise CaptureError unless a thread reaches back to the position where reading begins.

    It must have the segment that is known to contain that position, or else a segment that begins before it, or its
    very first segment.
    """
    scn = first_scn(earliest)
    if start.sequence and start.thread == earliest.thread:
        gone = earliest.number > start.sequence
    else:
        gone = start.csn > 1 and earliest.number > 1 and scn is not None and scn > start.csn
    if gone:
        raise CaptureError(
            f"the redo of thread {earliest.thread} from SCN {start.csn} is no longer available: the oldest segment is"
            f" {earliest.number}, starting at SCN {scn}",
            code="GGS-00524",
            where=str(folder),
            hint=f"restore {f'segment {start.sequence} and later' if start.sequence else 'the earlier segments'}; to continue"
            " without them, use ALTER EXTRACT …, SCN",
        )


# Detection of new data in the files of a folder, with inotify where the system has it.
#
# Without inotify events (another system, a network mount that others write to) the descriptor never becomes readable,
# and the reader checks the folder at the pace of its caller.


_MODIFY, _CLOSE_WRITE, _MOVED_TO, _CREATE = 0x2, 0x8, 0x80, 0x100
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC


class FolderWatch:
    """A descriptor that becomes readable when something in a folder has changed since ``clear``."""

    def __init__(self, folder: Path) -> None:
        self._other = -1
        self._descriptor = self._notifier(folder)
        if self._descriptor < 0:
            self._descriptor, self._other = os.pipe()

    @staticmethod
    def _notifier(folder: Path) -> int:
        if not sys.platform.startswith("linux"):
            return -1
        library = ctypes.CDLL(None, use_errno=True)
        descriptor = int(library.inotify_init1(_FLAGS))
        if descriptor < 0:
            return -1
        mask = ctypes.c_uint32(_MODIFY | _CLOSE_WRITE | _MOVED_TO | _CREATE)
        if library.inotify_add_watch(descriptor, os.fsencode(folder), mask) < 0:
            os.close(descriptor)
            return -1
        return descriptor

    def fileno(self) -> int:
        return self._descriptor

    def clear(self) -> None:
        """Discard notifications. Call this before looking at the files."""
        if self._other < 0:
            with contextlib.suppress(BlockingIOError):
                while os.read(self._descriptor, 1 << 16):
                    continue

    def close(self) -> None:
        for descriptor in (self._descriptor, self._other):
            if descriptor >= 0:
                os.close(descriptor)
        self._descriptor = self._other = -1
