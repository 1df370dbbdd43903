"""Binary messages of a WebSocket, received where they are used: the library would copy a long one five times.

Everything else is the library's: text, control frames, messages in parts, and messages that break a rule.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np
from websockets.frames import apply_mask  # type: ignore[attr-defined]  # its fastest one

from ggshell.network.frames import LONGEST_FRAME

LONG: Final = 16 << 10
"""Messages from this length on have memory of their own; a shorter one is taken when all of it has arrived. Bytes."""
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
    """The head of a frame: its own size and that of the data after it, in bytes; ``mask``: empty if the data has none."""

    size: int
    length: int
    mask: bytes
    is_binary: bool

    @property
    def whole(self) -> int:
        return self.size + self.length


class BinaryMessages:
    """Divides what arrives into binary messages and bytes for the library, in order."""

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
            head = None
            if not self._others:
                head = _head(data, place)
                if head is None or (self._takes(head) and place + head.whole > len(data) and head.length < LONG):
                    self._kept = data[place:]
                    return
            if head is not None and self._takes(head):
                yield from self._message_at(data, place + head.size, head)
                place = min(place + head.whole, len(data))
                continue
            if head is not None:
                self._others = head.whole
            part = data[place : place + self._others]
            self._others -= len(part)
            place += len(part)
            yield False, part

    def _takes(self, head: _Head) -> bool:
        return head.is_binary and bool(head.mask) and head.length <= LONGEST_FRAME and self._accepts(head.length)

    def _message_at(self, data: bytes, place: int, head: _Head) -> Iterator[tuple[bool, bytes | memoryview]]:
        """Take the message whose bytes begin at a place: a long one may go on beyond the data."""
        part = data[place : place + head.length]
        if head.length < LONG:
            yield True, apply_mask(part, head.mask)
            return
        self._message, self._mask, self._filled = _memory(head.length), head.mask, len(part)
        self._message[: len(part)] = part
        yield from self._whole()

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
    """Release the memory of a long message for a later one. Any thread can call this."""
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
    has_mask, length = bool(data[place + 1] & _MASKED), data[place + 1] & ~_MASKED
    number = _LENGTHS.get(length)
    size = 2 + (number.size if number is not None else 0) + (_MASK_SIZE if has_mask else 0)
    if len(data) < place + size:
        return None
    if number is not None:
        length = number.unpack_from(data, place + 2)[0]
    mask = data[place + size - _MASK_SIZE : place + size] if has_mask else b""
    return _Head(size, length, mask, data[place] == _WHOLE_BINARY)
