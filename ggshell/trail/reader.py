"""Read a trail: whole transactions in batches, following its files and its living end."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ggshell.errors import TrailError
from ggshell.record import ChangeBatch, IoType, TableDefinition, TransactionHeader, TransactionPiece, TransInd
from ggshell.trail import decode, fileheader
from ggshell.trail.decode import Records
from ggshell.trail.durable import MarkReader
from ggshell.trail.fragments import Joined, join_fragments
from ggshell.trail.metadata import decode_definition
from ggshell.trail.name import TrailName
from ggshell.trail.recover import visible_end
from ggshell.trail.wake import Listener
from ggshell.types import TrailPosition

CHUNK = 1 << 20
_BEGINS, _END = (int(TransInd.BEGIN), int(TransInd.SOLE)), int(TransInd.END)
"""As plain integers: a look into an enumeration costs more than all else that a row of one transaction does."""


class TrailReader:
    """Reads from a position to the durable end, over as many files as there are.

    Definitions of tables stand before their first row in each file, so a reader that begins within a file scans what lies
    before it once.  Raises TrailError naming file and RBA for damage, and the sequence number for a missing file.
    """

    def __init__(self, name: TrailName, position: TrailPosition | None = None) -> None:
        self.name = name
        self._mark = MarkReader(name)
        self._listener: Listener | None = None
        self._descriptor = -1
        self._seqno = -1
        self._definitions: dict[int, TableDefinition] = {}
        self._header: TransactionHeader | None = None
        self._scanned = (-1, 0)
        self._scanned_end: TrailPosition | None = None
        if position is None:
            first = name.sequences()
            position = TrailPosition(first[0] if first else 0, 0)
        self.position = position

    def read(self, max_bytes: int = CHUNK) -> ChangeBatch | None:
        """The next rows, or None when nothing more is visible now."""
        while True:
            end = self._visible()
            if end is None or (self.position >= end):
                return None
            if not self._open():
                return None
            limit = end.rba if end.seqno == self._seqno else os.fstat(self._descriptor).st_size
            if self.position.rba >= limit:
                if self._seqno >= end.seqno:
                    return None
                self._next_file()
                continue
            batch = self._read_chunk(min(limit - self.position.rba, max_bytes), limit)
            if batch is not None:
                return batch

    def end(self) -> TrailPosition | None:
        """The durable end of the trail, None while it has no file."""
        return self._visible()

    def at_end(self) -> bool:
        end = self._visible()
        return end is None or self.position >= end

    def fileno(self) -> int:
        """A descriptor that becomes readable when the writer has flushed; register before looking for the last time."""
        if self._listener is None:
            self._listener = Listener(self.name)
        return self._listener.fileno()

    def drain(self) -> None:
        """Forget the wake-ups that came."""
        if self._listener is not None:
            self._listener.drain()

    def close(self) -> None:
        self._mark.close()
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        self._close_file()

    def _visible(self) -> TrailPosition | None:
        mark = self._mark.read()
        if mark is not None:
            return mark.position
        sequences = self.name.sequences()
        if not sequences:
            return None
        last = (sequences[-1], self.name.file(sequences[-1]).stat().st_size)
        if last != self._scanned:
            self._scanned, self._scanned_end = last, visible_end(self.name)
        return self._scanned_end

    def _close_file(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self) -> bool:
        """Open the position's file, and learn the definitions that stand before the position."""
        if self._descriptor >= 0:
            return True
        path = self.name.file(self.position.seqno)
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            later = [number for number in self.name.sequences() if number > self.position.seqno]
            if not later:
                return False
            raise TrailError(
                f"trail file {path} (sequence number {self.position.seqno}) is missing, later ones exist",
                code="OGG-01332",
                hint="restore it, or set the group to a later position knowing what is skipped",
            ) from None
        self._seqno = self.position.seqno
        self._definitions = {}
        size = self._file_header(path)
        if self.position.rba > size:
            self._learn(size, self.position.rba)
        self.position = self.position._replace(rba=max(self.position.rba, size))
        return True

    def _file_header(self, path: object) -> int:
        head = os.pread(self._descriptor, 4, 0)
        size = fileheader.header_size(head)
        try:
            header = fileheader.decode_header(os.pread(self._descriptor, size, 0))
        except ValueError as error:
            self._close_file()
            raise decode.damaged(path, 0, f"a trail file header ({error})") from None
        if header.compatibility > fileheader.COMPATIBILITY:
            self._close_file()
            raise TrailError(
                f"trail file {path} has format {header.compatibility}, this program reads up to {fileheader.COMPATIBILITY}",
                hint="read it with the release that wrote it, or write it with FORMAT RELEASE",
            )
        return size

    def _learn(self, first: int, last: int) -> None:
        """Take the definitions between the file's header and the position."""
        place, size = first, CHUNK
        while place < last:
            joined = self._parse(os.pread(self._descriptor, min(last - place, size), place), place)
            if joined.records.end == 0:
                if size >= last - place:
                    raise decode.damaged(self._path(), place, "a whole record before the position")
                size *= 4
                continue
            rows = np.flatnonzero(joined.records.header["partition"] == 0)
            self._take_markers(joined.buffer, joined.records, rows, place)
            place, size = place + joined.records.end, CHUNK
        if place != last:
            raise decode.damaged(self._path(), last, "the begin of a record at the position")

    def _path(self) -> object:
        return self.name.file(self._seqno)

    def _next_file(self) -> None:
        self._close_file()
        self.position = TrailPosition(self.position.seqno + 1, 0)

    def _read_chunk(self, size: int, limit: int) -> ChangeBatch | None:
        base = self.position.rba
        chunk = os.pread(self._descriptor, size, base)
        joined = self._parse(chunk, base)
        while joined.records.end == 0:
            if base + len(chunk) >= limit or len(chunk) < size:
                raise decode.damaged(self._path(), base, "a whole record before the end of what is durable")
            size = min(size * 4, limit - base)
            chunk = os.pread(self._descriptor, size, base)
            joined = self._parse(chunk, base)
        records = self._until_redefinition(joined.records)
        batch = self._batch(joined.buffer, records, base)
        self.position = TrailPosition(self._seqno, base + records.end)
        return batch

    def _until_redefinition(self, records: Records) -> Records:
        """The records up to the first definition that follows rows: a table index means what stands last before a row."""
        definitions = np.flatnonzero(records.header["io_type"] == IoType.METADATA)
        rows = np.flatnonzero(records.header["partition"] != 0)
        if not len(rows) or not len(definitions) or definitions[-1] < rows[0]:
            return records
        cut = int(definitions[np.searchsorted(definitions, rows[0])])
        return Records(
            start=records.start[:cut],
            total=records.total[:cut],
            header=records.header[:cut],
            data_start=records.data_start[:cut],
            data_length=records.data_length[:cut],
            token_start=records.token_start[:cut],
            token_end=records.token_end[:cut],
            end=int(records.start[cut]),
        )

    def _parse(self, chunk: bytes, base: int) -> Joined:
        return join_fragments(chunk, decode.parse(chunk, self._path(), base), self._path(), base)

    def _take_markers(self, chunk: bytes, records: Records, rows: NDArray[np.int64], base: int) -> None:
        """Definitions among the trail's own records; restart markers say nothing that a reader needs."""
        for row in rows.tolist():
            if records.header["io_type"][row] != IoType.METADATA:
                continue
            first, size = int(records.data_start[row]), int(records.data_length[row])
            try:
                definition = decode_definition(chunk[first : first + size])
            except ValueError as error:
                raise decode.damaged(self._path(), base + int(records.start[row]), f"a definition ({error})") from None
            self._definitions[int(records.header["table"][row])] = definition

    def _batch(self, chunk: bytes, records: Records, base: int) -> ChangeBatch | None:
        markers = np.flatnonzero(records.header["partition"] == 0)
        if len(markers):
            self._take_markers(chunk, records, markers, base)
        rows = np.flatnonzero(records.header["partition"] != 0)
        if not len(rows):
            return None
        header = records.header[rows]
        used, table = np.unique(header["table"], return_inverse=True)
        batch = ChangeBatch(
            tables=tuple(self._definition(int(index), base) for index in used),
            table=table.astype(np.uint16),
            io_type=header["io_type"].copy(),
            position=header["audit_pos"].copy(),
            buffer=chunk,
            start=records.data_start[rows],
            length=records.data_length[rows],
            rba=records.start[rows] + base,
            pieces=(),
            seqno=self._seqno,
            end_rba=base + records.end,
        )
        return replace(
            batch, pieces=self._pieces(chunk, header, batch, records.token_start[rows], records.token_end[rows])
        )

    def _definition(self, index: int, base: int) -> TableDefinition:
        try:
            return self._definitions[index]
        except KeyError:
            raise decode.damaged(self._path(), base, f"the definition of table {index} before its rows") from None

    def _pieces(
        self,
        chunk: bytes,
        header: NDArray[np.void],
        batch: ChangeBatch,
        token_start: NDArray[np.int64],
        token_end: NDArray[np.int64],
    ) -> tuple[TransactionPiece, ...]:
        """Cut the rows into transactions by TransInd; the tokens of each first row tell which transaction it is."""
        stops = np.flatnonzero(header["trans_ind"] >= _END).tolist()
        if not stops or stops[-1] != len(batch) - 1:
            stops.append(len(batch) - 1)
        places, times = header["trans_ind"].tolist(), header["io_time"].tolist()
        lows, highs = token_start.tolist(), token_end.tolist()
        pieces, first = [], 0
        for stop in stops:
            begins = places[first] in _BEGINS
            if begins:
                try:
                    self._header = decode.transaction_header(chunk, lows[first], highs[first], times[first])
                except ValueError as error:
                    rba = int(batch.rba[first])
                    raise decode.damaged(self._path(), rba, f"transaction tokens ({error})") from None
            if self._header is None:
                raise decode.damaged(self._path(), int(batch.rba[first]), "the first record of a transaction")
            finished = places[stop] >= _END
            pieces.append(TransactionPiece(self._header, first, stop - first + 1, begins, finished))
            if finished:
                self._header = None
            first = stop + 1
        return tuple(pieces)


def read_position_time(name: TrailName, position: TrailPosition) -> int | None:
    """The commit time of the first row at or behind a position (microseconds since 1970); None when nothing is there."""
    reader = TrailReader(name, position)
    try:
        batch = reader.read(1 << 16)
    finally:
        reader.close()
    return batch.pieces[0].header.commit_time if batch is not None else None
