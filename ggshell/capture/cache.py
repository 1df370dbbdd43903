"""Open transactions, kept as the source's own bytes until their commit; the largest go to disk when memory is short.

Nothing is decoded here.  A transaction is a list of chunks; a chunk holds messages that one dictionary of definitions
explains, so a table that changes its shape does not change the meaning of rows that were read before.
"""

from __future__ import annotations

import struct
import tempfile
from array import array
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import IO, Any

from ggshell.errors import DiskError
from ggshell.record import TransactionHeader

_LENGTH = struct.Struct("<I")
_OVERHEAD = 90
"""Bytes of a Python bytes object and its place in a list, beside the content."""
SPILLED = 1024
"""Messages that go to a file together: their number, their lengths, then they themselves."""


def _pack(messages: list[bytes]) -> bytes:
    lengths = array("I", map(len, messages))
    return b"".join((_LENGTH.pack(len(messages)), lengths.tobytes(), *messages))


def _unpack(file: IO[bytes]) -> list[bytes]:
    lengths = array("I")
    lengths.frombytes(file.read(_LENGTH.unpack(file.read(4))[0] * lengths.itemsize))
    ends = list(accumulate(lengths))
    data = file.read(ends[-1])
    return [data[first:end] for first, end in zip((0, *ends), ends, strict=False)]


class Chunk:
    """Messages under one set of definitions; ``streamed`` messages carry their (sub)transaction's id."""

    __slots__ = ("definitions", "messages", "size", "spilled", "streamed")

    def __init__(self, definitions: Any, *, streamed: bool) -> None:
        self.definitions = definitions
        self.streamed = streamed
        self.messages: list[bytes] = []
        self.size = 0
        self.spilled = 0


class OpenTransaction:
    """A transaction that has begun and not ended."""

    def __init__(self, xid: int, begin: int, begin_time: int) -> None:
        self.xid = xid
        self.begin = begin
        self.begin_time = begin_time
        self.chunks: list[Chunk] = []
        self.aborted: set[bytes] = set()
        self.count = 0
        self.size = 0
        self._file: IO[bytes] | None = None

    def chunk(self, definitions: Any, *, streamed: bool) -> Chunk:
        """The chunk to append to: the last one while the definitions and the form are the same."""
        if self.chunks:
            last = self.chunks[-1]
            if last.definitions is definitions and last.streamed == streamed:
                return last
        self.chunks.append(Chunk(definitions, streamed=streamed))
        return self.chunks[-1]

    def spill(self, folder: Path) -> int:
        """Write what is in memory to a file of its own; the bytes of memory that this frees.  Raises DiskError."""
        try:
            if self._file is None:
                folder.mkdir(parents=True, exist_ok=True)
                self._file = tempfile.TemporaryFile(dir=folder, prefix="spill-")  # noqa: SIM115 - lives as long as self
            for chunk in self.chunks:
                for first in range(0, len(chunk.messages), SPILLED):
                    self._file.write(_pack(chunk.messages[first : first + SPILLED]))
                chunk.spilled += len(chunk.messages)
                chunk.messages.clear()
                chunk.size = 0
            self._file.flush()
        except OSError as error:
            raise DiskError(
                f"cannot spill transaction {self.xid} to {folder}: {error.strerror}",
                hint="make room, or raise CACHESIZE",
            ) from error
        # The next message begins a new chunk: those in the file come before those in memory.
        self.chunks = [chunk for chunk in self.chunks if chunk.spilled]
        self.chunks.append(Chunk(self.chunks[-1].definitions, streamed=self.chunks[-1].streamed))
        freed, self.size = self.size, 0
        return freed

    def runs(self, most: int) -> Iterator[tuple[Chunk, list[bytes]]]:
        """The messages in order, at most so many at a time, aborted subtransactions left out."""
        if self._file is not None:
            self._file.seek(0)
        for chunk in self.chunks:
            left = chunk.spilled
            while left:
                messages = self._read(min(most, left))
                left -= len(messages)
                yield chunk, self._alive(chunk, messages)
            for start in range(0, len(chunk.messages), most):
                yield chunk, self._alive(chunk, chunk.messages[start : start + most])

    def _alive(self, chunk: Chunk, messages: list[bytes]) -> list[bytes]:
        if not self.aborted or not chunk.streamed:
            return messages
        return [message for message in messages if message[26:30] not in self.aborted]

    def _read(self, count: int) -> list[bytes]:
        """The next messages of the file: blocks while they fit, at least one."""
        file, messages = self._file, list[bytes]()
        while file is not None and (not messages or len(messages) + SPILLED <= count):
            messages += _unpack(file)
            if len(messages) >= count:
                break
        return messages

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class Committed:
    """A transaction at its commit: who it is, and its messages."""

    __slots__ = ("header", "transaction")

    def __init__(self, header: TransactionHeader, transaction: OpenTransaction) -> None:
        self.header = header
        self.transaction = transaction


class TransactionCache:
    """All open transactions of a source.  ``limit``: bytes of memory (CACHEMGR CACHESIZE) before the largest is spilled."""

    def __init__(self, limit: int, folder: Path) -> None:
        self._limit = limit
        self._folder = folder
        self._used = 0
        self.open: dict[int, OpenTransaction] = {}
        self.spills = 0

    def begin(self, xid: int, position: int, time: int) -> OpenTransaction:
        """The open transaction of an id, made when it is new."""
        transaction = self.open.get(xid)
        if transaction is None:
            transaction = self.open[xid] = OpenTransaction(xid, position, time)
        return transaction

    def grew(self, transaction: OpenTransaction, messages: int, size: int) -> None:
        """Account for messages that were appended, and spill the largest transaction when the limit is passed."""
        transaction.count += messages
        grown = size + messages * _OVERHEAD
        transaction.size += grown
        self._used += grown
        while self._used > self._limit:
            largest = max(self.open.values(), key=lambda item: item.size)
            if largest.size == 0:
                return
            self._used -= largest.spill(self._folder)
            self.spills += 1

    def end(self, xid: int) -> OpenTransaction | None:
        """Take a transaction out: it committed, or it is gone."""
        transaction = self.open.pop(xid, None)
        if transaction is not None:
            self._used -= transaction.size
        return transaction

    def oldest(self) -> OpenTransaction | None:
        """The open transaction that began first."""
        return min(self.open.values(), key=lambda item: item.begin, default=None)

    def clear(self) -> None:
        """Forget everything: the connection is gone, and the source will send it again."""
        for transaction in self.open.values():
            transaction.close()
        self.open.clear()
        self._used = 0
