"""Trail bytes to records: walk the lengths, check every record, gather the headers of a whole chunk at once."""

from __future__ import annotations

import struct
import zlib
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ggshell.clock import JULIAN_EPOCH_MICROSECONDS
from ggshell.errors import TrailError
from ggshell.record import TransactionHeader
from ggshell.trail import layout
from ggshell.types import Csn

_LENGTH = struct.Struct("<H")
_LSN_SIZE = 17
_SMALLEST = 4 + 4 + 34 + 1 + layout.TAIL_SIZE
_HEAD_RANGE = np.arange(layout.BARE_HEAD_SIZE - 8, dtype=np.int64)
_CLOSING_RANGE = np.arange(12, dtype=np.int64)
_CLOSING = np.dtype(
    [
        *[("checksum", "u1"), ("info", "u1"), ("size", "<u2"), ("value", "<u4")],
        *[("trailer", "u1"), ("trailer_info", "u1"), ("total", "<u2")],
    ]
)


class Records(NamedTuple):
    """The whole records of a chunk: places and lengths of records, data areas and GGS tokens, and the header fields."""

    start: NDArray[np.int64]
    total: NDArray[np.int64]
    header: NDArray[np.void]
    data_start: NDArray[np.int64]
    data_length: NDArray[np.int64]
    token_start: NDArray[np.int64]
    token_end: NDArray[np.int64]
    end: int


def damaged(file: object, rba: int, expected: str) -> TrailError:
    """The error for bytes that are no record."""
    return TrailError(
        f"trail file {file} is damaged at RBA {rba}: expected {expected}",
        where=f"{file}, RBA {rba}",
        hint="Logdump's SCANFORHEADER finds the next good record; the writer's source may still hold these transactions",
    )


def walk(chunk: bytes, file: object, base: int) -> list[int]:
    """The places of the whole records of a chunk, and the place behind the last.

    ``base`` is the chunk's RBA, for messages.  Raises TrailError where no record begins.
    """
    places = [0]
    place, end, unpack = 0, len(chunk), _LENGTH.unpack_from
    while place + 4 <= end:
        if chunk[place] != layout.RECORD or chunk[place + 1] != 1:
            raise damaged(file, base + place, "a record header token")
        total = unpack(chunk, place + 2)[0]
        if total < _SMALLEST:
            raise damaged(file, base + place, f"a record of at least {_SMALLEST} bytes, not {total}")
        place += total
        if place > end:
            break
        places.append(place)
    return places


def parse(chunk: bytes, file: object, base: int) -> Records:
    """Take a chunk's whole records apart.  Raises TrailError for a record whose framing or checksum is wrong."""
    places = walk(chunk, file, base)
    edges = np.array(places, dtype=np.int64)
    start, total = edges[:-1], np.diff(edges)
    raw = np.frombuffer(chunk, dtype=np.uint8)
    closing = raw[(edges[1:, None] - 12) + _CLOSING_RANGE].view(_CLOSING).ravel()
    _check(chunk, places, closing, total, file, base)
    header = raw[start[:, None] + 8 + _HEAD_RANGE].view(layout.GHDR_DTYPE).ravel()
    header_length = raw[start + 6].astype(np.int64) | raw[start + 7].astype(np.int64) << 8
    body = start + 8 + header_length
    has_data = raw[np.minimum(body, len(raw) - 1)] == layout.DATA
    length = np.where(has_data, raw[body + 2].astype(np.int64) | raw[body + 3].astype(np.int64) << 8, 0)
    wrong = np.flatnonzero(body + np.where(has_data, 4, 0) + length + layout.TAIL_SIZE > edges[1:])
    if len(wrong):
        raise damaged(file, base + places[int(wrong[0])], "a data area inside its record")
    first = body + np.where(has_data, 4, 0)
    return Records(start, total, header, first, length, first + length + 4, edges[1:] - 12, places[-1])


def _check(
    chunk: bytes, places: list[int], closing: NDArray[np.void], total: NDArray[np.int64], file: object, base: int
) -> None:
    bad = np.flatnonzero(
        (closing["trailer"] != layout.TRAILER) | (closing["trailer_info"] != 1) | (closing["total"] != total)
    )
    if len(bad):
        raise damaged(file, base + places[int(bad[0])], "a trailer with the record's own length")
    bad = np.flatnonzero((closing["checksum"] != layout.CHECKSUM) | (closing["info"] != 0) | (closing["size"] != 4))
    if len(bad):
        raise damaged(file, base + places[int(bad[0])], "a checksum token")
    view, crc = memoryview(chunk), zlib.crc32
    sums = [crc(view[low : high - 12]) for low, high in pairwise(places)]
    bad = np.flatnonzero(np.array(sums, dtype=np.uint32) != closing["value"])
    if len(bad):
        raise damaged(file, base + places[int(bad[0])], "bytes that fit their checksum")


def tokens(chunk: bytes | memoryview, first: int, end: int) -> dict[str, bytes]:
    """The GGS tokens between two places, by their one-letter ids.  Raises ValueError when one leads outside."""
    found: dict[str, bytes] = {}
    while first < end:
        if first + 4 > end:
            raise ValueError("half a token")
        identity, _, length = layout.TOKEN.unpack_from(chunk, first)
        first += 4
        if first + length > end:
            raise ValueError(f"token {identity:#x} leads behind its record")
        found[chr(identity)] = bytes(chunk[first : first + length])
        first += length
    return found


def transaction_header(chunk: bytes, first: int, end: int, io_time: int) -> TransactionHeader:
    """The transaction that a record's GGS tokens announce.  Raises ValueError when they do not."""
    # What this program writes: LOGCSN of 17 bytes, TRANID, and LOGBSN of 17 bytes, without a dictionary for each.
    if chunk[first] == layout.LOGCSN and chunk[first + 2] == _LSN_SIZE and chunk[first + 21] == layout.TRANID:
        xid_end = first + 25 + chunk[first + 23]
        csn = Csn.parse(bytes(chunk[first + 4 : first + 21]).decode())
        if xid_end == end or (end - xid_end == 4 + _LSN_SIZE and chunk[xid_end] == layout.LOGBSN):
            restart = Csn.parse(bytes(chunk[xid_end + 4 : end]).decode()).value if xid_end < end else 0
            xid = bytes(chunk[first + 25 : xid_end]).decode()
            return TransactionHeader(xid, csn, io_time - JULIAN_EPOCH_MICROSECONDS, restart)
    found = tokens(chunk, first, end)
    if "L" not in found or "6" not in found:
        raise ValueError("the first record of a transaction without LOGCSN and TRANID")
    restart = Csn.parse(found["B"].decode()).value if "B" in found else 0
    csn = Csn.parse(found["L"].decode())
    return TransactionHeader(found["6"].decode(), csn, io_time - JULIAN_EPOCH_MICROSECONDS, restart)
