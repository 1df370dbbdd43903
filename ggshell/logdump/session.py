"""A Logdump session: the open file, the place in it, filters and switches."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from ggshell.clock import Clock
from ggshell.errors import UsageError
from ggshell.logdump.answers import Answer, Lost, Shown, TransactionSize
from ggshell.logdump.display import Display, Level
from ggshell.logdump.filters import Filters
from ggshell.logdump.walk import Walk
from ggshell.record import IoType
from ggshell.trail.look import LookedFile, Seen

RECORD_LIMIT, BYTE_LIMIT = 100, 100_000


class Session:
    """``progress`` is told how much of how much a long look has read."""

    def __init__(self, clock: Clock, progress: Callable[[int, int], None] | None = None) -> None:
        self.clock = clock
        self.display = Display()
        self.filters = Filters()
        self.progress = progress
        self.history: list[str] = []
        self.last: Shown | None = None
        self.large: deque[TransactionSize] = deque(maxlen=0)
        self.record_limit, self.byte_limit = RECORD_LIMIT, BYTE_LIMIT
        self.log: Path | None = None
        self.shell = True
        self.finished = False
        self._walk: Walk | None = None

    @property
    def is_open(self) -> bool:
        return self._walk is not None

    @property
    def walk(self) -> Walk:
        """Raises UsageError while no file is open."""
        if self._walk is None:
            raise UsageError("no trail file is open", hint="OPEN file")
        return self._walk

    @property
    def file(self) -> LookedFile:
        return self.walk.file

    def open(self, path: Path) -> None:
        """Raises NotFoundError, and leaves the file that is open."""
        file = LookedFile(path)
        self.close()
        self._walk, self.last = Walk(file), None

    def close(self) -> None:
        if self._walk is not None:
            self._walk.file.close()
            self._walk = None

    def shown(self, seen: Seen) -> Answer:
        """A record as an answer, kept for RECORD; a place without one as what was expected."""
        if not seen.size:
            return Lost(self.file, seen.rba, seen.fault)
        self.last = Shown(self.file, seen, self.walk.table(seen))
        return self.last

    def passes(self, seen: Seen) -> bool:
        """Whether filters and switches let a record through."""
        record = seen.record
        if seen.is_header:
            return not self.filters.any or not self.filters.enabled
        if record is None:
            return True
        if record.io_type == IoType.METADATA and self.display.metadata is Level.OFF:
            return False
        candidate = self.walk.candidate(seen)
        return candidate is None or self.filters.passes(candidate)

    def following(self, count: int, wanted: Callable[[Seen], bool]) -> Iterator[Answer]:
        """The next records that are wanted; it ends at the file's end, or at a place where no record stands."""
        for seen in self.walk.records():
            if not seen.size or wanted(seen):
                yield self.shown(seen)
                count -= 1
                if count == 0:
                    return
            self.tell(seen)

    def tell(self, seen: Seen) -> None:
        """Let somebody who waits see how far it is."""
        if self.progress is not None:
            self.progress(seen.rba, self.file.size)
