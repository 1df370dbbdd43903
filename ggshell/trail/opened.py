"""One trail file, opened for reading, its header read and found fit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from ggshell.errors import TrailError
from ggshell.trail import fileheader
from ggshell.trail.decode import damaged
from ggshell.trail.fileheader import FileHeader
from ggshell.trail.name import TrailName


class OpenedFile(NamedTuple):
    """The descriptor of a file, what its header says, and the place behind the header record."""

    descriptor: int
    path: Path
    seqno: int
    header: FileHeader
    first: int

    def read(self, size: int, place: int) -> bytes:
        return os.pread(self.descriptor, size, place)

    def size(self) -> int:
        return os.fstat(self.descriptor).st_size

    def close(self) -> None:
        os.close(self.descriptor)


def open_file(name: TrailName, seqno: int) -> OpenedFile:
    """Open a file of a trail.

    Raises FileNotFoundError when there is none, TrailError when its header is damaged, another program's, of a later
    format, or another file's.
    """
    path = name.file(seqno)
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.pread(descriptor, fileheader.LONGEST, 0)
        try:
            header = fileheader.decode_header(data)
        except ValueError as error:
            raise damaged(path, 0, str(error)) from None
        _check(header, path, seqno)
    except BaseException:
        os.close(descriptor)
        raise
    return OpenedFile(descriptor, path, seqno, header, fileheader.header_size(data))


def _check(header: FileHeader, path: Path, seqno: int) -> None:
    if header.signature != fileheader.SIGNATURE:
        raise TrailError(
            f"trail file {path} was not written by ggshell: signature {header.signature!r}", where=f"{path}, RBA 0"
        )
    if header.compatibility > fileheader.COMPATIBILITY:
        raise TrailError(
            f"trail file {path} has format {header.compatibility}, this program reads up to {fileheader.COMPATIBILITY}",
            where=f"{path}, RBA 0",
            hint="read it with the release that wrote it, or have it written with FORMAT RELEASE",
        )
    if header.seqno is not None and header.seqno != seqno:
        raise TrailError(
            f"trail file {path} says that it is sequence number {header.seqno}, not {seqno}",
            where=f"{path}, RBA 0",
            hint="give the file its own name again",
        )
