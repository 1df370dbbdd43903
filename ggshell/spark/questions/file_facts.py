"""What the files of a trail say of themselves, without their records: headers, sizes, how far they are durable, restarts."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from ggshell.errors import TrailError
from ggshell.record import IoType
from ggshell.spark.paths import local_copy
from ggshell.trail import layout
from ggshell.trail.fileheader import LONGEST, FileHeader, decode_header
from ggshell.trail.look import LookedFile

_RESTART: Final = bytes([ord("E"), layout.PARTITION_METADATA, 0, ord("A"), 0, 0, int(IoType.RESTART_OK)])
"""How the header of a restart record begins (trail/FORMAT.md)."""


class FileFacts(NamedTuple):
    """A file; ``header`` is None where it cannot be read, ``unread`` counts the bytes behind what is durable, ``restarts`` are
    the places where a writer went on."""

    trail: str
    seqno: int
    size: int
    header: FileHeader | None
    unread: int
    restarts: tuple[int, ...]


def facts_of(files: Iterable[str]) -> list[FileFacts]:
    """The facts of files, in their order.  Raises NotFoundError for one that is not there."""
    return [_facts(file) for file in files]


def trail_and_number(file: str) -> tuple[str, int]:
    """The trail that a file belongs to, as texts name it, and the file's sequence number."""
    folder, slash, name = file.rpartition("/")
    return f"{folder}{slash}{name[:2]}", int(name[2:])


def _facts(file: str) -> FileFacts:
    path = local_copy(file)
    size = path.stat().st_size
    header: FileHeader | None
    try:
        header = decode_header(_first_bytes(path))
    except (ValueError, TrailError):
        header = None
    looked = LookedFile(path)
    try:
        end = looked.durable_end()
        unread = max(0, size - end) if end is not None else 0
        restarts = tuple(_restarts(looked, path, size))
    finally:
        looked.close()
    return FileFacts(*trail_and_number(file), size, header, unread, restarts)


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(LONGEST)


def _restarts(looked: LookedFile, path: Path, size: int) -> Iterator[int]:
    if not size:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        place = content.find(_RESTART)
        while place >= 0:
            seen = looked.at(place - 8)
            if seen is not None and seen.record is not None and seen.record.io_type == IoType.RESTART_OK:
                yield seen.rba
            place = content.find(_RESTART, place + 1)


def unread_notes(files: Iterable[str]) -> list[str]:
    """A sentence for each file whose last bytes are not read, since they are not durable or not whole."""
    return [
        f"{facts.trail}{facts.seqno:09d} is read up to RBA {facts.size - facts.unread:,}; "
        f"{facts.unread:,} bytes behind it are not whole or not durable yet"
        for facts in map(_sizes, files)
        if facts.unread
    ]


def _sizes(file: str) -> FileFacts:
    """The facts without a look at the file's content."""
    path = local_copy(file)
    looked = LookedFile(path)
    try:
        size, end = looked.size, looked.durable_end()
    finally:
        looked.close()
    unread = max(0, size - end) if end is not None else 0
    return FileFacts(*trail_and_number(file), size, None, unread, ())
