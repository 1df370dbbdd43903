"""WebSocket frames of a client with long binary messages: each byte is touched at most once, for the mask of the protocol.

The library would copy a message three times more. Everything else of the protocol is the library's.
"""

from __future__ import annotations

import secrets
import struct
from typing import Final

from websockets.frames import Opcode, apply_mask  # type: ignore[attr-defined]  # its fastest one

from ggshell.trail.blocks import Data

_LAST_PART: Final = 0x80
_MASKED: Final = 0x80
_NO_MASK: Final = bytes(4)
_SHORT: Final = struct.Struct(">BBH")
_LONG: Final = struct.Struct(">BBQ")
_SHORTEST_OF_16_BITS, _SHORTEST_OF_64_BITS = 126, 1 << 16
_LONGEST_WHOLE: Final = 16 << 10
"""Shorter frames are one part: one record of TLS, one packet and one wake-up of the other side. Bytes."""


def masked_frame(head: bytes, data: Data, *, private: bool) -> tuple[Data, ...]:
    """Return the frame of the binary message that consists of ``head`` and ``data``: in two parts, or in one if it is short.

    ``private``: the line is encrypted. The mask protects proxies that read along, of which there are none then, so it is zero
    and changes nothing."""
    mask = _NO_MASK if private else secrets.token_bytes(4)
    opening = _opening(len(head) + len(data)) + mask
    if len(head) + len(data) < _LONGEST_WHOLE:
        whole = b"".join((head, data))
        return (opening + (whole if private else apply_mask(whole, mask)),)
    if private:
        return opening + head, data
    turn = len(head) % 4
    return opening + apply_mask(head, mask), apply_mask(data, mask[turn:] + mask[:turn])


def _opening(size: int) -> bytes:
    first = _LAST_PART | Opcode.BINARY
    if size < _SHORTEST_OF_16_BITS:
        return bytes([first, _MASKED | size])
    if size < _SHORTEST_OF_64_BITS:
        return _SHORT.pack(first, _MASKED | 126, size)
    return _LONG.pack(first, _MASKED | 127, size)
