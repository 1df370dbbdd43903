"""The durable mark: the position up to which a trail may be read.

The mark is a hidden file next to the trail, written after each fdatasync. Readers never read past it, so no reader acts on
a transaction that a power failure could still remove. The mark itself is synced when a writer opens the trail and at each
new file, not at each flush. After a power failure it may therefore be out of date, which only hides rows until the writer
has recovered. A trail without a mark (copied from elsewhere) is read to its last whole transaction.
"""

from __future__ import annotations

import contextlib
import os
import struct
from pathlib import Path
from typing import NamedTuple

from ggshell.checksum import crc32
from ggshell.errors import DiskError
from ggshell.store_paths import StorePath
from ggshell.trail.name import TrailName
from ggshell.types import Csn, CsnForm, TrailPosition

_BODY = struct.Struct("<IQQBH")
_MARK = struct.Struct("<IQQBHI")
_NO_CSN = 2
_LOOKS = 100


class DurableMark(NamedTuple):
    """The state that a writer needs to continue a trail.

    The end of the durable whole transactions, the last CSN before it (None if there is none), and the number of table
    definitions in its file."""

    position: TrailPosition
    csn: Csn | None
    tables: int = 0


def mark_path(name: TrailName) -> Path:
    """Return the path of a trail's mark."""
    return name.folder / f".{name.prefix}.durable"


def _path(name: TrailName) -> str:
    return str(mark_path(name))


def _closed(path: str, error: OSError) -> DiskError:
    return DiskError(
        f"durable mark {path} cannot be opened: {error.strerror}",
        hint="make it readable and writable, or remove it: the end of the trail is then found from its records",
    )


_Identity = tuple[int, int]


def _identity(mark: str | int) -> _Identity | None:
    """Return the identity of the file at a path or descriptor; None if it cannot be read.

    It changes when the trail is restored, and is None after the file was deleted."""
    try:
        found = os.stat(mark)  # noqa: PTH116 - called at every flush and every read
    except OSError:
        return None
    return found.st_ino, found.st_dev


class MarkWriter:
    """Writes the mark: keeps its file open and writes it once per flush."""

    def __init__(self, name: TrailName) -> None:
        """Open or create the mark's file. Raises DiskError."""
        self._path = _path(name)
        self._descriptor = self._open()
        self._identity = _identity(self._descriptor)

    def _open(self) -> int:
        try:
            return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        except OSError as error:
            raise _closed(self._path, error) from error

    def write(self, mark: DurableMark) -> None:
        """Write the mark; opens its file again if it was deleted or replaced. Raises DiskError, OSError."""
        if _identity(self._path) != self._identity:
            found = self._open()
            os.close(self._descriptor)
            self._descriptor, self._identity = found, _identity(found)
        csn = mark.csn or Csn(0)
        kind = _NO_CSN if mark.csn is None else int(csn.form)
        body = _BODY.pack(mark.position.seqno, mark.position.rba, csn.value, kind, mark.tables)
        os.pwrite(self._descriptor, body + struct.pack("<I", crc32(body)), 0)

    def sync(self) -> None:
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


class MarkReader:
    """Reads the mark on request; opens its file when it appears or is replaced."""

    def __init__(self, name: TrailName) -> None:
        self._path = _path(name)
        mark = mark_path(name)
        self._stored = mark if isinstance(mark, StorePath) else None
        self._mark: DurableMark | None = None
        self._descriptor = -1
        self._identity: _Identity | None = None

    def read(self) -> DurableMark | None:
        """Return the current mark; None if there is none or it does not fit its checksum. Raises DiskError.

        In an object store, each reader reads it once: the files there are final."""
        if self._stored is not None:
            with contextlib.suppress(FileNotFoundError):
                self._mark = self._mark or _decoded(self._stored.read_bytes())
            return self._mark
        if self._descriptor >= 0 and _identity(self._path) != self._identity:
            self.close()
        if self._descriptor < 0:
            try:
                self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return None
            except OSError as error:
                raise _closed(self._path, error) from error
            self._identity = _identity(self._descriptor)
        for _ in range(_LOOKS):  # the writer may be in the middle of a write: read again
            found = _decoded(self._content())
            if found is not None:
                return found
        return None

    def _content(self) -> bytes:
        try:
            return os.pread(self._descriptor, _MARK.size, 0)
        except OSError as error:
            raise _closed(self._path, error) from error

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _decoded(data: bytes) -> DurableMark | None:
    """Return the mark in these bytes; None if they are not complete or do not fit their checksum."""
    if len(data) != _MARK.size:
        return None
    seqno, rba, value, kind, tables, checksum = _MARK.unpack(data)
    if checksum != crc32(data[:-4]):
        return None
    return DurableMark(TrailPosition(seqno, rba), None if kind == _NO_CSN else Csn(value, CsnForm(kind)), tables)
