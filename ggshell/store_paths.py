"""Paths of files in object stores, and files that are read in ranges, in a store or on this machine.

A ``StorePath`` has the part of pathlib's interface that readers of trails use: names, sizes, listings, reading. It cannot be
given to functions of the operating system. Objects are read with range requests; none is copied as a whole.
"""

from __future__ import annotations

import functools
import io
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path, PosixPath
from typing import TYPE_CHECKING, Any, Final, Protocol

from ggshell.object_stores import StorePlace, is_elsewhere, open_place, store_error

if TYPE_CHECKING:
    from pyarrow import fs

_READ_AHEAD: Final = 8 << 20
"""Bytes that are requested at once where a file is read on from the place that was read last."""
_CHUNK: Final = 4 << 20
_ROOT: Final = re.compile(r"([a-z][a-z0-9+.-]+):/([^/]+)/?(.*)")


def path_of(text: str) -> Path:
    """The path of a location: a ``StorePath``, or a path of this machine."""
    return StorePath(text) if is_elsewhere(text) else Path(text.removeprefix("file://"))


@functools.lru_cache(maxsize=64)
def _opened(root: str, process: int, endpoint: str) -> StorePlace:
    """The file system of a bucket, once for each process: connections cannot be shared after a fork."""
    return open_place(root)


class StorePath(PosixPath):
    """A path such as ``s3://bucket/folder/ea000000000``. Its methods raise the errors of ``object_stores.store_error``."""

    def __str__(self) -> str:
        scheme, _, rest = super().__str__().partition(":/")
        return f"{scheme}://{rest}"

    def __fspath__(self) -> str:
        raise TypeError(f"{self} is not a file of this machine")

    @property
    def place(self) -> StorePlace:
        """Its file system, and the path there. Raises UsageError, ConnectionLostError."""
        match = _ROOT.fullmatch(super().__str__())
        if match is None:
            return open_place(str(self))
        root = _opened(f"{match[1]}://{match[2]}", os.getpid(), os.environ.get("AWS_ENDPOINT_URL", ""))
        return root.child(match[3]) if match[3] else root

    def info(self) -> fs.FileInfo:
        """What the store says about the object."""
        place = self.place
        try:
            return place.system.get_file_info(place.path)
        except OSError as error:
            raise store_error(str(self), error) from error

    def is_absolute(self) -> bool:
        return True

    def absolute(self) -> StorePath:
        return self

    def resolve(self, strict: bool = False) -> StorePath:
        return self

    def exists(self, **_: Any) -> bool:
        return bool(self.info().type != _types().NotFound)

    def is_file(self, **_: Any) -> bool:
        return bool(self.info().type == _types().File)

    def is_dir(self, **_: Any) -> bool:
        return bool(self.info().type == _types().Directory)

    def stat(self, **_: Any) -> os.stat_result:
        """Only the size and the time are true. Raises FileNotFoundError."""
        found = self.info()
        if found.type != _types().File:
            raise FileNotFoundError(2, "No such object", str(self))
        modified = int((found.mtime_ns or 0) // 1_000_000_000)
        return os.stat_result((stat.S_IFREG, 0, 0, 1, 0, 0, found.size, modified, modified, modified))

    def iterdir(self) -> Iterator[StorePath]:  # type: ignore[override]
        from pyarrow import fs

        place = self.place
        try:
            entries = place.system.get_file_info(fs.FileSelector(place.path, allow_not_found=True))
        except OSError as error:
            raise store_error(str(self), error) from error
        return (self / entry.base_name for entry in entries)

    def open(self, mode: str = "r", *_: Any, **__: Any) -> Any:
        """Open for reading bytes. Raises FileNotFoundError."""
        if mode != "rb":
            raise io.UnsupportedOperation(f"{self} can be opened only to read bytes")
        place = self.place
        try:
            return place.system.open_input_file(place.path)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise store_error(str(self), error) from error

    def read_bytes(self) -> bytes:
        with self.open("rb") as file:
            return bytes(file.read())


def _types() -> Any:
    from pyarrow import fs

    return fs.FileType


class RangedFile(Protocol):
    """An open file that is read in ranges."""

    def read(self, size: int, place: int) -> bytes:
        """Read bytes at a place; fewer at the end of the file. Raises OSError, ConnectionLostError."""

    def size(self) -> int:
        """Return the size now."""

    def modified(self) -> int:
        """Return the time of the last write, in nanoseconds since 1970."""

    def is_in_place(self) -> bool:
        """Whether the path still names this file."""

    def fileno(self) -> int:
        """Return the descriptor of a file of this machine."""

    def close(self) -> None: ...


class LocalFile:
    """A file of this machine."""

    def __init__(self, path: Path, flags: int = 0) -> None:
        """Raises OSError."""
        self._path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)

    def read(self, size: int, place: int) -> bytes:
        return os.pread(self._descriptor, size, place)

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def modified(self) -> int:
        return os.fstat(self._descriptor).st_mtime_ns

    def is_in_place(self) -> bool:
        mine = os.fstat(self._descriptor)
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return False
        return (found.st_dev, found.st_ino) == (mine.st_dev, mine.st_ino)

    def fileno(self) -> int:
        return self._descriptor

    def close(self) -> None:
        os.close(self._descriptor)


class StoreFile:
    """An object of a store. What is read one after the other is requested in long ranges, anything else as it is asked for."""

    def __init__(self, path: StorePath) -> None:
        """Raises FileNotFoundError."""
        self._path = path
        self._file = path.open("rb")
        self._size = int(self._file.size())
        self._base, self._data = 0, b""

    def read(self, size: int, place: int) -> bytes:
        end = min(place + size, self._size)
        if place >= end:
            return b""
        first = place - self._base
        if first < 0 or end > self._base + len(self._data):
            goes_on = bool(self._data) and 0 <= first <= len(self._data)
            wanted = max(end - place, _READ_AHEAD if goes_on else 0)
            try:
                self._data = bytes(self._file.read_at(min(wanted, self._size - place), place))
            except OSError as error:
                raise store_error(str(self._path), error) from error
            self._base, first = place, 0
        return self._data[first : first + end - place]

    def size(self) -> int:
        return self._size

    def modified(self) -> int:
        return int(self._path.info().mtime_ns or 0)

    def is_in_place(self) -> bool:
        return True

    def fileno(self) -> int:
        raise io.UnsupportedOperation(f"{self._path} is not a file of this machine")

    def close(self) -> None:
        self._file.close()


def open_ranges(path: Path, flags: int = 0) -> RangedFile:
    """Open a file to read it in ranges. ``flags``: further flags of the system's open. Raises OSError, FileNotFoundError."""
    return StoreFile(path) if isinstance(path, StorePath) else LocalFile(path, flags)


def find_bytes(path: Path, wanted: bytes, first: int = 0, last: int | None = None) -> Iterator[int]:
    """Yield the places of a sequence of bytes in a file, or in a range of it. Raises OSError."""
    file = open_ranges(path)
    try:
        end = file.size() if last is None else min(last, file.size())
        while first < end:
            chunk = file.read(min(_CHUNK, end - first), first)
            at = chunk.find(wanted)
            while at >= 0:
                yield first + at
                at = chunk.find(wanted, at + 1)
            if not chunk or first + len(chunk) >= end:
                return
            first += len(chunk) - len(wanted) + 1
    finally:
        file.close()
