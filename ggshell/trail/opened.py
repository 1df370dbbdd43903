"""Open a trail file for reading, and read and check its header."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import NamedTuple

from ggshell.errors import TrailError
from ggshell.store_paths import RangedFile, open_ranges
from ggshell.trail import fileheader
from ggshell.trail.decode import damaged
from ggshell.trail.fileheader import FileHeader
from ggshell.trail.header_tokens import is_incomplete
from ggshell.trail.name import TrailName
from ggshell.trail.reach import may_be_begun


class OpenedFile(NamedTuple):
    """An open file: its bytes, its header, and the place after the header record."""

    ranges: RangedFile
    path: Path
    seqno: int
    header: FileHeader
    first: int

    @property
    def descriptor(self) -> int:
        return self.ranges.fileno()

    def read(self, size: int, place: int) -> bytes:
        return self.ranges.read(size, place)

    def size(self) -> int:
        return self.ranges.size()

    def is_in_place(self) -> bool:
        """Whether the path still names this file; False after the file was deleted or replaced by a copy."""
        return self.ranges.is_in_place()

    def close(self) -> None:
        self.ranges.close()


def open_file(name: TrailName, seqno: int) -> OpenedFile:
    """Open a file of a trail.

    Raises FileNotFoundError if the file does not exist, or not yet: the header of the newest file may still be incomplete.
    Raises TrailError if the header is damaged, or belongs to another program, a later format or another file.
    """
    path = name.file(seqno)
    file = _opened(path, seqno)
    if file is None and may_be_begun(name, seqno):
        raise FileNotFoundError(errno.ENOENT, "its header is not complete yet", str(path))
    file = file or _opened(path, seqno)
    if file is None:
        raise damaged(path, 0, "a file header record with its trailer")
    return file


def _opened(path: Path, seqno: int) -> OpenedFile | None:
    """Open the file and check its header; None if the file ends inside its header."""
    ranges = open_ranges(path)
    try:
        data = ranges.read(fileheader.LONGEST, 0)
        if is_incomplete(data, len(data)):
            ranges.close()
            return None
        try:
            header = fileheader.decode_header(data)
        except ValueError as error:
            raise damaged(path, 0, str(error)) from None
        _check(header, path, seqno)
    except BaseException:
        ranges.close()
        raise
    return OpenedFile(ranges, path, seqno, header, fileheader.header_size(data))


def _check(header: FileHeader, path: Path, seqno: int) -> None:
    if header.signature != fileheader.SIGNATURE:
        raise TrailError(
            f"trail file {path} was not written by ggshell: signature {header.signature!r}", where=f"{path}, RBA 0"
        )
    if header.compatibility > fileheader.COMPATIBILITY:
        raise TrailError(
            f"trail file {path} has format {header.compatibility}; this program reads formats up to {fileheader.COMPATIBILITY}",
            where=f"{path}, RBA 0",
            hint="read it with the release that wrote it, or write it with FORMAT RELEASE",
        )
    if header.seqno is not None and header.seqno != seqno:
        raise TrailError(
            f"trail file {path} has sequence number {header.seqno}, not {seqno}, in its header",
            where=f"{path}, RBA 0",
            hint="rename the file to its original name",
        )
