"""Batches to trail bytes.  Headers and trailers are made for all rows at once; the rows' own bytes are copied, never read."""

from __future__ import annotations

import struct
import zlib
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ggshell.clock import JULIAN_EPOCH_MICROSECONDS
from ggshell.record import ChangeBatch, IoType, TransactionHeader, TransInd
from ggshell.trail import layout

_CLOSE = struct.Struct("<BBHIBBH")
_FOUR = np.arange(4, dtype=np.int64)


def transaction_tokens(header: TransactionHeader) -> bytes:
    """The GGS tokens of a transaction's first record: LOGCSN, TRANID, and LOGBSN where the source gave one."""
    tokens = layout.token(layout.LOGCSN, str(header.csn).encode()) + layout.token(layout.TRANID, header.xid.encode())
    if header.restart:
        tokens += layout.token(layout.LOGBSN, str(header.csn._replace(value=header.restart)).encode())
    return tokens


def trans_inds(batch: ChangeBatch) -> tuple[NDArray[np.uint8], dict[int, bytes]]:
    """Each row's place in its transaction, and the tokens of the rows that begin one."""
    places = np.full(len(batch), TransInd.MIDDLE, dtype=np.uint8)
    tokens: dict[int, bytes] = {}
    begin, end, sole = int(TransInd.BEGIN), int(TransInd.END), int(TransInd.SOLE)
    for piece in batch.pieces:
        if piece.ends:
            places[piece.first + piece.count - 1] = end
        if piece.begins:
            places[piece.first] = sole if piece.ends and piece.count == 1 else begin
            tokens[piece.first] = transaction_tokens(piece.header)
    return places, tokens


def encode_batch(batch: ChangeBatch, indexes: NDArray[np.uint16]) -> bytes | bytearray:
    """The records of a batch; ``indexes`` maps the batch's table numbers to the file's table indexes."""
    places, tokens = trans_inds(batch)
    if int(batch.length.max(initial=0)) > layout.LONGEST_DATA:
        return _encode_with_fragments(batch, indexes, places, tokens)
    return _encode_rows(batch, indexes, places, tokens)


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


def _encode_rows(
    batch: ChangeBatch, indexes: NDArray[np.uint16], places: NDArray[np.uint8], tokens: dict[int, bytes]
) -> bytearray:
    """Records with empty checksums first, in one buffer; then each record's checksum, put in its place."""
    more = np.zeros(len(batch), dtype=np.int64)
    for row, value in tokens.items():
        more[row] = len(value)
    head = np.where(batch.length > 0, layout.HEAD_SIZE, layout.BARE_HEAD_SIZE)
    totals = head + batch.length + more + layout.TAIL_SIZE
    heads = _heads(batch, indexes, places, totals)
    tails = np.zeros(len(batch), dtype=layout.TAIL_DTYPE)
    tails["tokens"], tails["tokens_length"] = layout.TOKENS, more + 8
    tails["checksum"], tails["checksum_length"] = layout.CHECKSUM, 4
    tails["trailer"], tails["trailer_info"], tails["total"] = layout.TRAILER, 1, totals
    out = bytearray(b"".join(_parts(batch, heads, tails.tobytes(), tokens)))
    ends = np.cumsum(totals)
    edges = [0, *ends.tolist()]
    view, crc = memoryview(out), zlib.crc32
    sums = np.array([crc(view[low : high - 12]) for low, high in pairwise(edges)], dtype="<u4")
    raw = np.frombuffer(out, dtype=np.uint8)
    raw[(ends - 8)[:, None] + _FOUR] = sums.view(np.uint8).reshape(-1, 4)
    return out


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
    header: tuple[int, ...], data: bytes | memoryview, *, tail: bytes = b"\0\0", tokens: bytes = b""
) -> bytes:
    """One record from its header's fields (the order of GHDR), the tail behind them, its data and its GGS tokens."""
    head = layout.token(layout.HEADER, layout.GHDR.pack(*header) + tail)
    body = head + (layout.token(layout.DATA, bytes(data)) if len(data) else b"")
    opening = layout.TOKEN.pack(layout.TOKENS, 0, len(tokens) + 8) + tokens
    total = 4 + len(body) + len(opening) + 12
    start = layout.TOKEN.pack(layout.RECORD, 1, total)
    content = start + body + opening
    return content + _CLOSE.pack(layout.CHECKSUM, 0, 4, zlib.crc32(content), layout.TRAILER, 1, total)


def marker(io_type: IoType, io_time: int, data: bytes = b"", *, table: int | None = None) -> bytes:
    """A record of the trail itself: a definition (``table`` is its index), or a restart; fragments when it is long."""
    cuts = [data[at : at + layout.LONGEST_DATA] for at in range(0, len(data), layout.LONGEST_DATA)] or [b""]
    tail = b"\0" if table is None else struct.pack("<H", table)
    records = []
    for number, cut in enumerate(cuts):
        kind = io_type if number == 0 else IoType.RECORD_FRAGMENT
        fields = (
            layout.HDR_IND,
            layout.PARTITION_METADATA,
            0,
            layout.AFTER,
            len(cut),
            int(kind),
            0,
            io_time + JULIAN_EPOCH_MICROSECONDS,
            0,
            0,
            TransInd.SOLE,
            layout.FORMAT_TYPE,
            0,
            0,
            layout.CONTINUED if number < len(cuts) - 1 else 0,
            0 if io_type == IoType.RESTART_OK else 1,
        )
        records.append(encode_record(fields, cut, tail=tail))
    return b"".join(records)


def _encode_with_fragments(
    batch: ChangeBatch, indexes: NDArray[np.uint16], places: NDArray[np.uint8], tokens: dict[int, bytes]
) -> bytes:
    """The same, row by row, for batches with a data area too long for one record."""
    times = _io_times(batch)
    source = memoryview(batch.buffer)
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
                1,
            )
            tail = struct.pack("<H", int(indexes[batch.table[row]]))
            more = tokens.get(row, b"") if number == 0 else b""
            records.append(encode_record(fields, cut, tail=tail, tokens=more))
    return b"".join(records)


def _fragment_place(place: int, *, first: bool, last: bool) -> int:
    """A fragment's TransInd: the first may begin the transaction, only the last may end it."""
    begins = first and place in (TransInd.BEGIN, TransInd.SOLE)
    ends = last and place in (TransInd.END, TransInd.SOLE)
    if begins and ends:
        return TransInd.SOLE
    if begins:
        return TransInd.BEGIN
    return TransInd.END if ends else TransInd.MIDDLE
