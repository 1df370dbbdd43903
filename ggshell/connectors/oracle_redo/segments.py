"""Numbered segments of one redo thread: plain or gzip files of JSON lines, of which the last one grows.

The name is ``[name_][thread_]number.jsonl[.gz]``, for example ``redo_1_000000042.jsonl``. A segment is complete when
the next one exists. Numbers are consecutive, and old segments may have been removed. Rows are in SCN order.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections import deque
from pathlib import Path
from typing import IO, NamedTuple, cast

from ggshell.connectors.oracle_redo.rows import Continuation, RedoRow, decode_good_rows
from ggshell.errors import CaptureError, ConnectionLostError

BLOCK = 1 << 18
_NAME = re.compile(r"(?:[A-Za-z][A-Za-z-]*_)?(?:(\d+)_)?(\d+)\.jsonl(\.gz)?")
_SCN = re.compile(rb'"SCN"\s*:\s*"?(\d+)')


class Segment(NamedTuple):
    """One file of a thread."""

    thread: int
    number: int
    path: Path

    @property
    def packed(self) -> bool:
        return self.path.suffix == ".gz"


def list_segments(folder: Path) -> dict[int, dict[int, Segment]]:
    """The segments of a folder by thread and number. A plain file takes precedence over its gzip form.

    Raises ConnectionLostError when the folder cannot be read, because a mounted one may come back, and CaptureError if two
    files are the same segment.
    """
    found: dict[int, dict[int, Segment]] = {}
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise ConnectionLostError(f"the redo folder {folder} cannot be read: {error.strerror}") from error
    for path in entries:
        match = _NAME.fullmatch(path.name)
        if match is not None:
            segment = Segment(int(match[1] or 1), int(match[2]), path)
            first = found.setdefault(segment.thread, {}).setdefault(segment.number, segment)
            if first.path.name.removesuffix(".gz") != path.name.removesuffix(".gz"):
                raise CaptureError(
                    f"{first.path.name} and {path.name} are both segment {segment.number} of thread {segment.thread}",
                    code="GGS-00557",
                    where=str(folder),
                    hint="give each thread its number in the names, such as redo_2_000000001.jsonl, or remove one of the files",
                )
    return found


def open_segment(segment: Segment) -> IO[bytes]:
    """Open a segment for reading. Raises CaptureError if it no longer exists."""
    try:
        return cast(IO[bytes], gzip.open(segment.path, "rb")) if segment.packed else segment.path.open("rb")
    except OSError as error:
        raise CaptureError(
            f"redo segment {segment.path} cannot be read: {error.strerror}",
            code="GGS-00524",
            hint="restore it, or export it again",
        ) from error


def scn_of(line: bytes) -> int | None:
    """The SCN of a line, found without parsing the line."""
    match = _SCN.search(line)
    return int(match[1]) if match is not None else None


def first_line(segment: Segment) -> bytes:
    """The first line of a segment, as far as it is written."""
    with open_segment(segment) as file:
        return file.readline()


def last_line(segment: Segment) -> bytes:
    """The last whole line of a segment; empty if there is none yet."""
    with open_segment(segment) as file:
        if segment.packed:
            last = deque(file, maxlen=1)
            return last[0] if last else b""
        end = file.seek(0, os.SEEK_END)
        size = BLOCK
        while True:
            file.seek(max(0, end - size))
            data = file.read(size)
            lines = data[: data.rfind(b"\n") + 1].splitlines(keepends=True)
            if len(lines) > 1 or size >= end:
                return lines[-1] if lines else b""
            size *= 4


def first_scn(segment: Segment) -> int | None:
    """The SCN of a segment's first row; None if the segment is empty."""
    line = first_line(segment)
    return scn_of(line) if line.endswith(b"\n") else None


def find_segment(segments: dict[int, Segment], scn: int) -> Segment | None:
    """The segment in which the rows of an SCN begin: the last one whose first row precedes it, or the first of all."""
    numbers = sorted(segments)
    low, high = 0, len(numbers)
    while low < high:
        middle = (low + high) // 2
        first = first_scn(segments[numbers[middle]])
        if first is not None and first < scn:
            low = middle + 1
        else:
            high = middle
    return segments[numbers[max(low - 1, 0)]] if numbers else None


def seek(file: IO[bytes], size: int, scn: int) -> int:
    """Position a plain file at the first line with an SCN or a later one, by binary search. Returns the offset."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        file.seek(max(middle - 1, low))
        if middle > low:
            file.readline()
        place = file.tell()
        line = file.readline()
        found = scn_of(line) if line.endswith(b"\n") else None
        if place >= high or found is None or found >= scn:
            high = middle
        else:
            low = file.tell()
    file.seek(low)
    return low


class ThreadReader:
    """Reads the rows of one thread from an SCN on."""

    def __init__(self, folder: Path, thread: int, segment: Segment, scn: int) -> None:
        self._folder = folder
        self.thread = thread
        self._scn = scn
        self._tail = b""
        self._ended = False
        self._segment = segment
        self._file = open_segment(segment)
        self._continuation = Continuation(str(segment.path))
        self._failure: CaptureError | None = None
        self.bytes_read = 0
        if not segment.packed:
            seek(self._file, os.fstat(self._file.fileno()).st_size, scn)

    def read(self) -> list[RedoRow]:
        """The next rows, up to about a block; empty when no more are available now.

        Raises CaptureError for a damaged segment, or a gap in the numbers, after returning the rows before it.
        """
        while True:
            if self._failure is not None:
                raise self._failure
            block = self._block()
            if block:
                rows = self._rows(block)
                if rows:
                    return rows
                continue
            following = self._following()
            if following is None:
                return []
            if not self._ended:
                self._ended = True  # first read what was written before the next segment appeared
                continue
            self._turn(following)

    def _block(self) -> bytes:
        try:
            block = self._file.read(BLOCK)
        except (OSError, EOFError, zlib.error) as error:
            raise CaptureError(
                f"redo segment {self._segment.path} is damaged: {error}",
                code="GGS-00525",
                hint="restore it, or export it again",
            ) from error
        self.bytes_read += len(block)
        return block

    def _rows(self, block: bytes) -> list[RedoRow]:
        data = self._tail + block
        end = data.rfind(b"\n") + 1
        self._tail = data[end:]
        if not end:
            return []
        lines = data[:end]
        if self._scn:
            lines = b"\n".join(self._from_wanted_scn(lines.split(b"\n")))
        rows, failure = decode_good_rows(lines, self.thread, self._segment.number, str(self._segment.path))
        whole = self._continuation.join(rows)
        self._failure = self._continuation.failure or failure
        return whole

    def _from_wanted_scn(self, lines: list[bytes]) -> list[bytes]:
        """Only the lines from the wanted SCN on. After that, lines are no longer filtered."""
        for number, line in enumerate(lines):
            scn = scn_of(line)
            if scn is not None and scn >= self._scn:
                self._scn = 0
                return lines[number:]
        return []

    def _following(self) -> Segment | None:
        """The segment after this one, once it exists."""
        segments = list_segments(self._folder).get(self.thread, {})
        later = [number for number in segments if number > self._segment.number]
        if not later:
            return None
        number = min(later)
        if number != self._segment.number + 1:
            raise CaptureError(
                f"redo segment {self._segment.number + 1} of thread {self.thread} is missing: the next segment is {number}",
                code="GGS-00524",
                where=str(self._folder),
                hint="restore it: without it, its changes are lost",
            )
        return segments[number]

    def _turn(self, segment: Segment) -> None:
        if self._tail.strip():
            raise CaptureError(
                f"redo segment {self._segment.path} ends in the middle of a line, but {segment.path.name} follows",
                code="GGS-00525",
                hint="restore it, or export it again",
            )
        self.close()
        self._tail, self._ended, self._segment = b"", False, segment
        self._file = open_segment(segment)

    def close(self) -> None:
        self._file.close()
