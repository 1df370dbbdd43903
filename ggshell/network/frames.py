"""The binary messages between a sender and a receiver of a trail.

A frame carries bytes of one trail file and their position in it, so a frame that is repeated, lost or out of order is
recognized by its place. An acknowledgement names the durable end of the trail and how many bytes of frames were taken.
All numbers are big-endian.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final, NamedTuple

from ggshell.checksum import crc32
from ggshell.errors import TrailError
from ggshell.trail.blocks import Data
from ggshell.trail.durable import DurableMark
from ggshell.types import Csn, CsnForm, TrailPosition

PROTOCOL: Final = "ggshell-trail-3"
"""The WebSocket subprotocol; another version of the frames has another name."""
LONGEST_DATA: Final = 1 << 20
"""The most bytes of trail data in one frame."""
USUAL_DATA: Final = 256 << 10
"""The most bytes on a line that is not known to be fast: at 10 kB/s, they take 26 seconds."""
LONGEST_FRAME: Final = LONGEST_DATA + 4096
_HEAD: Final = struct.Struct(">BBIQIIIQQBH")
_ACK: Final = struct.Struct(">IQQ")
_COMPRESSED, _ENDS = 1, 2
_NO_CSN: Final = 2
INVALID: Final = "GGS-00955"
"""The code of a message that is not valid at its place."""


class FrameKind(IntEnum):
    """What the receiver does: begin a file with this header, append bytes, or go back to a place."""

    CREATE = 1
    APPEND = 2
    CONTINUE = 3


class Frame(NamedTuple):
    """One frame. ``end``: the trail can be shown up to here when everything before it is durable; None: not yet.

    ``data`` may be a part of other bytes: it is not copied before it is sent or written."""

    kind: FrameKind
    place: TrailPosition
    data: Data = b""
    end: DurableMark | None = None


class Acknowledgement(NamedTuple):
    """The durable end of the target trail, and the number of frame bytes that the receiver has taken since the opening."""

    durable: TrailPosition
    taken: int


class Compression:
    """Compresses the data of frames with zstd, level 1; counts bytes before and after."""

    def __init__(self, threshold: int) -> None:
        """``threshold``: smaller data is sent as it is. Bytes."""
        import pyarrow

        self._codec = pyarrow.Codec("zstd", compression_level=1)
        self._threshold = threshold

    def compressed(self, data: Data) -> bytes | None:
        """Return the data compressed; None if that does not pay."""
        if len(data) < self._threshold:
            return None
        found: bytes = self._codec.compress(data, asbytes=True)
        return found if len(found) < len(data) else None


def encode_frame(frame: Frame, compression: Compression | None = None) -> bytes:
    """Return the bytes of a frame; its data has at most ``LONGEST_DATA`` bytes."""
    return b"".join(frame_parts(frame, compression))


def frame_parts(frame: Frame, compression: Compression | None = None) -> tuple[bytes, Data]:
    """Return the head of a frame, and its data as it is sent; see ``encode_frame``."""
    packed = compression.compressed(frame.data) if compression is not None and frame.data else None
    end = frame.end or DurableMark(TrailPosition(0, 0), None)
    flags = (_COMPRESSED if packed is not None else 0) | (_ENDS if frame.end is not None else 0)
    csn, kind = (0, _NO_CSN) if end.csn is None else (end.csn.value, int(end.csn.form))
    head = _HEAD.pack(
        frame.kind, flags, *frame.place, len(frame.data), 0, *end.position, csn, kind, end.tables
    )  # fmt: skip
    data = frame.data if packed is None else packed
    checksum = crc32(data, crc32(head))
    return b"".join((head[:18], checksum.to_bytes(4, "big"), head[22:])), data


def decode_frame(message: Data) -> Frame:
    """Return the frame of a message. Raises TrailError (GGS-00955) if the message is not a whole, undamaged frame."""
    if len(message) < _HEAD.size:
        raise _damaged("it is shorter than the head of a frame")
    head, data = bytes(message[: _HEAD.size]), memoryview(message)[_HEAD.size :]
    kind, flags, seqno, rba, length, checksum, *end = _HEAD.unpack(head)
    if crc32(data, crc32(head[:18] + bytes(4) + head[22:])) != checksum:
        raise _damaged("its checksum does not match")
    if length > LONGEST_DATA:
        raise _damaged(f"it announces {length} bytes of data; {LONGEST_DATA} are allowed")
    try:
        what = FrameKind(kind)
    except ValueError:
        raise _damaged(f"{kind} is not a kind of frame") from None
    found = _decompressed(data, length) if flags & _COMPRESSED else data
    if len(found) != length:
        raise _damaged(f"it has {len(found)} bytes of data and announces {length}")
    return Frame(what, TrailPosition(seqno, rba), found, _mark(*end) if flags & _ENDS else None)


def _mark(seqno: int, rba: int, value: int, kind: int, tables: int) -> DurableMark:
    csn = None if kind == _NO_CSN else Csn(value, CsnForm(kind))
    return DurableMark(TrailPosition(seqno, rba), csn, tables)


def _decompressed(data: memoryview, length: int) -> bytes:
    import pyarrow

    try:
        found: bytes = pyarrow.decompress(data, decompressed_size=length, codec="zstd", asbytes=True)
    except (OSError, ValueError) as error:
        raise _damaged("its data cannot be decompressed") from error
    return found


def encode_acknowledgement(acknowledgement: Acknowledgement) -> bytes:
    """Return the bytes of an acknowledgement."""
    return _ACK.pack(*acknowledgement.durable, acknowledgement.taken)


def decode_acknowledgement(message: bytes) -> Acknowledgement:
    """Return the acknowledgement of a message. Raises TrailError (GGS-00955)."""
    if len(message) != _ACK.size:
        raise _damaged("it is not an acknowledgement")
    seqno, rba, taken = _ACK.unpack(message)
    return Acknowledgement(TrailPosition(seqno, rba), taken)


def _damaged(why: str) -> TrailError:
    return TrailError(f"a message of the trail's transport is not valid: {why}", code=INVALID)
