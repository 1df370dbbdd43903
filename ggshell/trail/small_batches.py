"""Decode small batches record by record; at the live end of a trail this is faster than the vectorized path.

Anything unusual (damage, fragments, definitions, tokens of later releases) is left to the vectorized path, which also
reports what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ggshell.checksum import crc32
from ggshell.record.change import ChangeBatch
from ggshell.record.definition import TableDefinition
from ggshell.record.operation import IoType, TransInd
from ggshell.record.transaction import TransactionHeader, TransactionPiece
from ggshell.trail import layout
from ggshell.trail.tokens import transaction_header

SMALL_BATCH_BYTES = 2048
"""Chunks up to this size, in bytes, are tried here first."""
_END, _SOLE, _BEGINS = int(TransInd.END), int(TransInd.SOLE), (int(TransInd.BEGIN), int(TransInd.SOLE))
_FRAGMENT, _DELETE = int(IoType.RECORD_FRAGMENT), int(IoType.DELETE)
_UNSEALED = layout.UNSEALED
_OPENING = (layout.RECORD, 1)
_HEADER = (layout.HEADER, 0, 36)


class _Row(NamedTuple):
    """A row's place in its chunk, and its header fields."""

    place: int
    end: int
    data: int
    length: int
    kind: int
    time: int
    position: int
    trans_ind: int
    table: int
    before: bool


def read_small_batch(
    chunk: bytes, base: int, seqno: int, definitions: Mapping[int, TableDefinition], header: TransactionHeader | None
) -> tuple[ChangeBatch, TransactionHeader | None] | None:
    """Return the rows of a chunk at RBA ``base`` and the transaction that is open after them (``header``: before them).

    Returns None if the chunk holds anything but whole, undamaged rows of known tables in a valid order.
    """
    rows = _rows(chunk, base)
    if not rows or any(row.table not in definitions for row in rows):
        return None
    pieces = _pieces(chunk, rows, header)
    if pieces is None:
        return None
    used = list(dict.fromkeys(row.table for row in rows))
    batch = ChangeBatch(
        tables=tuple([definitions[index] for index in used]),
        table=np.array([used.index(row.table) for row in rows], dtype=np.uint16),
        io_type=np.array([row.kind for row in rows], dtype=np.uint8),
        position=np.array([row.position for row in rows], dtype=np.uint64),
        buffer=chunk,
        start=np.array([row.data for row in rows], dtype=np.int64),
        length=np.array([row.length for row in rows], dtype=np.int64),
        rba=np.array([row.place + base for row in rows], dtype=np.int64),
        pieces=tuple(pieces),
        seqno=seqno,
        end_rba=base + rows[-1].end,
        befores=np.array([row.before for row in rows], dtype=bool) if any(row.before for row in rows) else None,
    )
    return batch, None if pieces[-1].ends else pieces[-1].header


def _rows(chunk: bytes, base: int) -> list[_Row] | None:
    """Decode every record of the chunk as a row; None if one is not a row, is incomplete or does not fit its checksum."""
    rows: list[_Row] = []
    place, end, view = 0, len(chunk), memoryview(chunk)
    while place < end:
        if place + layout.HEAD_SIZE + layout.TAIL_SIZE > end:
            return None
        fields = layout.ROW_HEAD.unpack_from(chunk, place)
        after, length = place + fields[2], fields[25]
        _, partition, _, side, rec_length, kind, _, time, position, _, trans_ind, *_, continued, count, table = fields[
            6:23
        ]
        tokens = place + layout.HEAD_SIZE + length
        if (
            fields[:2] != _OPENING
            or fields[3:6] != _HEADER
            or fields[23] != layout.DATA
            or after > end
            or tokens + layout.TAIL_SIZE > after
            or rec_length != length
            or not partition & layout.INDEXED
            or continued
            or count != 1
            or kind == _FRAGMENT
            or layout.TOKEN.unpack_from(chunk, tokens) != (layout.TOKENS, 0, after - tokens - 8)
        ):
            return None
        sealed = (
            layout.CHECKSUM,
            0,
            layout.SEAL,
            (base + place) & layout.PLACE_MASK,
            crc32(view[place : after - _UNSEALED]),
        )
        if layout.CLOSING.unpack_from(chunk, after - layout.CLOSING_SIZE) != (*sealed, layout.TRAILER, 1, fields[2]):
            return None
        before = side == layout.BEFORE and kind != _DELETE
        rows.append(
            _Row(place, after, place + layout.HEAD_SIZE, length, kind, time, position, trans_ind, table, before)
        )
        place = after
    return rows


def _pieces(chunk: bytes, rows: list[_Row], header: TransactionHeader | None) -> list[TransactionPiece] | None:
    """Split the rows into transactions; None if one begins inside another or continues without having begun."""
    pieces: list[TransactionPiece] = []
    first, begins = 0, False
    for number, row in enumerate(rows):
        if row.trans_ind in _BEGINS:
            if header is not None:
                return None
            tokens = row.data + row.length + 4
            try:
                header = transaction_header(chunk, tokens, row.end - layout.CLOSING_SIZE, row.time)
            except ValueError:
                return None
            first, begins = number, True
        elif header is None:
            return None
        ends = row.trans_ind >= _END
        if ends or number == len(rows) - 1:
            pieces.append(TransactionPiece(header, first, number - first + 1, begins, ends))
            first, begins = number + 1, False
            header = None if ends else header
    return pieces
