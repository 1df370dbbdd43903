"""Decode trail bytes to records: follow the lengths, check every record, and read all headers of a chunk at once.

Each record is checked for its framing, its trailer and its checksum, and for standing at the RBA it was written for. The
last check finds records that were moved, duplicated or cut out.
"""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ggshell.checksum import crc32
from ggshell.errors import TrailError
from ggshell.record.change import Areas
from ggshell.record.ragged import items, longs, shorts
from ggshell.trail import layout

_OPENING = struct.Struct("<HH")
_OPENED = layout.RECORD | 1 << 8
SMALLEST = 4 + 4 + 34 + 1 + layout.TAIL_SIZE
"""The size of the shortest record in bytes: G, H with an empty name, and the tail."""
FEW_BYTES = 16_384
"""Chunks up to this size, in bytes, are walked record by record."""
_ZERO = np.zeros(1, dtype=np.int64)
_TO_TRAILER: Final = layout.RECORD ^ layout.TRAILER
"""Changes the first word of a record to its last one."""
_SEALED: Final = layout.SEAL << 16 | layout.CHECKSUM
_ROW_HEADER: Final = layout.GHDR_DTYPE.itemsize << 16 | layout.HEADER
_ID_AND_LENGTH: Final = 0xFFFF00FF
"""The bits of a token's first word without its info byte."""


class _Frames(NamedTuple):
    """Consecutive whole records, by their lengths: places and the place after the last, and the first and last bytes of each.

    ``head``: as long as the fixed part of a row; ``closing``: the checksum token and the trailer."""

    edges: NDArray[np.int64]
    head: NDArray[np.void]
    closing: NDArray[np.void]


_NO_FRAMES: Final = _Frames(_ZERO, np.zeros(0, f"V{layout.HEAD_SIZE}"), np.zeros(0, f"V{layout.CLOSING_SIZE}"))


class Fault(NamedTuple):
    """The place in a chunk where the bytes are not a valid record, and what was expected there."""

    place: int
    expected: str


class Records(NamedTuple):
    """The whole, undamaged records of a chunk: places and lengths of records, data areas and GGS tokens, and all headers.

    ``end`` is the place after the last one. ``fault`` is the fault found there; None if the chunk simply ends. ``user``
    holds the places of user tokens; None if no record has any.
    """

    start: NDArray[np.int64]
    total: NDArray[np.int64]
    header: NDArray[np.void]
    data_start: NDArray[np.int64]
    data_length: NDArray[np.int64]
    token_start: NDArray[np.int64]
    token_end: NDArray[np.int64]
    end: int
    fault: Fault | None
    user: Areas | None = None

    @property
    def is_row(self) -> NDArray[np.bool_]:
        """Which records are rows of tables, or fragments of rows."""
        indexed: NDArray[np.bool_] = (self.header["partition"] & layout.INDEXED) != 0
        return indexed

    def only(self, chosen: NDArray[np.bool_]) -> Records:
        """Return the chosen records; ``end`` and ``fault`` stay the same."""
        user = None if self.user is None else Areas(self.user.start[chosen], self.user.length[chosen])
        return Records(
            self.start[chosen], self.total[chosen], self.header[chosen], self.data_start[chosen],
            self.data_length[chosen], self.token_start[chosen], self.token_end[chosen], self.end, self.fault, user,
        )  # fmt: skip


def damaged(file: object, rba: int, expected: str) -> TrailError:
    """Return the error for bytes that are not a valid record."""
    return TrailError(
        f"trail file {file} is damaged at RBA {rba}: expected {expected}",
        where=f"{file}, RBA {rba}",
        hint="restore the file from a backup; if there is none, see HELP RECOVERY (SCANFORHEADER in Logdump finds the remaining"
        " records)",
    )


def walk(chunk: bytes) -> tuple[NDArray[np.int64], Fault | None]:
    """Return the places of a chunk's whole records and the place after the last, and the fault where no record begins."""
    leapt = _leap(chunk).edges
    places, fault = _step(chunk, int(leapt[-1]))
    return np.concatenate((leapt, np.array(places, dtype=np.int64))), fault


def _step(chunk: bytes, place: int) -> tuple[list[int], Fault | None]:
    """Return the place after each whole record, starting at a place."""
    places: list[int] = []
    end, unpack, add = len(chunk), _OPENING.unpack_from, places.append
    while place + 4 <= end:
        opening, total = unpack(chunk, place)
        if opening != _OPENED:
            return places, Fault(place, "a record header token")
        if total < SMALLEST:
            return places, Fault(place, f"a record of at least {SMALLEST} bytes, not {total}")
        place += total
        if place > end:
            break
        add(place)
    return places, None


def _leap(chunk: bytes) -> _Frames:
    """Find as many records as possible with vector operations, from the start of the chunk on; none in a small chunk.

    A candidate looks like the start of a record and has a trailer where its length says. The candidates are records as
    long as each one ends where the next one starts."""
    if len(chunk) <= FEW_BYTES:
        return _NO_FRAMES
    heads, closings = items(chunk, layout.HEAD_SIZE), items(chunk, layout.CLOSING_SIZE)
    place = _places_of(np.frombuffer(chunk, dtype=np.uint8)[: len(heads)], layout.RECORD)
    head = heads[place]
    opening = _words(head)[:, 0].astype(np.int64)
    after = place + (opening >> 16)
    likely = ((opening & 0xFFFF) == _OPENED) & (opening >= SMALLEST << 16) & (after <= len(chunk))
    closing = closings[np.where(likely, after - layout.CLOSING_SIZE, 0)]
    likely &= _words(closing)[:, -1] == opening ^ _TO_TRAILER
    place, edges = place[likely], np.concatenate((_ZERO, after[likely]))
    wrong = np.flatnonzero(place != edges[:-1])
    count = int(wrong[0]) if len(wrong) else len(place)
    return _Frames(edges[: count + 1], head[likely][:count], closing[likely][:count])


def _words(items: NDArray[np.void]) -> NDArray[np.uint32]:
    """Return the 4-byte words of items, a row for each item."""
    return items.view("<u4").reshape(len(items), items.itemsize // 4)


def _places_of(raw: NDArray[np.uint8], value: int) -> NDArray[np.int64]:
    """Return where bytes have a value that few of them have: eight bytes are looked at together."""
    found, whole = raw == value, len(raw) & ~7
    together = found[:whole].view(np.uint64)
    eights = np.flatnonzero(together != 0)
    inside = np.flatnonzero(together[eights].view(np.bool_))
    place = (eights[inside >> 3] << 3) + (inside & 7)
    return np.concatenate((place, np.flatnonzero(found[whole:]) + whole))


def good_records(chunk: bytes, file: object, base: int) -> Records:
    """Return a chunk's records before the first one that is damaged or incomplete; ``base`` is the chunk's RBA.

    Raises TrailError only for a record whose checksum is correct but whose content is not valid.
    """
    frames = _leap(chunk)
    stepped, fault = _step(chunk, int(frames.edges[-1]))
    if not stepped:
        rows = _good_rows(chunk, frames, fault, base)
        if rows is not None:
            return rows
    places = np.concatenate((frames.edges, np.array(stepped, dtype=np.int64)))
    if len(places) > 1:
        bad = _first_bad(chunk, places, base)
        if bad is not None:
            row, expected = bad
            fault = Fault(int(places[row]), expected)
            places = places[: row + 1]
    return _take_apart(chunk, places, fault, file, base)


def parse(chunk: bytes, file: object, base: int) -> Records:
    """Like ``good_records``, but raises TrailError if the chunk begins with damage."""
    records = good_records(chunk, file, base)
    if records.fault is not None and not records.end:
        raise damaged(file, base, records.fault.expected)
    return records


def _first_bad(chunk: bytes, edges: NDArray[np.int64], base: int) -> tuple[int, str] | None:
    four, after = longs(chunk), edges[1:]
    framed = four[after - 4] == (np.diff(edges) << 16 | 1 << 8 | layout.TRAILER)
    sealed = four[after - layout.CLOSING_SIZE] & 0xFFFF00FF == layout.SEAL << 16 | layout.CHECKSUM
    place = four[after - layout.CLOSING_SIZE + 4]
    placed = place == ((edges[:-1] + base) & layout.PLACE_MASK)
    good = framed & sealed & placed
    whole = len(good) if good.all() else int(np.argmin(good))
    unfit = first_unfit(chunk, edges[: whole + 1])
    if unfit is not None:
        return unfit, "bytes that match their checksum"
    if whole == len(good):
        return None
    if not framed[whole]:
        return whole, "a trailer with the record's own length"
    if not sealed[whole]:
        return whole, "a checksum token"
    if first_unfit(chunk, edges[whole : whole + 2]) is not None:
        return whole, "bytes that match their checksum"
    return whole, f"a record written for this position, not for RBA {int(place[whole])}"


def _pair(raw: NDArray[np.uint8], place: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the 2-byte numbers at these places."""
    return shorts(raw)[place].astype(np.int64)


def _take_apart(chunk: bytes, edges: NDArray[np.int64], fault: Fault | None, file: object, base: int) -> Records:
    if len(edges) == 1:
        none = np.zeros(0, dtype=np.int64)
        return Records(none, none, np.zeros(0, dtype=layout.GHDR_DTYPE), none, none, none, none, 0, fault)
    start, after = edges[:-1], edges[1:]
    raw = np.frombuffer(chunk, dtype=np.uint8)
    header_length = _pair(raw, start + 6)
    body, limit = start + 8 + header_length, after - layout.TAIL_SIZE
    wrong = np.flatnonzero((raw[start + 4] != layout.HEADER) | (header_length < 34) | (body > limit))
    if len(wrong):
        raise damaged(file, base + int(start[wrong[0]]), "a header inside its record")
    header = items(chunk, layout.GHDR_DTYPE.itemsize)[start + 8].view(layout.GHDR_DTYPE)
    has_data = raw[body] == layout.DATA
    length = np.where(has_data, _pair(raw, body + 2), 0)
    first = body + 4 * has_data
    area = first + length
    near = np.minimum(area, limit)
    has_user = (raw[near] == layout.USER_TOKENS) & (area <= limit)
    user = Areas(near + 4, np.where(has_user, _pair(raw, near + 2), 0)) if has_user.any() else None
    if user is not None:
        area = area + np.where(has_user, user.length + 4, 0)
        near = np.minimum(area, limit)
    plain = (area <= limit) & (raw[near] == layout.TOKENS) & (near + 4 + _pair(raw, near + 2) == after - 4)
    for row in np.flatnonzero(~plain).tolist():
        found = _areas(chunk, int(body[row]), int(after[row]) - 4)
        if found is None:
            raise damaged(file, base + int(start[row]), "a data area and GGS tokens inside the record")
        first[row], length[row], area[row] = found.data, found.length, found.tokens
        if found.user_length or user is not None:
            user = user or Areas(np.zeros_like(first), np.zeros_like(first))
            user.start[row], user.length[row] = found.user, found.user_length
    wrong = np.flatnonzero(header["rec_length"] != length)
    if len(wrong):
        row = int(wrong[0])
        raise damaged(
            file,
            base + int(start[row]),
            f"a data area of {int(header['rec_length'][row])} bytes, not {int(length[row])}",
        )
    tokens_end = after - layout.CLOSING_SIZE
    return Records(start, after - start, header, first, length, area + 4, tokens_end, int(edges[-1]), fault, user)


def _good_rows(chunk: bytes, frames: _Frames, fault: Fault | None, base: int) -> Records | None:
    """Return the records if all are undamaged rows with a table index, a data area and GGS tokens and nothing else.

    Otherwise None: then each record must be checked."""
    edges, start, after = frames.edges, frames.edges[:-1], frames.edges[1:]
    if not len(start):
        return None
    head, closing = _words(frames.head), _words(frames.closing)
    data = head[:, -1]
    length = data >> 16
    usual = (
        (head[:, 1] & _ID_AND_LENGTH == _ROW_HEADER) & (data & 0xFF == layout.DATA) & (length == head[:, 3] & 0xFFFF)
    )
    usual &= (closing[:, 0] & _ID_AND_LENGTH == _SEALED) & (closing[:, 1] == (start + base & layout.PLACE_MASK))
    first = start + layout.HEAD_SIZE
    area = first + length
    usual &= area <= after - layout.TAIL_SIZE
    if not usual.all():
        return None
    tokens = longs(chunk)[area]
    if not (((tokens & 0xFF) == layout.TOKENS) & (area + 8 + (tokens >> 16) == after)).all():
        return None
    if not _fit_together(chunk, edges, head[:, 0]):
        return None
    header = frames.head.view(layout.HEAD_DTYPE)["ghdr"]
    return Records(
        start, after - start, header, first, length.astype(np.int64), area + 4, after - layout.CLOSING_SIZE,
        int(edges[-1]), fault,
    )  # fmt: skip


class _Areas(NamedTuple):
    """Places and lengths of the parts of one record: data area, user tokens and T token."""

    data: int
    length: int
    user: int
    user_length: int
    tokens: int


def _areas(chunk: bytes, place: int, end: int) -> _Areas | None:
    """Return the areas of a record with an unusual set of tokens; None if it does not end with GGS tokens.

    Unknown tokens, from later releases, are skipped."""
    data = user = (place, 0)
    tokens = -1
    while place + 4 <= end:
        identity, _, length = layout.TOKEN.unpack_from(chunk, place)
        if identity == layout.DATA:
            data = (place + 4, length)
        elif identity == layout.USER_TOKENS:
            user = (place + 4, length)
        tokens = place if identity == layout.TOKENS else -1
        place += 4 + length
    return _Areas(*data, *user, tokens) if place == end and tokens >= 0 else None


# The checksums of many consecutive records, checked with one CRC-32 call.
#
# The CRC-32 of any bytes followed by their own CRC-32 is a constant. Only the trailer follows the checksum in a
# record, so the CRC-32 of a whole undamaged record depends on its length alone. XORing that value into the first
# bytes of the next record restarts the sum there. The CRC-32 of the whole run is then the CRC-32 of its last record
# if and only if all records are undamaged. If it differs, the records are checked one by one to find the damaged one.


_FEW: Final = 32
"""Up to this many records are checked one by one."""
_RESIDUE: Final = crc32(bytes(4))
"""The CRC-32 of any bytes followed by their own CRC-32; computed from no bytes, whose CRC-32 is 0."""


def _sums_by_length() -> NDArray[np.uint32]:
    """Return the CRC-32 of an undamaged record by its length.

    CRC-32 is linear over inputs of equal length, so the sums for the low and the high byte of the length are enough."""
    trailers = [
        layout.TOKEN.pack(layout.TRAILER, 1, total) for half in (1, 256) for total in range(0, 256 * half, half)
    ]
    found = np.array([crc32(trailer, _RESIDUE) for trailer in trailers], dtype=np.uint32)
    low, high = found[:256], found[256:]
    sums: NDArray[np.uint32] = low[None, :] ^ high[:, None] ^ low[0]
    return sums.ravel()


_SUMS: Final = _sums_by_length()


def first_unfit(chunk: bytes, edges: NDArray[np.int64]) -> int | None:
    """Return the index of the first record whose bytes do not fit its checksum; None if all fit.

    ``edges``: the places of consecutive records, and the place after the last one.
    """
    if len(edges) > _FEW and _fit_together(chunk, edges, longs(chunk)[edges[:-1]]):
        return None
    return _first_of(chunk, edges.tolist())


def _fit_together(chunk: bytes, edges: NDArray[np.int64], opening: NDArray[np.uint32]) -> bool:
    """Whether all records fit their checksums. ``opening``: the first word of each."""
    begin = int(edges[0])
    records = bytearray(memoryview(chunk)[begin : int(edges[-1])])
    sums = _SUMS[np.diff(edges)]
    longs(records)[edges[1:-1] - begin] = opening[1:] ^ sums[:-1]
    return crc32(records) == int(sums[-1])


def _first_of(chunk: bytes, places: list[int]) -> int | None:
    view, crc, rest = memoryview(chunk), crc32, layout.UNSEALED
    for row, (low, high) in enumerate(pairwise(places)):
        if crc(view[low : high - rest]) != int.from_bytes(view[high - rest : high - rest + 4], "little"):
            return row
    return None
