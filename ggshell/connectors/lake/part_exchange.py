"""How the tasks of a batch return their parts to the process that commits them.

On one machine, a task writes a part to a file, and the other process maps the file into its memory. Spark would copy the part
several times, once into Java's memory. On a cluster, parts go through Spark.
"""

from __future__ import annotations

import mmap
import os
import pickle
import shutil
import struct
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import uuid4

from ggshell.errors import DiskError

_PROTOCOL: Final = 5
_COUNT: Final = struct.Struct("<Q")
_ALIGNMENT: Final = 64
"""Each buffer begins at a multiple of so many bytes, as Arrow recommends."""


class PartExchange(NamedTuple):
    """``folder``: an absolute path, for the files of one group's tasks; empty: parts go through Spark."""

    folder: str = ""

    def open(self) -> None:
        """Create the folder, for this user only, without the files that a killed process has left. Raises DiskError."""
        self.close()
        if self.folder:
            try:
                Path(self.folder).mkdir(0o700, parents=True)
            except OSError as error:
                raise DiskError(f"cannot create {self.folder}: {error.strerror}") from error

    def close(self) -> None:
        """Remove the folder."""
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def sent(self, part: Any) -> bytes:
        """What a task returns to Spark for a part."""
        if not self.folder:
            return pickle.dumps(part, _PROTOCOL)
        path = Path(self.folder) / uuid4().hex
        try:
            _write(path, part)
        except OSError as error:
            return pickle.dumps(DiskError(f"cannot write {path}: {error.strerror}"), _PROTOCOL)
        return os.fsencode(path)

    def received(self, data: bytes) -> Any:
        """The part for which a task has returned ``data``; its file is removed. Arrow's arrays are read-only views of it."""
        if not data.startswith(b"/"):
            return pickle.loads(data)  # noqa: S301 - written by this program's tasks
        path = Path(os.fsdecode(data))
        part = _read(path)
        path.unlink()
        return part


THROUGH_SPARK: Final = PartExchange()


def _write(path: Path, part: Any) -> None:
    """Write a part: the places where its pieces end, the pickled objects, and the buffers of their arrays."""
    buffers = list[memoryview]()

    def stays(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.readonly:  # a buffer of NumPy is not: it would be read-only after the loading
            buffers.append(raw)
        return not raw.readonly

    objects = pickle.dumps(part, _PROTOCOL, buffer_callback=stays)
    pieces: list[bytes | memoryview] = [objects, *buffers]
    ends, place = list[int](), _head_size(len(pieces))
    for piece in pieces:
        ends.append(place + len(piece))
        place = _aligned(ends[-1])
    with path.open("wb") as file:
        file.write(_COUNT.pack(len(pieces)) + b"".join(map(_COUNT.pack, ends)))
        for piece, end in zip(pieces, ends, strict=True):
            file.seek(end - len(piece))
            file.write(piece)
        file.truncate(max(ends))


def _read(path: Path) -> Any:
    with path.open("rb") as file:
        mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    (count,) = _COUNT.unpack_from(mapped)
    ends = [_COUNT.unpack_from(mapped, _COUNT.size * number)[0] for number in range(1, count + 1)]
    pieces = _pieces(mapped, [_head_size(count), *ends])
    return pickle.loads(pieces[0], buffers=pieces[1:])  # noqa: S301 - written by this program's tasks


def _pieces(mapped: memoryview, ends: Sequence[int]) -> list[memoryview]:
    return [mapped[_aligned(before) : end] for before, end in pairwise(ends)]


def _head_size(pieces: int) -> int:
    return _aligned(_COUNT.size * (pieces + 1))


def _aligned(place: int) -> int:
    return -(-place // _ALIGNMENT) * _ALIGNMENT
