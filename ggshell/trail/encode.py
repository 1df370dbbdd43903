"""Encode batches to trail bytes. Headers and trailers are built for all rows at once; data areas are copied, not parsed."""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ggshell.checksum import crc32
from ggshell.clock import JULIAN_EPOCH_MICROSECONDS
from ggshell.record.change import ChangeBatch
from ggshell.record.operation import IoType, TransInd
from ggshell.record.ragged import copy_pieces, items
from ggshell.trail import layout
from ggshell.trail.tokens import transaction_tokens

FEW_ROWS = 8
"""Batches with up to this many rows are faster to encode row by row."""
_CLOSE = struct.Struct("<BBHI")
_TRAILER = struct.Struct("<IBBH")
_TAIL = np.dtype([("opening", "V4"), ("closing", f"V{layout.CLOSING_SIZE}")])
_FOUR = np.arange(4, dtype=np.int64)
_BEGIN, _MIDDLE, _END, _SOLE = int(TransInd.BEGIN), int(TransInd.MIDDLE), int(TransInd.END), int(TransInd.SOLE)
_DELETE, _FRAGMENT = (
    int(IoType.DELETE),
    int(IoType.RECORD_FRAGMENT),
)  # plain integers: looking up enum members for every row is slow
_PLACES = np.array([_MIDDLE, _BEGIN, _END, _SOLE], dtype=np.uint8)
"""TransInd by flags: the row begins (1) and ends (2) its transaction."""


def trans_inds(batch: ChangeBatch) -> NDArray[np.uint8]:
    """Return each row's place in its transaction (TransInd)."""
    flags = np.zeros(len(batch), dtype=np.uint8)
    flags[[piece.first for piece in batch.pieces if piece.begins]] = 1
    flags[[piece.first + piece.count - 1 for piece in batch.pieces if piece.ends]] |= 2
    return _PLACES[flags]


def encode_batch(batch: ChangeBatch, indexes: NDArray[np.uint16], rba: int) -> bytes | bytearray:
    """Encode the records of a batch for ``rba``; ``indexes`` maps the batch's table numbers to the file's table indexes."""
    longest = batch.length if batch.user_tokens is None else batch.length + batch.user_tokens.length
    if len(batch) <= FEW_ROWS or int(longest.max(initial=0)) > layout.LONGEST_DATA:
        return encode_one_by_one(batch, indexes, rba)
    return encode_at_once(batch, indexes, rba)


def encode_at_once(batch: ChangeBatch, indexes: NDArray[np.uint16], rba: int) -> bytearray:
    """Encode the records of a batch with vector operations; no data area may need fragments."""
    places = trans_inds(batch)
    tokens = {piece.first: transaction_tokens(piece.header) for piece in batch.pieces if piece.begins}
    firsts = np.fromiter(tokens, dtype=np.int64, count=len(tokens))
    sizes = np.fromiter(map(len, tokens.values()), dtype=np.int64, count=len(tokens))
    more = np.zeros(len(batch), dtype=np.int64)
    more[firsts] = sizes
    head = np.where(batch.length > 0, layout.HEAD_SIZE, layout.BARE_HEAD_SIZE)
    user = _user_sizes(batch)
    totals = head + batch.length + user + more + layout.TAIL_SIZE
    ends = np.cumsum(totals)
    starts = ends - totals
    out = bytearray(int(ends[-1]) if len(ends) else 0)
    _put_heads(out, starts, head, _heads(batch, indexes, places, totals))
    copy_pieces(out, starts + head, batch.buffer, batch.start, batch.length)
    _put_user_tokens(out, starts + head + batch.length, batch)
    tails = np.zeros(len(batch), dtype=layout.TAIL_DTYPE)
    tails["tokens"], tails["tokens_length"] = layout.TOKENS, more + 4 + layout.SEAL
    tails["checksum"], tails["checksum_length"] = layout.CHECKSUM, layout.SEAL
    tails["place"] = (rba + starts) & layout.PLACE_MASK
    tails["trailer"], tails["trailer_info"], tails["total"] = layout.TRAILER, 1, totals
    # A row's GGS tokens stand between the first 4 bytes of its tail and the rest of it.
    items(out, layout.CLOSING_SIZE)[ends - layout.CLOSING_SIZE] = tails.view(_TAIL)["closing"]
    opening = ends - layout.TAIL_SIZE - more
    items(out, 4)[opening] = tails.view(_TAIL)["opening"]
    copy_pieces(out, opening[firsts] + 4, b"".join(tokens.values()), np.cumsum(sizes) - sizes, sizes)
    _seal(out, ends)
    return out


def _user_sizes(batch: ChangeBatch) -> NDArray[np.int64]:
    """Return the size of each row's U token in bytes; 0 if the row has none."""
    if batch.user_tokens is None:
        return np.zeros(len(batch), dtype=np.int64)
    length = batch.user_tokens.length
    return np.where(length > 0, length + 4, 0)


def _put_user_tokens(out: bytearray, at: NDArray[np.int64], batch: ChangeBatch) -> None:
    """Write the U tokens, after the data areas, of the rows that have one."""
    if batch.user_tokens is None:
        return
    rows = np.flatnonzero(batch.user_tokens.length > 0)
    start, length = batch.user_tokens.start[rows], batch.user_tokens.length[rows]
    heads = np.zeros(len(rows), dtype=[("id", "u1"), ("info", "u1"), ("length", "<u2")])
    heads["id"], heads["length"] = layout.USER_TOKENS, length
    items(out, 4)[at[rows]] = heads.view("V4")
    copy_pieces(out, at[rows] + 4, batch.buffer, start, length)


def _put_heads(out: bytearray, starts: NDArray[np.int64], size: NDArray[np.int64], heads: NDArray[np.void]) -> None:
    """Write each row's head; the head of a row without a data area has no D token."""
    whole = size == layout.HEAD_SIZE
    if whole.all():
        items(out, layout.HEAD_SIZE)[starts] = heads.view(f"V{layout.HEAD_SIZE}")
        return
    items(out, layout.HEAD_SIZE)[starts[whole]] = heads[whole].view(f"V{layout.HEAD_SIZE}")
    bare = np.flatnonzero(~whole)
    at = bare * layout.HEAD_SIZE
    items(out, layout.BARE_HEAD_SIZE)[starts[bare]] = items(heads.tobytes(), layout.BARE_HEAD_SIZE)[at]


def _seal(out: bytearray, ends: NDArray[np.int64]) -> None:
    """Compute each record's checksum and write it into the record."""
    edges = [0, *ends.tolist()]
    view, crc, rest = memoryview(out), crc32, layout.UNSEALED
    sums = np.array([crc(view[low : high - rest]) for low, high in pairwise(edges)], dtype="<u4")
    raw = np.frombuffer(out, dtype=np.uint8)
    raw[(ends - rest)[:, None] + _FOUR] = sums.view(np.uint8).reshape(-1, 4)


def _io_times(batch: ChangeBatch) -> NDArray[np.uint64]:
    times = [piece.header.commit_time + JULIAN_EPOCH_MICROSECONDS for piece in batch.pieces]
    return np.repeat(np.array(times, dtype=np.uint64), [piece.count for piece in batch.pieces])


def _heads(
    batch: ChangeBatch, indexes: NDArray[np.uint16], places: NDArray[np.uint8], totals: NDArray[np.int64]
) -> NDArray[np.void]:
    """Build all record heads (G, H and D tokens and the header), 48 bytes each."""
    heads = np.zeros(len(batch), dtype=layout.HEAD_DTYPE)
    heads["record"], heads["record_info"], heads["record_length"] = layout.RECORD, 1, totals
    heads["header"], heads["header_length"] = layout.HEADER, 36
    heads["data"], heads["data_length"] = layout.DATA, batch.length
    header = heads["ghdr"]
    header["hdr_ind"], header["partition"], header["before_after"] = layout.HDR_IND, layout.PARTITION_ROW, layout.AFTER
    header["before_after"][batch.io_type == _DELETE] = layout.BEFORE
    if batch.befores is not None:
        header["before_after"][batch.befores] = layout.BEFORE
    header["rec_length"], header["io_type"], header["orig_node"] = batch.length, batch.io_type, layout.ORIG_NODE
    header["io_time"], header["audit_pos"] = _io_times(batch), batch.position
    header["trans_ind"], header["format_type"], header["rec_count"] = places, layout.FORMAT_TYPE, 1
    header["table"] = indexes[batch.table]
    return heads


def encode_record(
    header: tuple[int, ...], data: bytes | memoryview, rba: int, *, tail: bytes = b"\0\0", tokens: bytes = b""
) -> bytes:
    """Encode one record at ``rba`` from its header fields (in the order of GHDR), the tail after them, data and tokens."""
    head = layout.token(layout.HEADER, layout.GHDR.pack(*header) + tail)
    body = head + (layout.token(layout.DATA, bytes(data)) if len(data) else b"")
    total = 4 + len(body) + 4 + len(tokens) + layout.CLOSING_SIZE
    content = b"".join(
        [
            layout.TOKEN.pack(layout.RECORD, 1, total),
            body,
            layout.TOKEN.pack(layout.TOKENS, 0, len(tokens) + 4 + layout.SEAL),
            tokens,
            _CLOSE.pack(layout.CHECKSUM, 0, layout.SEAL, rba & layout.PLACE_MASK),
        ]
    )
    return content + _TRAILER.pack(crc32(content), layout.TRAILER, 1, total)


class _Rows(NamedTuple):
    """The columns of a batch as plain lists, which are faster than arrays for access row by row."""

    table: list[int]
    kind: list[int]
    position: list[int]
    start: list[int]
    length: list[int]
    before: list[bool]
    user: list[bytes]


def _plain(batch: ChangeBatch, indexes: NDArray[np.uint16]) -> _Rows:
    tables, kinds, source = indexes.tolist(), batch.io_type.tolist(), batch.buffer
    before = [kind == _DELETE for kind in kinds]
    if batch.befores is not None:
        before = [one or other for one, other in zip(before, batch.befores.tolist(), strict=True)]
    user = [b""] * len(kinds)
    if batch.user_tokens is not None:
        areas = zip(batch.user_tokens.start.tolist(), batch.user_tokens.length.tolist(), strict=True)
        user = [bytes(source[first : first + size]) for first, size in areas]
    return _Rows(
        [tables[number] for number in batch.table.tolist()],
        kinds,
        batch.position.tolist(),
        batch.start.tolist(),
        batch.length.tolist(),
        before,
        user,
    )


def encode_one_by_one(batch: ChangeBatch, indexes: NDArray[np.uint16], rba: int) -> bytes:
    """Encode a batch row by row: faster for few rows, and needed if a data area must be split into fragments."""
    source, rows, records = memoryview(batch.buffer), _plain(batch, indexes), list[bytes]()
    for piece in batch.pieces:
        time, stop = piece.header.commit_time + JULIAN_EPOCH_MICROSECONDS, piece.first + piece.count
        for row in range(piece.first, stop):
            begins, ends = piece.begins and row == piece.first, piece.ends and row == stop - 1
            tokens = transaction_tokens(piece.header) if begins else b""
            start, user = rows.start[row], rows.user[row]
            side = layout.BEFORE if rows.before[row] else layout.AFTER
            cuts = _cuts(rows.length[row], len(user))
            for number, (low, high) in enumerate(cuts, 1):
                first, last = number == 1, number == len(cuts)
                record = _row(
                    source[start + low : start + high],
                    (side, rows.kind[row] if first else _FRAGMENT, time, rows.position[row], rows.table[row]),
                    _place(begins=begins and first, ends=ends and last),
                    (0 if last else layout.CONTINUED, number & 0xFF),
                    (layout.token(layout.USER_TOKENS, user) if user and first else b"", tokens if first else b""),
                    rba,
                )
                records.append(record)
                rba += len(record)
    return b"".join(records)


def _place(*, begins: bool, ends: bool) -> int:
    if begins:
        return _SOLE if ends else _BEGIN
    return _END if ends else _MIDDLE


def _cuts(length: int, user: int) -> list[tuple[int, int]]:
    """Split a data area into pieces of one record each; user tokens take up space in the first record."""
    step = layout.LONGEST_DATA
    if length + user <= step:
        return [(0, length)]
    edges = [0, *range(step - user, length, step), length]
    return list(pairwise(edges))


def _row(
    data: memoryview,
    fields: tuple[int, int, int, int, int],
    place: int,
    fragment: tuple[int, int],
    tokens: tuple[bytes, bytes],
    rba: int,
) -> bytes:
    """Encode one row's record.

    ``fields``: BeforeAfter, IOType, IO Time, AuditPos, table index; ``fragment``: Continued, RecCount; ``tokens``: the U
    token, if any, and the GGS tokens before the checksum."""
    side, kind, time, position, table = fields
    user, own = tokens
    length, more = len(data), len(own)
    head_size = layout.HEAD_SIZE if length else layout.BARE_HEAD_SIZE
    total = head_size + length + len(user) + more + layout.TAIL_SIZE
    head = layout.ROW_HEAD.pack(
        *(layout.RECORD, 1, total, layout.HEADER, 0, 36, layout.HDR_IND, layout.PARTITION_ROW, 0, side, length),
        *(kind, layout.ORIG_NODE, time, position, 0, place, layout.FORMAT_TYPE, 0, 0, *fragment, table),
        *(layout.DATA, 0, length),
    )
    content = b"".join(
        (
            head if length else head[:head_size],
            data,
            user,
            layout.TOKEN.pack(layout.TOKENS, 0, more + 4 + layout.SEAL),
            own,
            _CLOSE.pack(layout.CHECKSUM, 0, layout.SEAL, rba & layout.PLACE_MASK),
        )
    )
    return content + _TRAILER.pack(crc32(content), layout.TRAILER, 1, total)
