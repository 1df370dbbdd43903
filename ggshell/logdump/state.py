"""A Logdump session: the open file, the position in it, the filters and the settings."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

from ggshell.clock import Clock
from ggshell.errors import DiskError, GgsError, UsageError
from ggshell.files import disk_errors
from ggshell.logdump.answers import Answer, Lost, Shown, TransactionSize
from ggshell.logdump.cursor import Walk
from ggshell.logdump.display import Display, Level
from ggshell.logdump.filters import Filters
from ggshell.logdump.progress import Progress
from ggshell.record.operation import IoType
from ggshell.trail.inspection import InspectedFile, InspectedRecord
from ggshell.trail.sealing import Keys

RECORD_LIMIT, BYTE_LIMIT = 100, 100_000


class LogdumpSession:
    """The state of a session.

    ``home``: the home directory with the wallet (default: GGSHELL_HOME, or the current directory); ``progress``: shows the
    progress of long scans; ``aside``: shows a result before the statement ends."""

    def __init__(self, clock: Clock, progress: Progress | None = None, home: Path | None = None) -> None:
        self.clock = clock
        self.home = home
        self.display = Display(clock)
        self.filters = Filters()
        self.progress = progress
        self.history: list[str] = []
        self.last: Shown | None = None
        self.large: deque[TransactionSize] = deque(maxlen=0)
        self.record_limit, self.byte_limit = RECORD_LIMIT, BYTE_LIMIT
        self.notify = 0
        """COUNT reports its position each time it has scanned this many records; 0: never."""
        self.one_line = False
        self.aside: Callable[[Answer], None] = lambda _: None
        self.shell = True
        self.interactive = False
        self.finished = False
        self._log: TextIO | None = None
        self._walk: Walk | None = None
        self._keys: Keys | None = None

    @property
    def log_name(self) -> str:
        """The name of the log file; empty if there is none."""
        return "" if self._log is None else str(self._log.name)

    def start_log(self, path: Path) -> None:
        """Append all output to a file from now on. Raises DiskError."""
        self.stop_log()
        with disk_errors("write", path, hint="LOG TO another file"):
            self._log = path.open("a", encoding="utf-8", errors="backslashreplace")

    def stop_log(self) -> None:
        log, self._log = self._log, None
        if log is not None:
            log.close()

    def write_log(self, text: str) -> None:
        """Write a text to the log. Raises DiskError and ends the log if that fails."""
        if self._log is None:
            return
        try:
            self._log.write(text)
            self._log.flush()
        except OSError as error:
            name, self._log = self.log_name, None
            raise DiskError(f"the log {name} has ended: {error.strerror}", hint="LOG TO another file") from error

    @property
    def is_open(self) -> bool:
        return self._walk is not None

    @property
    def walk(self) -> Walk:
        """The current walk through the open file. Raises UsageError if no file is open."""
        if self._walk is None:
            raise UsageError("no trail file is open", hint="OPEN file")
        return self._walk

    @property
    def file(self) -> InspectedFile:
        return self.walk.file

    def open(self, path: Path) -> None:
        """Open a file instead of the open one.

        Raises NotFoundError, or TrailError if it cannot be decrypted; the file that was open then stays open."""
        file = InspectedFile(path)
        try:
            file.decrypt(self._keys)
        except GgsError:
            file.close()
            raise
        self.close()
        self._walk, self.last = Walk(file), None

    def decrypt(self, keys: Keys | None) -> None:
        """Decrypt rows of this and later files with these keys; None shows them encrypted.

        Raises NotFoundError, TrailError."""
        if self._walk is not None:
            self._walk.file.decrypt(keys)
        self._keys = keys

    def close(self) -> None:
        """Close the trail file."""
        if self._walk is not None:
            self._walk.file.close()
            self._walk = None

    def shown(self, seen: InspectedRecord) -> Answer:
        """Return a record as a result, and keep it for RECORD; for a place without a record, what was expected there."""
        if not seen.size:
            return Lost(self.file, seen.rba, seen.fault)
        self.last = Shown(self.file, seen, self.walk.table(seen))
        return self.last

    def passes(self, seen: InspectedRecord) -> bool:
        """Whether a record passes the filters and settings."""
        record = seen.record
        if seen.is_header:
            return not self.filters.any or not self.filters.enabled
        if record is None:
            return True
        if record.io_type == IoType.METADATA and self.display.metadata is Level.OFF:
            return False
        candidate = self.walk.candidate(seen)
        return candidate is None or self.filters.passes(candidate)

    def following(self, count: int, wanted: Callable[[InspectedRecord], bool]) -> Iterator[Answer]:
        """Yield the next wanted records, up to the end of the file or a place without a valid record."""
        for seen in self.walk.records():
            if not seen.size or wanted(seen):
                yield self.shown(seen)
                count -= 1
                if count == 0:
                    return
            self.tell(seen)

    def tell(self, seen: InspectedRecord) -> None:
        """Report progress after a record."""
        if self.progress is not None:
            self.progress.record(seen.rba, self.file.size)
