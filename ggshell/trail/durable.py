"""The durable mark: how far a trail may be read.

A hidden file beside the trail, written after each fdatasync; readers look at nothing behind it, so no reader ever acts on
a transaction that a power failure could still take away.  The mark is synced when a writer opens the trail and at each new
file, not at each flush: after a power failure it may be old, which only hides rows until the writer has recovered.  A
trail without one (copied from elsewhere) is read to its last whole transaction.
"""

from __future__ import annotations

import os
import struct
import zlib
from typing import NamedTuple

from ggshell.errors import DiskError
from ggshell.trail.name import TrailName
from ggshell.types import Csn, TrailPosition

_BODY = struct.Struct("<IQQBH")
_MARK = struct.Struct("<IQQBHI")
_NO_CSN = 2
_LOOKS = 100


class DurableMark(NamedTuple):
    """The end of what is durable and whole, the last CSN before it (None before the first), and how many table
    definitions its file has given out: what a writer needs to go on."""

    position: TrailPosition
    csn: Csn | None
    tables: int = 0


def _path(name: TrailName) -> str:
    return str(name.folder / f".{name.prefix}.durable")


class MarkWriter:
    """Holds the mark's file open; one write a flush."""

    def __init__(self, name: TrailName) -> None:
        self._descriptor = os.open(_path(name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)

    def write(self, mark: DurableMark) -> None:
        csn = mark.csn or Csn(0)
        kind = _NO_CSN if mark.csn is None else int(csn.lsn)
        body = _BODY.pack(mark.position.seqno, mark.position.rba, csn.value, kind, mark.tables)
        os.pwrite(self._descriptor, body + struct.pack("<I", zlib.crc32(body)), 0)

    def sync(self) -> None:
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


class MarkReader:
    """Reads the mark whenever asked; opens the file when it appears."""

    def __init__(self, name: TrailName) -> None:
        self._path = _path(name)
        self._descriptor = -1

    def read(self) -> DurableMark | None:
        """The present mark; None when there is none, or none that fits its checksum.  Raises DiskError."""
        if self._descriptor < 0:
            try:
                self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return None
            except OSError as error:
                raise DiskError(f"{self._path} cannot be read: {error.strerror}") from error
        for _ in range(_LOOKS):  # a reader may meet a write half done: look again
            data = os.pread(self._descriptor, _MARK.size, 0)
            if len(data) == _MARK.size:
                seqno, rba, value, kind, tables, checksum = _MARK.unpack(data)
                if checksum == zlib.crc32(data[:-4]):
                    csn = None if kind == _NO_CSN else Csn(value, bool(kind))
                    return DurableMark(TrailPosition(seqno, rba), csn, tables)
        return None

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
