"""Batches to trail bytes.  Headers and trailers are made for all rows at once; the rows' own bytes are copied, never read."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from ggshell.clock import JULIAN_EPOCH_MICROSECONDS
from ggshell.record import ChangeBatch, IoType, TransactionHeader, TransInd
from ggshell.trail import layout


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
    for piece in batch.pieces:
        last = piece.first + piece.count - 1
        if piece.ends:
            places[last] = TransInd.END
        if piece.begins:
            places[piece.first] = TransInd.SOLE if piece.ends and piece.count == 1 else TransInd.BEGIN
            tokens[piece.first] = transaction_tokens(piece.header)
    return places, tokens


def encode_batch(batch: ChangeBatch, indexes: NDArray[np.uint16]) -> bytes:
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
) -> bytes:
    has_data = batch.length > 0
    totals = batch.length + np.where(has_data, layout.HEAD_SIZE, layout.BARE_HEAD_SIZE) + layout.TAIL_SIZE
    for row, value in tokens.items():
        totals[row] += len(value)
    heads = _heads(batch, indexes, places, totals)
    source = memoryview(batch.buffer)
    parts: list[bytes | memoryview] = []
    add, pack, size = parts.append, _CLOSE.pack, layout.HEAD_SIZE
    crc = zlib.crc32
    starts, lengths = batch.start.tolist(), batch.length.tolist()
    plain = layout.TOKEN.pack(layout.TOKENS, 0, 8)
    for row, (start, length, total) in enumerate(zip(starts, lengths, totals.tolist(), strict=True)):
        first = row * size
        more = tokens.get(row)
        opening = layout.TOKEN.pack(layout.TOKENS, 0, len(more) + 8) + more if more else plain
        if length:
            head = heads[first : first + size]
            data = source[start : start + length]
            checksum = crc(opening, crc(data, crc(head)))
            add(head)
            add(data)
        else:
            head = heads[first : first + layout.BARE_HEAD_SIZE]
            checksum = crc(opening, crc(head))
            add(head)
        add(opening)
        add(pack(layout.CHECKSUM, 0, 4, checksum, layout.TRAILER, 1, total))
    return b"".join(parts)


_CLOSE = struct.Struct("<BBHIBBH")


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
