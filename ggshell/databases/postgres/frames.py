"""Bytes of the replication connection to whole protocol messages, a block at a time: no I/O here.

A protocol message is a type byte, a length of 4 bytes that counts itself, and a body.  Log data come as CopyData (``d``),
whose own body begins with ``w``; the payload, and with it the kind of change, stands at ``PAYLOAD`` behind the head.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

import numpy as np

from ggshell.databases.postgres import pgoutput
from ggshell.errors import ConnectionLostError

HEAD: Final = 5
"""Type byte and length of a protocol message."""
BLOCK: Final = 256 << 10
COPY_DATA: Final = ord("d")

_OPENING = struct.Struct(f">BIB{pgoutput.PAYLOAD - 1}xB")
_SMALLEST_LENGTH = 4
FEW_BYTES = 4096
"""Up to so many bytes are walked message by message."""
_ZERO = np.zeros(1, dtype=np.int64)
_IS_ROW = np.zeros(256, dtype=bool)
_IS_ROW[list(pgoutput.ROWS)] = True


class Frames(NamedTuple):
    """Whole messages: number n is ``data[edges[n]:edges[n + 1]]``, head included; ``others`` are those that are no rows."""

    data: bytes
    edges: list[int]
    others: list[int]

    def body(self, number: int) -> bytes:
        """A message without its head."""
        return self.data[self.edges[number] + HEAD : self.edges[number + 1]]


NO_FRAMES: Final = Frames(b"", [0], [])


class Inbox:
    """What has been received and not been taken; a message that is not whole yet stays."""

    def __init__(self) -> None:
        self._buffer = bytearray(BLOCK + _OPENING.size)
        self._filled = 0
        self.fresh = False
        """Whether anything came since the last ``take``."""

    @property
    def full(self) -> bool:
        """Whether a block is there: time to take it before more is received."""
        return self._filled >= BLOCK

    def room(self) -> memoryview:
        """Where the next bytes go; a message longer than a block makes the buffer grow."""
        capacity = len(self._buffer) - _OPENING.size
        if self._filled == capacity:
            self._buffer += bytes(capacity)
        return memoryview(self._buffer)[self._filled : len(self._buffer) - _OPENING.size]

    def received(self, count: int) -> None:
        """So many bytes were put into the room."""
        self._filled += count
        self.fresh = True

    def put(self, data: bytes) -> None:
        """Take in bytes that somebody else has received."""
        while data:
            with self.room() as room:
                count = min(len(data), len(room))
                room[:count] = data[:count]
            self.received(count)
            data = data[count:]

    def put_back(self, data: bytes) -> None:
        """Whole messages that were taken, and are to be taken again: they stand before the part of one that is here."""
        rest = bytes(self._buffer[: self._filled])
        self._filled = 0
        self.put(data + rest)

    def take(self) -> Frames:
        """The whole messages that are there.  Raises ConnectionLostError when the bytes are no messages."""
        self.fresh = False
        edges, others = self._walk()
        place = edges[-1]
        if not place:
            return NO_FRAMES
        with memoryview(self._buffer) as view:
            data = bytes(view[:place])
        rest = self._filled - place
        if len(self._buffer) > BLOCK + _OPENING.size and rest <= BLOCK:
            kept = self._buffer[place : self._filled]
            self._buffer = bytearray(BLOCK + _OPENING.size)
            self._buffer[:rest] = kept
        else:
            self._buffer[:rest] = self._buffer[place : self._filled]
        self._filled = rest
        return Frames(data, edges, others)

    def _walk(self) -> tuple[list[int], list[int]]:
        """The places of the whole messages and the one behind them, and the numbers of those that are no rows."""
        edges: list[int] = [0]
        others: list[int] = []
        if self._filled > FEW_BYTES:
            with memoryview(self._buffer) as view:
                edges, others = _leap(view, self._filled)
        _step(self._buffer, self._filled, edges, others)
        return edges, others


def _leap(view: memoryview, end: int) -> tuple[list[int], list[int]]:
    """All log data up to the first message of another kind: what looks like a begin is one while each leads to the next."""
    raw = np.frombuffer(view, dtype=np.uint8)
    place = np.flatnonzero(raw[: end - HEAD] == COPY_DATA)
    place = place[raw[place + HEAD] == pgoutput.XLOG_DATA]
    after = place + 1 + np.ndarray((len(raw) - 4,), ">u4", view, strides=(1,))[place + 1]
    edges = np.concatenate((_ZERO, after))
    wrong = np.flatnonzero((place != edges[:-1]) | (after > end))
    whole = int(wrong[0]) if len(wrong) else len(place)
    others = np.flatnonzero(~_IS_ROW[raw[place[:whole] + HEAD + pgoutput.PAYLOAD]])
    return edges[: whole + 1].tolist(), others.tolist()


def _step(buffer: bytearray, end: int, edges: list[int], others: list[int]) -> None:
    """The rest, message by message: nothing here but what must be (the buffer is longer than what was received)."""
    place = edges[-1]
    unpack, add, data, log, rows = _OPENING.unpack_from, edges.append, COPY_DATA, pgoutput.XLOG_DATA, pgoutput.ROWS
    while place + HEAD <= end:
        code, length, form, kind = unpack(buffer, place)
        if length < _SMALLEST_LENGTH:
            raise ConnectionLostError(f"the log's connection gave a message of length {length}")
        place += 1 + length
        if place > end:
            break
        if kind not in rows or form != log or code != data:
            others.append(len(edges) - 1)
        add(place)
