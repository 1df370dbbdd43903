"""A folder of redo segments as one stream of rows: threads merged by SCN, new rows waited for.

``open_rows`` is the one place that knows where rows come from; a reader of a live database may stand behind it later.
"""

from __future__ import annotations

import select
from collections import deque
from pathlib import Path
from typing import Protocol

from ggshell.databases.redo.login import folder_of
from ggshell.databases.redo.notify import FolderWatch
from ggshell.databases.redo.rows import RedoRow
from ggshell.databases.redo.segments import Segment, ThreadReader, find_segment, first_scn, list_segments
from ggshell.errors import CaptureError
from ggshell.types import LogPosition


class RowSource(Protocol):
    """Rows in the order of their SCN, read forward."""

    @property
    def bytes_read(self) -> int: ...

    def take(self) -> list[RedoRow]:
        """The next rows without waiting; empty when no more are there now.  Raises CaptureError, ConnectionLostError."""
        ...

    def wait(self, timeout: float) -> bool: ...

    def fileno(self) -> int: ...

    def close(self) -> None: ...


def open_rows(login: str, start: LogPosition) -> RowSource:
    """Rows from an SCN on.  ``start.sequence``: the segment that holds it, 0 when that is not known.

    Raises CaptureError when the log that holds it is gone, DatabaseError when there is none at all.
    """
    return RedoFolder(folder_of(login), start)


class RedoFolder:
    """The threads of a folder, merged."""

    def __init__(self, folder: Path, start: LogPosition) -> None:
        self._folder = folder
        self._start = start
        self._threads: dict[int, _Thread] = {}
        self._watch = FolderWatch(folder)
        try:
            self._look(opening=True)
        except BaseException:
            self.close()
            raise

    @property
    def bytes_read(self) -> int:
        return sum(thread.reader.bytes_read for thread in self._threads.values())

    def take(self) -> list[RedoRow]:
        self._watch.clear()
        for thread in self._threads.values():
            if not thread.rows:
                thread.fill()
        if not any(thread.rows for thread in self._threads.values()):
            self._look(opening=False)  # a thread may have been opened
        if len(self._threads) == 1:
            return next(iter(self._threads.values())).take_all()
        return self._merge()

    def _look(self, *, opening: bool) -> None:
        """Take up the threads that are there.  One that comes while others are read had nothing before."""
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
        """Rows up to where a thread has none left: what it will bring may come before those of the others."""
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
    """One thread's rows that were read and not given on."""

    def __init__(self, reader: ThreadReader) -> None:
        self.reader = reader
        self.rows: deque[RedoRow] = deque()
        self._last = 0

    @property
    def head(self) -> int:
        """The lowest SCN that may come next."""
        return self.rows[0].scn if self.rows else self._last

    def fill(self) -> None:
        self.rows.extend(self.reader.read())
        if self.rows:
            self._last = self.rows[-1].scn

    def take_all(self) -> list[RedoRow]:
        rows, self.rows = list(self.rows), deque()
        return rows


def _require(earliest: Segment, start: LogPosition, folder: Path) -> None:
    """A thread must reach back to where reading is to begin: to the segment that is known to hold it, else to one that begins
    before it, or to the first of all."""
    scn = first_scn(earliest)
    if start.sequence and start.thread == earliest.thread:
        gone = earliest.number > start.sequence
    else:
        gone = start.csn > 1 and earliest.number > 1 and scn is not None and scn > start.csn
    if gone:
        raise CaptureError(
            f"the redo of thread {earliest.thread} from SCN {start.csn} on is gone: the oldest segment is"
            f" {earliest.number}, from SCN {scn}",
            code="GGS-00524",
            where=str(folder),
            hint=f"restore the segments from {start.sequence or 'before'} on; to go on without them: ALTER EXTRACT …, SCN",
        )
