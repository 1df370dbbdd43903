"""The context that a reader needs to start inside a file: the table definitions so far and the open transaction.

The records before the position are skipped by their lengths and trailers, without computing checksums. Only the records
that are used are checked in full, so a start at the end of a large file is fast.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ggshell.record.definition import TableDefinition
from ggshell.record.operation import IoType, TransInd
from ggshell.record.transaction import TransactionHeader
from ggshell.trail import layout
from ggshell.trail.decode import Records, damaged, parse, walk
from ggshell.trail.fragments import JoinedRecords, join_fragments
from ggshell.trail.markers import decode_definition, table_index
from ggshell.trail.opened import OpenedFile
from ggshell.trail.tokens import transaction_header

CHUNK = 4 << 20
LONGEST_RECORD = 0xFFFF


class _Fields(NamedTuple):
    """Offsets of header fields in a record."""

    partition: int = 9
    io_type: int = 14
    audit_rba: int = 32
    trans_ind: int = 36


FIELDS: Final = _Fields()


class Context(NamedTuple):
    """The table definitions so far, by table index, and the open transaction (None between transactions)."""

    definitions: dict[int, TableDefinition]
    transaction: TransactionHeader | None


def learn(file: OpenedFile, position: int) -> Context:
    """Collect the context between a file's header and a position. Raises TrailError if no record begins at the position."""
    markers, transaction = _passed(file, file.first, position, file.header.inside)
    return Context(_definitions(file, markers), transaction)


def open_transaction(
    file: OpenedFile, place: int, position: int, before: TransactionHeader | None
) -> TransactionHeader | None:
    """Return the transaction that is open at a position, if ``before`` is open at an earlier place. Raises TrailError."""
    return _passed(file, place, position, before)[1]


def begun_at(file: OpenedFile, place: int) -> TransactionHeader:
    """Return the transaction that the record at a place begins. Raises TrailError if no undamaged record begins one there."""
    chunk = file.read(LONGEST_RECORD, place)
    records = parse(chunk, file.path, place)
    begins = (TransInd.BEGIN, TransInd.SOLE)
    if not len(records.start) or not records.is_row[0] or records.header["trans_ind"][0] not in begins:
        raise damaged(file.path, place, "a transaction's first record")
    return row_transaction(chunk, records, 0, file, place)


def _passed(
    file: OpenedFile, place: int, position: int, transaction: TransactionHeader | None
) -> tuple[list[tuple[int, int]], TransactionHeader | None]:
    """Step from a place to a position; return the Metadata records (place, length) in between, and the open transaction."""
    markers: list[tuple[int, int]] = []
    while place < position:
        chunk = file.read(min(position - place, CHUNK), place)
        starts, end = records_of(chunk, file, place, position)
        raw = np.frombuffer(chunk, dtype=np.uint8)
        is_row = (raw[starts + FIELDS.partition] & layout.INDEXED) != 0
        own = starts[~is_row]
        types = raw[own + FIELDS.io_type]
        own = own[(types == IoType.METADATA) | (types == IoType.RECORD_FRAGMENT)]
        lengths = raw[own + 2].astype(np.int64) | raw[own + 3].astype(np.int64) << 8
        markers += zip((own + place).tolist(), lengths.tolist(), strict=True)
        transaction = _transaction(file, raw, starts[is_row], place, transaction)
        place += end
    return markers, transaction


def records_of(chunk: bytes, file: OpenedFile, place: int, position: int) -> tuple[NDArray[np.int64], int]:
    """Return the places of a chunk's records, after checking the length in each trailer, and the place after the last."""
    edges, fault = walk(chunk)
    raw = np.frombuffer(chunk, dtype=np.uint8)
    after, total = edges[1:], np.diff(edges)
    good = (raw[after - 4] == layout.TRAILER) & (raw[after - 2] == total & 0xFF) & (raw[after - 1] == total >> 8)
    if not good.all():
        raise damaged(file.path, place + int(edges[np.argmin(good)]), "a trailer with the record's own length")
    if fault is not None:
        raise damaged(file.path, place + fault.place, fault.expected)
    if not len(total) or (place + len(chunk) == position and edges[-1] != len(chunk)):
        raise damaged(file.path, position, "the beginning of a record at this position")
    return edges[:-1], int(edges[-1])


def _transaction(
    file: OpenedFile, raw: NDArray[np.uint8], rows: NDArray[np.int64], base: int, before: TransactionHeader | None
) -> TransactionHeader | None:
    """Return the transaction that is open after a chunk's rows; ``before`` was open before them."""
    if not len(rows):
        return before
    inds = raw[rows + FIELDS.trans_ind]
    if inds[-1] >= TransInd.END:
        return None
    last_begin = _last(inds == TransInd.BEGIN)
    last_end = _last(inds >= TransInd.END)
    if last_end > last_begin:
        # The transaction that began earlier has ended, so the record that begins this one is damaged.
        raise damaged(file.path, base + int(rows[last_end + 1]), "a transaction's first record")
    if last_begin < 0:
        return before
    return begun_at(file, base + int(rows[last_begin]))


def _last(chosen: NDArray[np.bool_]) -> int:
    """Return the index of the last chosen element; -1 if there is none."""
    found = np.flatnonzero(chosen)
    return int(found[-1]) if len(found) else -1


def row_transaction(chunk: bytes, records: Records, row: int, file: OpenedFile, base: int) -> TransactionHeader:
    """Return the transaction that a record begins. Raises TrailError if its tokens do not identify one."""
    first, end, time = int(records.token_start[row]), int(records.token_end[row]), int(records.header["io_time"][row])
    try:
        return transaction_header(chunk, first, end, time)
    except ValueError as error:
        raise damaged(file.path, base + int(records.start[row]), f"transaction tokens ({error})") from None


def _definitions(file: OpenedFile, markers: list[tuple[int, int]]) -> dict[int, TableDefinition]:
    """Return the definitions in these records; fragments directly follow their first record."""
    found: dict[int, TableDefinition] = {}
    row = 0
    while row < len(markers):
        first, size = markers[row]
        row += 1
        while row < len(markers) and markers[row][0] == first + size and _is_fragment(file, markers[row][0]):
            size += markers[row][1]
            row += 1
        data = file.read(size, first)
        found.update(definitions_of(join_fragments(data, parse(data, file.path, first), file.path, first), file, first))
    return found


def _is_fragment(file: OpenedFile, rba: int) -> bool:
    return file.read(1, rba + FIELDS.io_type) == bytes([IoType.RECORD_FRAGMENT])


def definitions_of(joined: JoinedRecords, file: OpenedFile, base: int) -> dict[int, TableDefinition]:
    """Return the definitions among whole records, by table index. Raises TrailError for one that is not valid."""
    records = joined.records
    found: dict[int, TableDefinition] = {}
    for row in np.flatnonzero(~records.is_row & (records.header["io_type"] == IoType.METADATA)).tolist():
        first, size = int(records.data_start[row]), int(records.data_length[row])
        try:
            definition = decode_definition(joined.buffer[first : first + size])
        except ValueError as error:
            raise damaged(file.path, base + int(records.start[row]), f"a table definition ({error})") from None
        found[table_index(int(records.header["audit_rba"][row]))] = definition
    return found
