"""Find the end of the last whole transaction of a trail.

A writer continues there after a stop or crash, and a reader reads up to there if the trail has no durable mark. A place is
settled if no transaction is open there. With a mark, everything before it is durable and must be undamaged; what follows
is scanned for a later settled place. Without a mark, the last file that has a settled place is scanned from its beginning.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ggshell.errors import TrailError
from ggshell.record.operation import IoType, TransInd
from ggshell.trail import decode, fileheader, layout
from ggshell.trail.context import row_transaction
from ggshell.trail.decode import Records, damaged
from ggshell.trail.durable import DurableMark, MarkReader
from ggshell.trail.markers import table_index
from ggshell.trail.name import TrailName
from ggshell.trail.opened import OpenedFile, open_file
from ggshell.trail.reach import NOT_REACHED, require_reachable, unreachable
from ggshell.types import Csn, TrailPosition

CHUNK = 4 << 20
_LONGEST_RECORD = 0xFFFF
_WRITE_AGAIN = (
    "restore it; or run ALTER DISTPATH … BEGIN SEQNO n RBA 0 for a path, ALTER EXTRACT …, EXTSEQNO n, EXTRBA 0 for a pump:"
    " from there on it writes again what the trail does not contain"
)
_BEGIN = bytes([layout.RECORD, 1])


class _Broken(NamedTuple):
    """The place where a file's bytes are no longer valid records, and what was expected there."""

    rba: int
    expected: str


class _Scan(NamedTuple):
    """The last settled place of a file (None if it has none), and where its valid records end early (None if nowhere)."""

    settled: DurableMark | None
    broken: _Broken | None


class _State(NamedTuple):
    """The state after a record: the last settled place, the last transaction that ended, the open transaction, and the
    number of table definitions in the file."""

    settled: DurableMark | None
    csn: Csn | None
    opened: Csn | None
    tables: int


def find_end(name: TrailName, reached: TrailPosition | None = None) -> DurableMark | None:
    """Return the last settled place of a trail and the last transaction before it; None if the trail has no file.

    After the mark, a torn tail, a zero-filled tail or an unfinished transaction is normal after a crash. Raises TrailError
    if the trail ends before its mark or before the place that its writer has ``reached``, and for damage that whole
    transactions follow (in these cases nothing is cut off).
    """
    reader = MarkReader(name)
    mark = reader.read()
    reader.close()
    if mark is not None and mark.position.rba:
        require_reachable(name, mark.position)
    if reached is not None and reached.rba:
        _require_written(name, reached)
    sequences = name.sequences()
    if not sequences:
        return None
    if mark is None:
        return _without_mark(name, sequences)
    return _from_mark(name, mark, [number for number in sequences if number > mark.position.seqno])


def _require_written(name: TrailName, reached: TrailPosition) -> None:
    """Raise TrailError for a trail that does not have the place up to which its writer has written it."""
    error = unreachable(name, reached)
    if error is not None and error.code == NOT_REACHED:
        raise TrailError(error.message, code=NOT_REACHED, where=error.where, hint=_WRITE_AGAIN)
    if error is not None:
        raise error


def _from_mark(name: TrailName, mark: DurableMark, later: list[int]) -> DurableMark:
    _require_good(name, mark.position)
    found = mark
    broken: _Broken | None = None
    for seqno in [mark.position.seqno, *later]:
        scan = _scan(name, seqno, mark if seqno == mark.position.seqno else None)
        if scan.settled is not None:
            if broken is not None:  # a file is synced before the next one is created
                raise damaged(name.file(found.position.seqno), *broken)
            found = scan.settled
        broken = broken or scan.broken
    return found


def _require_good(name: TrailName, end: TrailPosition) -> None:
    """Raises TrailError for damage before a durable place, in the same file.

    A writer that continued there would make the file longer than every copy of it, so restoring a copy would lose rows.
    """
    scan = _scan(name, end.seqno, None)
    if scan.broken is not None and scan.broken.rba < end.rba:
        raise damaged(name.file(end.seqno), *scan.broken)


def _without_mark(name: TrailName, sequences: list[int]) -> DurableMark:
    """Return the last settled place of the last file that has one.

    If no whole transaction follows the place where the records end early, it is a tail torn by a crash. If one follows, it
    is damage, which raises TrailError: the transactions must not be cut off, because the source may be unable to send them
    again.
    """
    for seqno in reversed(sequences):
        scan = _scan(name, seqno, None)
        if scan.broken is not None and _good_end_behind(name.file(seqno), scan.broken.rba):
            raise damaged(name.file(seqno), *scan.broken)
        if scan.settled is not None:
            return scan.settled
    return DurableMark(TrailPosition(sequences[0], 0), None)


def _scan(name: TrailName, seqno: int, mark: DurableMark | None) -> _Scan:
    """Scan one file from a mark, or from its beginning."""
    if mark is None and _header_is_torn(name.file(seqno)):
        return _Scan(None, _Broken(0, "a trail file header"))
    file = open_file(name, seqno)
    try:
        if mark is not None:
            return _follow(file, mark.position.rba, _State(mark, mark.csn, None, mark.tables))
        previous, inside = file.header.previous_csn, file.header.inside
        start = DurableMark(TrailPosition(seqno, file.first), previous)
        state = _State(None, previous, inside.csn, 0) if inside else _State(start, previous, None, 0)
        return _follow(file, file.first, state)
    finally:
        file.close()


def _header_is_torn(path: Path) -> bool:
    with path.open("rb") as file:
        data = file.read(fileheader.LONGEST)
    try:
        fileheader.decode_header(data)
    except ValueError:
        return True
    return False


def _follow(file: OpenedFile, place: int, state: _State) -> _Scan:
    """Follow the records from a place to the end of the file, or to the first place without a valid record."""
    size = file.size()
    while place < size:
        chunk = file.read(CHUNK, place)
        records = decode.good_records(chunk, file.path, place)
        state = _state_after(chunk, records, file, place, state)
        if records.fault is not None:
            return _Scan(state.settled, _Broken(place + records.fault.place, records.fault.expected))
        if not records.end:
            return _Scan(state.settled, _Broken(place, "a complete record"))
        place += records.end
    return _Scan(state.settled, None)


def _state_after(chunk: bytes, records: Records, file: OpenedFile, base: int, state: _State) -> _State:
    """Return the state after a chunk's valid records; the place before an open transaction's first row is settled."""
    settled, csn, opened = state.settled, state.csn, state.opened
    tables = max(state.tables, _highest_index(records))
    rows = np.flatnonzero(records.is_row)
    inds = records.header["trans_ind"][rows]
    begins = np.flatnonzero((inds == TransInd.BEGIN) | (inds == TransInd.SOLE))
    ends = np.flatnonzero(inds >= TransInd.END)
    following = 0
    if len(ends):
        following = int(ends[-1]) + 1
        before = begins[begins < following]
        csn = row_transaction(chunk, records, int(rows[before[-1]]), file, base).csn if len(before) else opened
        opened = None
    if opened is None:
        place = int(records.start[rows[following]]) if following < len(rows) else records.end
        settled = DurableMark(TrailPosition(file.seqno, base + place), csn, tables)
    if len(begins) and begins[-1] >= following:
        opened = row_transaction(chunk, records, int(rows[begins[-1]]), file, base).csn
    return _State(settled, csn, opened, tables)


def _highest_index(records: Records) -> int:
    definitions = ~records.is_row & (records.header["io_type"] == IoType.METADATA)
    return table_index(int(records.header["audit_rba"][definitions].max(initial=0)))


def _good_end_behind(path: Path, place: int) -> bool:
    """Whether an undamaged record that ends a transaction begins anywhere at or after a place."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        while place < size:
            chunk = os.pread(file.fileno(), CHUNK, place)
            at = chunk.find(_BEGIN)
            while at >= 0:
                if _is_good_end(chunk[at : at + _LONGEST_RECORD], path, place + at):
                    return True
                at = chunk.find(_BEGIN, at + 1)
            place += max(len(chunk) - _LONGEST_RECORD, 1) if place + len(chunk) < size else len(chunk)
    return False


def _is_good_end(data: bytes, path: Path, rba: int) -> bool:
    total = data[2] | data[3] << 8 if len(data) > 3 else 0
    if total < decode.SMALLEST or total > len(data) or data[total - 4] != layout.TRAILER:
        return False
    records = decode.good_records(data[:total], path, rba)
    return bool(len(records.start) and records.is_row[0] and records.header["trans_ind"][0] >= TransInd.END)
