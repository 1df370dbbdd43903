"""Long binary messages of a WebSocket, received where they are used: the library would copy each of them five times.

Everything else is the library's: short messages, text, control frames, parts of messages, and whatever breaks a rule.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np

from ggshell.network.frames import LONGEST_FRAME

SHORTEST: Final = 16 << 10
"""Shorter messages are left to the library. Bytes."""
_WHOLE_BINARY: Final = 0x82
_MASKED: Final = 0x80
_MASK_SIZE: Final = 4
_LENGTHS: Final = {126: struct.Struct(">H"), 127: struct.Struct(">Q")}
_SCRATCH: Final = memoryview(bytearray(64 << 10))
"""What has arrived is taken out of it at once, so all connections of a loop share it."""
_FREE: Final[list[memoryview]] = []
_MOST_FREE: Final = 16
"""Messages whose memory is kept for later ones: the first use of new memory takes as long as receiving into it."""


class _Head(NamedTuple):
    """The head of a frame: its own size and that of the data after it, in bytes."""

    size: int
    length: int
    is_masked: bool


class LongMessages:
    """Divides what arrives into long messages and bytes for the library, in order."""

    def __init__(self, accepts: Callable[[int], bool]) -> None:
        """``accepts``: whether a message of so many bytes may begin now; the library judges any other."""
        self._accepts = accepts
        self._kept = b""
        self._others = 0
        self._message: memoryview | None = None
        self._filled = 0
        self._mask = b""

    @property
    def missing(self) -> int:
        """How many bytes of the message that has begun have not arrived; 0 between messages."""
        return 0 if self._message is None else len(self._message) - self._filled

    def room(self) -> memoryview:
        """Return where the next bytes are to be received."""
        return _SCRATCH if self._message is None else self._message[self._filled :]

    def arrived(self, count: int) -> Iterator[tuple[bool, bytes | memoryview]]:
        """Take so many bytes that were received in ``room``: return messages (with True) and bytes for the library."""
        if self._message is not None:
            self._filled += count
            yield from self._whole()
            return
        data, place = self._kept + bytes(_SCRATCH[:count]), 0
        self._kept = b""
        while place < len(data):
            if not self._others:
                head = _head(data, place)
                if head is None:
                    self._kept = data[place:]
                    return
                if (
                    data[place] == _WHOLE_BINARY
                    and head.is_masked
                    and SHORTEST <= head.length <= LONGEST_FRAME
                    and self._accepts(head.length)
                ):
                    place += head.size
                    self._begin(head.length, data[place - _MASK_SIZE : place], data[place : place + head.length])
                    place += self._filled
                    yield from self._whole()
                    continue
                self._others = head.size + head.length
            part = data[place : place + self._others]
            self._others -= len(part)
            place += len(part)
            yield False, part

    def _begin(self, length: int, mask: bytes, part: bytes) -> None:
        self._message, self._mask, self._filled = _memory(length), mask, len(part)
        self._message[: len(part)] = part

    def _whole(self) -> Iterator[tuple[bool, memoryview]]:
        if self._message is not None and self._filled == len(self._message):
            message, self._message = self._message, None
            _unmask(message, self._mask)
            yield True, message


def _memory(length: int) -> memoryview:
    """Return memory for a message of at most ``LONGEST_FRAME`` bytes."""
    memory = _FREE.pop() if _FREE else np.empty(LONGEST_FRAME, dtype=np.uint8).data
    return memory[:length]


def use_again(message: memoryview) -> None:
    """Note that nobody refers to a long message any more: a later one takes its memory. Any thread can call this."""
    if isinstance(message.obj, np.ndarray) and len(_FREE) < _MOST_FREE:
        _FREE.append(message.obj.data)


def _unmask(message: memoryview, mask: bytes) -> None:
    """Remove the mask in place: nothing is copied. Within TLS it is zero."""
    if not any(mask):
        return
    size = len(message) // _MASK_SIZE
    whole = np.frombuffer(message, dtype=np.uint32, count=size)
    np.bitwise_xor(whole, np.frombuffer(mask, dtype=np.uint32), out=whole)
    for place in range(size * _MASK_SIZE, len(message)):
        message[place] ^= mask[place % _MASK_SIZE]


def _head(data: bytes, place: int) -> _Head | None:
    """Return the head of the frame at a place, None if it is not complete."""
    if len(data) < place + 2:
        return None
    is_masked, length = bool(data[place + 1] & _MASKED), data[place + 1] & ~_MASKED
    number = _LENGTHS.get(length)
    size = 2 + (number.size if number is not None else 0) + (_MASK_SIZE if is_masked else 0)
    if len(data) < place + size:
        return None
    if number is not None:
        length = number.unpack_from(data, place + 2)[0]
    return _Head(size, length, is_masked)
