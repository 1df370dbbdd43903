"""Read a trail: whole transactions in batches, following its files and its living end."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ggshell.errors import TrailError
from ggshell.record.change import ChangeBatch
from ggshell.record.definition import TableDefinition
from ggshell.record.distinct import distinct
from ggshell.record.operation import IoType, TransInd
from ggshell.record.transaction import TransactionHeader, TransactionPiece
from ggshell.trail import context, decode, layout
from ggshell.trail.decode import Records, damaged
from ggshell.trail.few import FEW_BYTES, read_few
from ggshell.trail.fileheader import FileHeader
from ggshell.trail.fragments import Joined, join_fragments
from ggshell.trail.name import TrailName
from ggshell.trail.opened import OpenedFile, open_file
from ggshell.trail.sealing import Keys, RowCipher, cipher_of
from ggshell.trail.tokens import transaction_headers
from ggshell.trail.visible import VisibleEnd
from ggshell.trail.wake import Listener
from ggshell.types import TrailPosition

CHUNK = 1 << 20


class TrailReader:
    """Reads from a position to the durable end, over as many files as there are.

    Definitions of tables stand before their first row in each file, so a reader that begins within a file steps through
    what lies before once; it may begin anywhere between two records, also within a transaction, whose header is found as
    well.  Raises TrailError naming file and RBA for damage, and the sequence number for a missing file.
    """

    def __init__(
        self,
        name: TrailName,
        position: TrailPosition | None = None,
        known: context.Context | None = None,
        keys: Keys | None = None,
    ) -> None:
        """``known``: what stands before the position, where somebody knows it who came past damage; ``keys`` open encrypted
        rows, which come as they stand without."""
        self.name = name
        self._known = known
        self._keys = keys
        self._cipher: RowCipher | None = None
        self._visible = VisibleEnd(name)
        self._listener: Listener | None = None
        self._file: OpenedFile | None = None
        self._definitions: dict[int, TableDefinition] = {}
        self._header: TransactionHeader | None = None
        self._seen: TrailPosition | None = None
        if position is None:
            first = name.sequences()
            position = TrailPosition(first[0] if first else 0, 0)
        self.position = position

    def read(self, max_bytes: int = CHUNK) -> ChangeBatch | None:
        """The next rows, or None when nothing more is visible now."""
        while True:
            end = self._seen = self._visible.read()
            if end is None or self.position >= end:
                return None
            file = self._file or self._open()
            if file is None:
                return None
            limit = end.rba if end.seqno == file.seqno else file.size()
            if self.position.rba >= limit:
                if file.seqno >= end.seqno:
                    return None
                self._follow(file, limit)
                continue
            batch = self._read_chunk(file, max_bytes, limit)
            if batch is not None:
                return batch if self._cipher is None else self._cipher.open_rows(batch, file.path)

    @property
    def header(self) -> FileHeader | None:
        """What the file says of itself that the last batch came from."""
        return self._file.header if self._file is not None else None

    def end(self) -> TrailPosition | None:
        """The durable end of the trail, None while it has no file."""
        return self._visible.read()

    def caught_up(self) -> bool:
        """Whether all has been read that was visible at the last read: cheaper than ``at_end``, which looks again."""
        return self._seen is None or self.position >= self._seen

    def at_end(self) -> bool:
        """Whether all that is visible has been read."""
        end = self._visible.read()
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
        self._visible.close()
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        self._close_file()

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> OpenedFile | None:
        """Open the position's file and learn what stands before the position; None while the trail has no file at all."""
        seqno = self.position.seqno
        try:
            file = open_file(self.name, seqno)
        except FileNotFoundError:
            if not self.name.sequences():
                return None
            raise TrailError(
                f"trail file {self.name.file(seqno)} (sequence number {seqno}) is missing, the trail has others",
                code="OGG-01332",
                where=f"{self.name.file(seqno)}",
                hint="restore it, or set the group to a later position knowing what is skipped",
            ) from None
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
        """Go on to the next file, which says how long this one was when it was finished."""
        self._close_file()
        self.position = TrailPosition(file.seqno + 1, 0)
        following = self._open()
        expected = size if following is None else following.header.previous_size
        if expected not in (None, size):
            self._close_file()
            self.position = TrailPosition(file.seqno, size)
            raise damaged(file.path, size, f"{expected} bytes in this file, by what the next one says")

    def _read_chunk(self, file: OpenedFile, size: int, limit: int) -> ChangeBatch | None:
        """Take the records of the next chunk; it grows until it holds a whole one."""
        base = self.position.rba
        while True:
            size = min(size, limit - base)
            chunk = file.read(size, base)
            if len(chunk) <= FEW_BYTES:
                few = read_few(chunk, base, file.seqno, self._definitions, self._header)
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
                raise damaged(file.path, base + records.end, "a whole record before the end of what is durable")
            size *= 4
        rows = self._batch(file, joined, base)
        self.position = TrailPosition(file.seqno, base + joined.records.end if rows is None else rows.end_rba)
        return rows

    def _batch(self, file: OpenedFile, joined: Joined, base: int) -> ChangeBatch | None:
        """The rows of a chunk; the trail's own records among them are taken in and left out."""
        records = joined.records
        is_row = records.is_row
        if not is_row.all():
            self._definitions.update(context.definitions_of(joined, file, base))
            records = records.only(is_row)
            if not len(records.start):
                return None
        records = self._defined(file, records, base)
        header, rba = records.header, records.start + base
        used, table = distinct(header["table"])
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

    def _defined(self, file: OpenedFile, records: Records, base: int) -> Records:
        """The rows up to the first one whose table nothing defines.  Raises TrailError when that is the first of all."""
        tables = records.header["table"]
        unknown = [index for index in distinct(tables)[0] if index not in self._definitions]
        if not unknown:
            return records
        row = int(np.argmax(np.isin(tables, unknown)))
        place, index = int(records.start[row]), int(tables[row])
        if row == 0:
            raise damaged(file.path, base + place, f"the definition of table {index} before its rows")
        return records.only(np.arange(len(records.start)) < row)._replace(end=place)

    def _pieces(
        self, file: OpenedFile, chunk: bytes, records: Records, rba: NDArray[np.int64]
    ) -> tuple[TransactionPiece, ...]:
        """Cut the rows into transactions by TransInd; the tokens of each first row tell which transaction it is."""
        places, last = records.header["trans_ind"], len(records.start) - 1
        stops = np.flatnonzero(places >= TransInd.END)
        if not len(stops) or stops[-1] != last:
            stops = np.append(stops, last)
        firsts = np.concatenate((np.zeros(1, dtype=np.int64), stops[:-1] + 1))
        begins = (places == TransInd.BEGIN) | (places == TransInd.SOLE)
        self._check_order(file, begins, firsts, rba)
        starting = begins[firsts].tolist()
        headers = self._headers(file, chunk, records, firsts[begins[firsts]], rba)
        ending = (places[stops] >= TransInd.END).tolist()
        if self._header is not None:
            headers.insert(0, self._header)
        self._header = None if ending[-1] else headers[-1]
        runs = zip(headers, firsts.tolist(), stops.tolist(), starting, ending, strict=True)
        return tuple(
            [
                TransactionPiece(header, first, stop - first + 1, begun, ended)
                for header, first, stop, begun, ended in runs
            ]
        )

    def _check_order(
        self, file: OpenedFile, begins: NDArray[np.bool_], firsts: NDArray[np.int64], rba: NDArray[np.int64]
    ) -> None:
        """A transaction begins where the one before has ended, and only there."""
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
    """Which rows are the image before the update that follows; None for none."""
    found: NDArray[np.bool_] = (header["before_after"] == layout.BEFORE) & (header["io_type"] != IoType.DELETE)
    return found if found.any() else None
