"""Read a trail in batches of rows, from file to file and up to its live end."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ggshell.errors import TrailError
from ggshell.record.change import ChangeBatch
from ggshell.record.definition import TableDefinition
from ggshell.record.distinct import distinct
from ggshell.record.operation import IoType, TransInd
from ggshell.record.transaction import TransactionHeader
from ggshell.trail import context, decode, layout
from ggshell.trail.decode import Records, damaged
from ggshell.trail.durable import MarkReader
from ggshell.trail.fileheader import FileHeader
from ggshell.trail.fragments import JoinedRecords, join_fragments
from ggshell.trail.name import TrailName
from ggshell.trail.opened import OpenedFile, open_file
from ggshell.trail.pieces import TrailPieces
from ggshell.trail.reach import require_reachable
from ggshell.trail.recover import find_end
from ggshell.trail.sealing import Keys, RowCipher, cipher_of
from ggshell.trail.small_batches import SMALL_BATCH_BYTES, read_small_batch
from ggshell.trail.tokens import transaction_headers
from ggshell.trail.waking import Listener
from ggshell.types import TrailPosition

CHUNK = 1 << 20


class TrailReader:
    """Reads a trail from a position to its durable end, across all of its files.

    Each file defines a table before the table's first row, so a reader that starts inside a file scans the preceding
    records once. It may start between any two records, also inside a transaction; the scan then finds the transaction's
    header too. Raises TrailError: with file and RBA for damage, with the sequence number for a missing file.
    """

    def __init__(
        self,
        name: TrailName,
        position: TrailPosition | None = None,
        known: context.Context | None = None,
        keys: Keys | None = None,
    ) -> None:
        """``known``: the context at the position, if the caller already has it (after it skipped damage); it replaces the
        scan. ``keys`` decrypt encrypted rows; without them such rows are returned still encrypted."""
        self.name = name
        self._known = known
        self._keys = keys
        self._cipher: RowCipher | None = None
        self._visible = VisibleEnd(name)
        self._listener: Listener | None = None
        self._file: OpenedFile | None = None
        self._chunk: tuple[OpenedFile, int, bytes] | None = None
        self._definitions: dict[int, TableDefinition] = {}
        self._header: TransactionHeader | None = None
        self._seen: TrailPosition | None = None
        self._judged = False
        self.position = name.beginning if position is None else position

    def read(self, max_bytes: int = CHUNK, last: int | None = None) -> ChangeBatch | None:
        """Return the next rows, or None if no more rows are visible now.

        ``last``: return None if no row of the current file begins before this RBA. What follows may be incomplete."""
        while True:
            end = self._seen = self._visible.read()
            if end is None or self.position >= end:
                self._require_reachable(end)
                return None
            file = self._file or self._open()
            if file is None:
                return None
            limit = end.rba if end.seqno == file.seqno else file.size()
            if last is not None and self.position.rba >= last:
                return None
            if self.position.rba >= limit:
                if file.seqno >= end.seqno:
                    return None
                self._follow(file, limit)
                continue
            try:
                batch = self._read_chunk(file, max_bytes, limit)
            except TrailError:
                if file.is_in_place():
                    raise
                self._close_file()  # the file was replaced, perhaps by a good copy: open it again
                continue
            if batch is not None:
                return batch if self._cipher is None else self._cipher.open_rows(batch, file.path)

    def _require_reachable(self, end: TrailPosition | None) -> None:
        """Check, before the first wait and while the trail ends before the position, that the position can be reached.

        Raises TrailError if the trail can never reach it."""
        if not self._judged or end is None or self.position > end:
            require_reachable(self.name, self.position)
            self._require_key()
            self._judged = True

    def _require_key(self) -> None:
        """Check that the key of the position's file is available, because the file's next rows will need it.

        Raises NotFoundError or TrailError if it is not."""
        if self._judged or self._file is not None or self._keys is None:
            return
        try:
            file = open_file(self.name, self.position.seqno)
        except FileNotFoundError:
            return
        file.close()
        if file.header.seal is not None:
            cipher_of(file.header.seal, self._keys, file.path)

    @property
    def header(self) -> FileHeader | None:
        """The header of the file that the last batch was read from."""
        return self._file.header if self._file is not None else None

    @property
    def file(self) -> OpenedFile | None:
        """The open file that the last batch was read from; it is closed when the reader continues with the next one."""
        return self._file

    def bytes_of(self, file: OpenedFile, begin: int, end: int) -> memoryview | None:
        """Return bytes of a file if they are among those that were read last, without reading or copying them again."""
        if self._chunk is None or self._chunk[0] is not file:
            return None
        base, chunk = self._chunk[1:]
        return memoryview(chunk)[begin - base : end - base] if base <= begin <= end <= base + len(chunk) else None

    @property
    def tables(self) -> int:
        """The highest index of a table definition that was read in this file."""
        return max(self._definitions, default=0)

    def end(self) -> TrailPosition | None:
        """Return the durable end of the trail; None while the trail has no file."""
        return self._visible.read()

    def caught_up(self) -> bool:
        """Whether everything that was visible at the last read has been read.

        Cheaper than ``at_end``, which looks up the visible end again."""
        return self._seen is None or self.position >= self._seen

    def at_end(self) -> bool:
        """Whether everything that is visible now has been read."""
        end = self._visible.read()
        return end is None or self.position >= end

    def fileno(self) -> int:
        """Return a descriptor that becomes readable when the writer flushes.

        To miss no flush, register the descriptor before the last check for new rows."""
        if self._listener is None:
            self._listener = Listener(self.name)
        return self._listener.fileno()

    def drain(self) -> None:
        """Discard the wake-ups received so far."""
        if self._listener is not None:
            self._listener.drain()

    def close(self) -> None:
        self._visible.close()
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        self._close_file()

    def _close_file(self) -> None:
        self._chunk = None
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> OpenedFile | None:
        """Open the position's file and collect the context before the position; None if the file does not exist yet."""
        seqno = self.position.seqno
        try:
            file = open_file(self.name, seqno)
        except FileNotFoundError:
            require_reachable(self.name, self.position)
            return None
        seal = file.header.seal
        try:
            self._cipher = (
                cipher_of(seal, self._keys, file.path) if seal is not None and self._keys is not None else None
            )
        except BaseException:
            file.close()
            raise
        self._file = file
        if self.position.rba <= file.first:
            self.position = TrailPosition(seqno, file.first)
            self._definitions, self._header = {}, file.header.inside
        elif self._known is not None:
            self._definitions, self._header = self._known.definitions, self._known.transaction
            self._known = None
        else:
            try:
                self._definitions, self._header = context.learn(file, self.position.rba)
            except TrailError:
                self._close_file()
                raise
        return file

    def _follow(self, file: OpenedFile, size: int) -> None:
        """Go to the next file and check this file's size against the size that the next file's header records for it."""
        place, in_place = self.position, file.is_in_place()
        self._close_file()
        self.position = TrailPosition(file.seqno + 1, 0)
        following = self._open()
        expected = size if following is None else following.header.previous_size
        if expected not in (None, size):
            self._close_file()
            self.position = place
            if in_place:
                raise damaged(file.path, size, f"{expected} bytes in this file, as the header of the next file says")

    def _read_chunk(self, file: OpenedFile, size: int, limit: int) -> ChangeBatch | None:
        """Read the records of the next chunk; the chunk grows until it holds at least one whole record."""
        base = self.position.rba
        while True:
            size = min(size, limit - base)
            chunk = file.read(size, base)
            self._chunk = (file, base, chunk)
            if len(chunk) <= SMALL_BATCH_BYTES:
                few = read_small_batch(chunk, base, file.seqno, self._definitions, self._header)
                if few is not None:
                    batch, self._header = few
                    self.position = TrailPosition(file.seqno, batch.end_rba)
                    return batch
            records = decode.parse(chunk, file.path, base)
            joined = join_fragments(chunk, records, file.path, base)
            if joined.records.end:
                break
            if records.fault is not None:
                raise damaged(file.path, base + records.fault.place, records.fault.expected)
            if len(chunk) < size or size == limit - base:
                raise damaged(file.path, base + records.end, "a complete record before the durable end of the trail")
            size *= 4
        rows = self._batch(file, joined, base)
        self.position = TrailPosition(file.seqno, base + joined.records.end if rows is None else rows.end_rba)
        return rows

    def _batch(self, file: OpenedFile, joined: JoinedRecords, base: int) -> ChangeBatch | None:
        """Return the rows of a chunk. Table definitions are read from the other records, which are then left out."""
        records = joined.records
        is_row = records.is_row
        if not is_row.all():
            self._definitions.update(context.definitions_of(joined, file, base))
            records = records.only(is_row)
            if not len(records.start):
                return None
        used, table = distinct(records.header["table"])
        unknown = [index for index in used if index not in self._definitions]
        if unknown:
            records = self._defined(file, records, base, unknown)
            used, table = distinct(records.header["table"])
        header, rba = records.header, records.start + base
        return ChangeBatch(
            tables=tuple([self._definitions[index] for index in used]),
            table=table,
            io_type=header["io_type"].copy(),
            position=header["audit_pos"].copy(),
            buffer=joined.buffer,
            start=records.data_start,
            length=records.data_length,
            rba=rba,
            pieces=self._pieces(file, joined.buffer, records, rba),
            seqno=file.seqno,
            end_rba=base + records.end,
            befores=_befores(header),
            user_tokens=records.user,
        )

    def _defined(self, file: OpenedFile, records: Records, base: int, unknown: list[int]) -> Records:
        """Return the rows before the first one whose table is not defined. Raises TrailError if that is the first row."""
        tables = records.header["table"]
        row = int(np.argmax(np.isin(tables, unknown)))
        place, index = int(records.start[row]), int(tables[row])
        if row == 0:
            raise damaged(file.path, base + place, f"the definition of table {index} before its rows")
        return records.only(np.arange(len(records.start)) < row)._replace(end=place)

    def _pieces(self, file: OpenedFile, chunk: bytes, records: Records, rba: NDArray[np.int64]) -> TrailPieces:
        """Split the rows into transactions by TransInd; the tokens of each first row identify its transaction."""
        places, last = records.header["trans_ind"], len(records.start) - 1
        stops = np.flatnonzero(places >= TransInd.END)
        ends = len(stops) > 0 and int(stops[-1]) == last
        if not ends:
            stops = np.append(stops, last)
        firsts = np.concatenate((np.zeros(1, dtype=np.int64), stops[:-1] + 1))
        self._check_order(file, (places == TransInd.BEGIN) | (places == TransInd.SOLE), firsts, rba)
        pieces = TrailPieces(
            firsts, stops, self._header, ends=ends, decode=lambda rows: self._headers(file, chunk, records, rows, rba)
        )
        self._header = None if ends else pieces[-1].header
        return pieces

    def _check_order(
        self, file: OpenedFile, begins: NDArray[np.bool_], firsts: NDArray[np.int64], rba: NDArray[np.int64]
    ) -> None:
        """Check that each transaction begins directly after the end of the previous one, and nowhere else."""
        expected = np.zeros(len(begins), dtype=np.bool_)
        expected[firsts] = True
        expected[0] = self._header is None
        wrong = np.flatnonzero(begins != expected)
        if len(wrong):
            row = int(wrong[0])
            text = "a transaction's first record" if expected[row] else "the end of the transaction before the next one"
            raise damaged(file.path, int(rba[row]), text)

    def _headers(
        self, file: OpenedFile, chunk: bytes, records: Records, rows: NDArray[np.int64], rba: NDArray[np.int64]
    ) -> list[TransactionHeader]:
        try:
            return transaction_headers(
                chunk, records.token_start[rows], records.token_end[rows], records.header["io_time"][rows]
            )
        except ValueError as error:
            text, number = error.args
            raise damaged(file.path, int(rba[rows[number]]), f"transaction tokens ({text})") from None


def _befores(header: NDArray[np.void]) -> NDArray[np.bool_] | None:
    """Mark the rows that are the before image of the following update; None if there are none."""
    found: NDArray[np.bool_] = (header["before_after"] == layout.BEFORE) & (header["io_type"] != IoType.DELETE)
    return found if found.any() else None


def visible_end(name: TrailName) -> TrailPosition | None:
    """Return the visible end of a trail once; None while it has neither a file nor a mark."""
    found = VisibleEnd(name)
    try:
        return found.read()
    finally:
        found.close()


class VisibleEnd:
    """Finds the visible end of a trail: its durable mark, or the end of its last whole transaction if it has no mark.

    Reads the mark each time; without a mark, scans the trail when its last file has changed."""

    def __init__(self, name: TrailName) -> None:
        self._name = name
        self._mark = MarkReader(name)
        self._scanned = (-1, 0)
        self._end: TrailPosition | None = None

    def read(self) -> TrailPosition | None:
        """Return the visible end; None while the trail has neither a file nor a mark."""
        mark = self._mark.read()
        if mark is not None:
            return mark.position
        sequences = self._name.sequences()
        if not sequences:
            return None
        last = (sequences[-1], self._name.file(sequences[-1]).stat().st_size)
        if last != self._scanned:
            found = find_end(self._name)
            self._end = found.position if found else None
            self._scanned = last
        return self._end

    def close(self) -> None:
        self._mark.close()
