"""Batches to trail bytes.  Headers and trailers are made for all rows at once; the rows' own bytes are copied, never read."""

from __future__ import annotations

import struct
import zlib
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ggshell.clock import JULIAN_EPOCH_MICROSECONDS
from ggshell.record import ChangeBatch, IoType, TransInd
from ggshell.trail import layout
from ggshell.trail.tokens import transaction_tokens

_CLOSE = struct.Struct("<BBHI")
_TRAILER = struct.Struct("<IBBH")
_FOUR = np.arange(4, dtype=np.int64)
_PLACES = np.array([TransInd.MIDDLE, TransInd.BEGIN, TransInd.END, TransInd.SOLE], dtype=np.uint8)
"""TransInd by whether a row begins (1) and ends (2) its transaction."""


def trans_inds(batch: ChangeBatch) -> tuple[NDArray[np.uint8], dict[int, bytes]]:
    """Each row's place in its transaction, and the tokens of the rows that begin one."""
    flags = np.zeros(len(batch), dtype=np.uint8)
    tokens = {piece.first: transaction_tokens(piece.header) for piece in batch.pieces if piece.begins}
    flags[list(tokens)] = 1
    flags[[piece.first + piece.count - 1 for piece in batch.pieces if piece.ends]] |= 2
    return _PLACES[flags], tokens


def encode_batch(batch: ChangeBatch, indexes: NDArray[np.uint16], rba: int) -> bytes | bytearray:
    """The records of a batch, to stand at ``rba``; ``indexes`` maps the batch's table numbers to the file's."""
    places, tokens = trans_inds(batch)
    if int(batch.length.max(initial=0)) > layout.LONGEST_DATA:
        return encode_one_by_one(batch, indexes, rba)
    more = np.zeros(len(batch), dtype=np.int64)
    more[list(tokens)] = [len(value) for value in tokens.values()]
    head = np.where(batch.length > 0, layout.HEAD_SIZE, layout.BARE_HEAD_SIZE)
    totals = head + batch.length + more + layout.TAIL_SIZE
    ends = np.cumsum(totals)
    heads = _heads(batch, indexes, places, totals)
    tails = np.zeros(len(batch), dtype=layout.TAIL_DTYPE)
    tails["tokens"], tails["tokens_length"] = layout.TOKENS, more + 4 + layout.SEAL
    tails["checksum"], tails["checksum_length"] = layout.CHECKSUM, layout.SEAL
    tails["place"] = (rba + ends - totals) & layout.PLACE_MASK
    tails["trailer"], tails["trailer_info"], tails["total"] = layout.TRAILER, 1, totals
    out = bytearray(b"".join(_parts(batch, heads, tails.tobytes(), tokens)))
    _seal(out, ends)
    return out


def _seal(out: bytearray, ends: NDArray[np.int64]) -> None:
    """Put each record's checksum, empty so far, in its place."""
    edges = [0, *ends.tolist()]
    view, crc, rest = memoryview(out), zlib.crc32, layout.UNSEALED
    sums = np.array([crc(view[low : high - rest]) for low, high in pairwise(edges)], dtype="<u4")
    raw = np.frombuffer(out, dtype=np.uint8)
    raw[(ends - rest)[:, None] + _FOUR] = sums.view(np.uint8).reshape(-1, 4)


def _io_times(batch: ChangeBatch) -> NDArray[np.uint64]:
    times = [piece.header.commit_time + JULIAN_EPOCH_MICROSECONDS for piece in batch.pieces]
    return np.repeat(np.array(times, dtype=np.uint64), [piece.count for piece in batch.pieces])


def _heads(
    batch: ChangeBatch, indexes: NDArray[np.uint16], places: NDArray[np.uint8], totals: NDArray[np.int64]
) -> bytes:
    """All record heads (G, H, D tokens and the header), 48 bytes each."""
    heads = np.zeros(len(batch), dtype=layout.HEAD_DTYPE)
    heads["record"], heads["record_info"], heads["record_length"] = layout.RECORD, 1, totals
    heads["header"], heads["header_length"] = layout.HEADER, 36
    heads["data"], heads["data_length"] = layout.DATA, batch.length
    header = heads["ghdr"]
    header["hdr_ind"], header["partition"], header["before_after"] = layout.HDR_IND, layout.PARTITION_ROW, layout.AFTER
    header["before_after"][batch.io_type == IoType.DELETE] = layout.BEFORE
    header["rec_length"], header["io_type"], header["orig_node"] = batch.length, batch.io_type, layout.ORIG_NODE
    header["io_time"], header["audit_pos"] = _io_times(batch), batch.position
    header["trans_ind"], header["format_type"], header["rec_count"] = places, layout.FORMAT_TYPE, 1
    header["table"] = indexes[batch.table]
    return heads.tobytes()


def _parts(batch: ChangeBatch, heads: bytes, tails: bytes, tokens: dict[int, bytes]) -> list[bytes | memoryview]:
    source, first, last = memoryview(batch.buffer), 0, 0
    parts: list[bytes | memoryview] = []
    add, head, bare, tail = parts.append, layout.HEAD_SIZE, layout.BARE_HEAD_SIZE, layout.TAIL_SIZE
    for row, (start, length) in enumerate(zip(batch.start.tolist(), batch.length.tolist(), strict=True)):
        if length:
            add(heads[first : first + head])
            add(source[start : start + length])
        else:
            add(heads[first : first + bare])
        if row in tokens:
            add(tails[last : last + 4])
            add(tokens[row])
            add(tails[last + 4 : last + tail])
        else:
            add(tails[last : last + tail])
        first += head
        last += tail
    return parts


def encode_record(
    header: tuple[int, ...], data: bytes | memoryview, rba: int, *, tail: bytes = b"\0\0", tokens: bytes = b""
) -> bytes:
    """One record at ``rba``, from its header's fields (the order of GHDR), the tail behind them, its data and GGS tokens."""
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
    return content + _TRAILER.pack(zlib.crc32(content), layout.TRAILER, 1, total)


def encode_one_by_one(batch: ChangeBatch, indexes: NDArray[np.uint16], rba: int) -> bytes:
    """The same bytes row by row, for batches with a data area too long for one record: those go as fragments."""
    places, tokens = trans_inds(batch)
    times, source = _io_times(batch), memoryview(batch.buffer)
    records: list[bytes] = []
    for row in range(len(batch)):
        start, length = int(batch.start[row]), int(batch.length[row])
        data = source[start : start + length]
        step = layout.LONGEST_DATA
        cuts = [data[at : at + step] for at in range(0, length, step)] or [data]
        for number, cut in enumerate(cuts):
            last = number == len(cuts) - 1
            fields = (
                layout.HDR_IND,
                layout.PARTITION_ROW,
                0,
                layout.BEFORE if batch.io_type[row] == IoType.DELETE else layout.AFTER,
                len(cut),
                int(batch.io_type[row]) if number == 0 else int(IoType.RECORD_FRAGMENT),
                layout.ORIG_NODE,
                int(times[row]),
                int(batch.position[row]),
                0,
                _fragment_place(int(places[row]), first=number == 0, last=last),
                layout.FORMAT_TYPE,
                0,
                0,
                0 if last else layout.CONTINUED,
                (number + 1) & 0xFF,
            )
            tail = struct.pack("<H", int(indexes[batch.table[row]]))
            more = tokens.get(row, b"") if number == 0 else b""
            records.append(encode_record(fields, cut, rba, tail=tail, tokens=more))
            rba += len(records[-1])
    return b"".join(records)


def _fragment_place(place: int, *, first: bool, last: bool) -> int:
    """A fragment's TransInd: the first may begin the transaction, only the last may end it."""
    begins = first and place in (TransInd.BEGIN, TransInd.SOLE)
    ends = last and place in (TransInd.END, TransInd.SOLE)
    return int(_PLACES[begins + 2 * ends])
