"""Copy the files of a trail byte for byte, where a pump or a path changes nothing.

A record contains its own RBA, so its bytes can be copied only to the same RBA. A copy therefore begins where its source file
begins, with the same header record, and holds nothing but bytes of that file. As soon as a row must be changed or left out,
the writer begins a new file and encodes the rows again, until the next source file begins. The header of a copy differs only
if its file has another number, or follows a file of another size.
"""

from __future__ import annotations

import os
from dataclasses import replace

from ggshell.pipeline.transform.selection import Selection
from ggshell.record.change import ChangeBatch
from ggshell.trail.blocks import Data
from ggshell.trail.durable import DurableMark
from ggshell.trail.opened import OpenedFile
from ggshell.trail.reader import TrailReader
from ggshell.trail.writer import TrailWriter
from ggshell.types import TrailPosition


class SourceFile:
    """A source file as it is copied: its header record and its bytes. It stays readable after the reader has left it."""

    def __init__(self, file: OpenedFile, start: int) -> None:
        """``start``: the RBA at which reading starts."""
        self.opened = file
        self.start = start
        self.begun_before = start > file.first
        """Whether rows of the file before ``start`` were not read."""
        self.header = file.read(file.first, 0)
        self._descriptor = os.dup(file.descriptor)

    def read(self, begin: int, end: int) -> bytes:
        return os.pread(self._descriptor, end - begin, begin)

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def close(self) -> None:
        os.close(self._descriptor)


class CopySource:
    """Follows a reader: knows which file its batches come from, and where the rows before them end."""

    def __init__(self, reader: TrailReader) -> None:
        self._reader = reader
        self._first = reader.position
        self.previous: SourceFile | None = None
        self.file: SourceFile | None = None
        self.reached = 0
        """The end of the rows that were read before the current batch, in its file."""
        self._next = 0

    @property
    def tables(self) -> int:
        """The number of table definitions in the current file."""
        return self._reader.tables

    def take(self, batch: ChangeBatch) -> None:
        """Note a batch that was read; call it for every batch."""
        self._turn()
        self.reached, self._next = self._next, batch.end_rba

    def idle(self) -> int:
        """Note that there is nothing more to read; return the RBA up to which the current file was read."""
        self._turn()
        return self._reader.position.rba

    def bytes_of(self, file: SourceFile, begin: int, end: int) -> Data:
        """Return bytes of a file: those that were read last as they are, all others read again."""
        found = self._reader.bytes_of(file.opened, begin, end)
        return found if found is not None else file.read(begin, end)

    def close(self) -> None:
        for file in (self.previous, self.file):
            if file is not None:
                file.close()

    def _turn(self) -> None:
        opened = self._reader.file
        if opened is None or (self.file is not None and self.file.opened is opened):
            return
        if self.previous is not None:
            self.previous.close()
        start = self._first.rba if opened.seqno == self._first.seqno else opened.first
        if self.file is not None and self.file.opened.seqno == opened.seqno:
            start = self._next  # the file was replaced while it was read
        self.previous, self.file = self.file, SourceFile(opened, max(start, opened.first))
        self._next = self.file.start


class TrailCopy:
    """One target trail: appends batches to it unchanged from the source, where that is possible."""

    def __init__(self, source: CopySource, writer: TrailWriter, selection: Selection) -> None:
        """``selection``: which rows leave; it encodes the rows that ``write`` does not copy."""
        self._source = source
        self._writer = writer
        self._selection = selection
        self._judged: SourceFile | None = None
        self._file: SourceFile | None = None

    def write(self, batch: ChangeBatch) -> list[ChangeBatch] | None:
        """Append the rows of a batch that the trail does not hold, and return them; None if they must be selected and encoded.

        Raises DiskError, ConnectionLostError."""
        row = self._selection.whole_from(batch)
        if row is None:
            self.leave()
            return None
        if row == len(batch):
            return []
        if not self._append(batch, row):
            return None
        self._selection.passed(batch)
        return [_tail(batch, row) if row else batch]

    def _append(self, batch: ChangeBatch, row: int) -> bool:
        """Append a batch from this row, the first of a transaction or of the batch; return False if it cannot be copied."""
        writer, piece = self._writer, batch.pieces[0]
        if row:
            piece = next(each for each in batch.pieces if each.first == row)
        if not self._follows(batch, row) or self._file is None:
            return False
        place = writer.place.rba
        after = self._source.reached if row == 0 else int(batch.rba[row - 1]) + 1
        if not after <= place <= int(batch.rba[row]) or not writer.has_room(piece) or writer.is_inside is piece.begins:
            self.leave()
            return False
        last = batch.pieces[-1]
        end = batch.end_rba if last.ends else int(batch.rba[last.first]) if last.begins else None
        csn = last.header.csn if last.ends else batch.pieces[-2].header.csn if len(batch.pieces) > 1 else None
        mark = None
        if end is not None and csn is not None:
            mark = DurableMark(TrailPosition(0, end), csn, self._source.tables)
        writer.copy(self._source.bytes_of(self._file, place, batch.end_rba), mark, inside=not last.ends)
        return True

    def rest(self, end: int) -> bool:
        """Append what stands after the last row up to this RBA; return whether there was anything. Raises DiskError."""
        self._follows(None, 0)
        return self._file is self._source.file and self._complete(end)

    def leave(self) -> None:
        """Note that rows were encoded: nothing can be copied before the next source file begins."""
        self._file, self._judged = None, self._source.file

    def _follows(self, batch: ChangeBatch | None, row: int) -> bool:
        """Find out, once for each source file, whether the newest file is a copy of it or can become one."""
        source, writer = self._source, self._writer
        file = source.file
        if file is None or file is self._judged:
            return self._file is not None
        if writer.is_copy_of(file.header) and writer.place.rba < file.start:
            self.leave()  # ALTER … BEGIN has left out the rows in between
        elif writer.is_copy_of(file.header):
            self._file = self._judged = file
        elif batch is None:  # the rows will show it
            return False
        elif not file.begun_before and row == 0 and source.reached == file.start and writer.can_copy(file.header):
            self._begin(file, batch)
        else:
            self.leave()
        return self._file is not None

    def _begin(self, file: SourceFile, batch: ChangeBatch) -> None:
        if self._writer.is_inside is batch.pieces[0].begins:
            self.leave()
            return
        if self._file is not None and self._file is self._source.previous:
            self._complete(self._file.size())
        self._writer.begin_copy(file.header)
        self._file = self._judged = file

    def _complete(self, end: int) -> bool:
        """Append the records after the last row, which are not rows."""
        writer, file = self._writer, self._file
        place = writer.place.rba
        if file is None or place >= end:
            return False
        csn = writer.ended_csn
        mark = None if writer.is_inside else DurableMark(TrailPosition(0, end), csn, self._source.tables)
        writer.copy(file.read(place, end), mark, inside=writer.is_inside)
        return True


def _tail(batch: ChangeBatch, row: int) -> ChangeBatch:
    """Return the rows from the first row of a transaction on."""
    pieces = [replace(piece, first=piece.first - row) for piece in batch.pieces if piece.first >= row]
    return batch.take(slice(row, None), tuple(pieces))
