"""Write a trail: whole transactions appended, one sync a flush, and a mark that says how far readers may go."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ggshell.clock import Clock
from ggshell.errors import DiskError, NotFoundError, TrailError
from ggshell.files import locked, sync_directory
from ggshell.record.change import ChangeBatch
from ggshell.record.definition import TableDefinition
from ggshell.record.transaction import TransactionPiece
from ggshell.trail.blocks import BlockWriter, write_all
from ggshell.trail.durable import DurableMark, MarkWriter
from ggshell.trail.encode import encode_batch
from ggshell.trail.fileheader import COMPATIBILITY, Continuity, Form, Producer, encode_header
from ggshell.trail.markers import LAST_INDEX, definition_record, restart_record
from ggshell.trail.name import TrailName
from ggshell.trail.opened import open_file
from ggshell.trail.recover import find_end
from ggshell.trail.sealing import Keys, Protection, RowCipher, cipher_of, new_cipher
from ggshell.trail.wake import Waker
from ggshell.types import Csn, TrailPosition

BLOCK = 1 << 20


def no_keys(name: str, version: int) -> bytes:
    """There are none.  Raises NotFoundError."""
    raise NotFoundError(f"key {name}, version {version}, is not there", hint="CREATE WALLET and ADD MASTERKEY make one")


class WriterOptions(NamedTuple):
    """How a trail is written: its format (FORMAT RELEASE), its encryption and where the keys are, the URIs of the trails
    that the rows came through, and whether a restart leaves a record of it (not with OVERWRITEMODE)."""

    compatibility: int = COMPATIBILITY
    protection: Protection | None = None
    keys: Keys = no_keys
    uris: tuple[str, ...] = ()
    restart_record: bool = True


DEFAULT_OPTIONS = WriterOptions()


class TrailWriter:
    """The one writer of a trail.

    ``write`` collects, ``flush`` makes durable: blocks, one fdatasync, the mark, the wake-up, in this order.  After any
    failure the writer refuses further work (what the disk holds is unknown then, and a failed fsync cannot be repeated);
    opening it again recovers.
    """

    def __init__(
        self,
        name: TrailName,
        clock: Clock,
        producer: Producer,
        max_bytes: int,
        options: WriterOptions,
        holds: contextlib.ExitStack,
    ) -> None:
        self.name = name
        self._clock = clock
        self._producer = producer
        self._max_bytes = max_bytes
        self._options = options
        self._cipher: RowCipher | None = None
        self._holds = holds
        self._descriptor = -1
        self._indexes: dict[TableDefinition, int] = {}
        self._tables = 0
        self._pending: list[bytes | bytearray] = []
        self._pending_bytes = 0
        self._unsynced = False
        self._written = TrailPosition(0, 0)
        self._whole = self._ended = DurableMark(TrailPosition(0, 0), None)
        self._form = Form()
        self._inside = False
        self._roll_wanted = False
        self._failure: OSError | None = None
        self._behind: Future[None] | None = None
        self._behind_end = self._ended
        self._mark = MarkWriter(name)
        holds.callback(self._mark.close)
        self._blocks = BlockWriter()
        self._waker = Waker(name)
        holds.callback(self._waker.close)

    @classmethod
    def open(
        cls,
        name: TrailName,
        *,
        clock: Clock,
        producer: Producer,
        max_bytes: int,
        options: WriterOptions = DEFAULT_OPTIONS,
    ) -> TrailWriter:
        """Take the trail's lock, recover its end, and stand ready behind it.

        Raises ConflictError when another process writes the trail, TrailError for damage that is no torn tail, DiskError
        when the folder cannot be written, NotFoundError for a key that is not there.
        """
        with contextlib.ExitStack() as holds:
            try:
                name.folder.mkdir(parents=True, exist_ok=True)
                holds.enter_context(locked(name.folder / f".{name.prefix}.lock", f"trail {name}"))
                writer = cls(name, clock, producer, max_bytes, options, holds)
                holds.callback(writer._close_file)
                writer._recover()
            except OSError as error:
                raise DiskError(
                    f"cannot write trail {name}: {error.strerror}", hint="make room or mend the folder's permissions"
                ) from error
            writer._holds = holds.pop_all()
        return writer

    @property
    def last_csn(self) -> Csn | None:
        """The last whole transaction that the trail holds."""
        return self._whole.csn

    @property
    def position(self) -> TrailPosition:
        """The end of what is durable."""
        return self._whole.position

    def write(self, batch: ChangeBatch) -> None:
        """Append rows.  They become visible at the next flush after their transaction's end.

        Raises DiskError; TrailError, with nothing written, when a transaction begins while one is open or goes on while
        none is.
        """
        if self._failure is not None:
            raise self._disk_error(self._failure)
        if not len(batch):
            return
        self._check_order(batch.pieces[0])
        if self._is_time_to_roll(batch):
            self._guarded(lambda: self._roll(batch.pieces[0]))
        if self._cipher is not None:
            batch = self._cipher.close_rows(batch)
        indexes = np.array([self._table_index(table) for table in batch.tables], dtype=np.uint16)
        for part in _split_at_last_end(batch):
            self._add(encode_batch(part, indexes, self._rba))
            last = part.pieces[-1]
            if last.ends:
                end = TrailPosition(self._written.seqno, self._rba)
                self._ended = DurableMark(end, last.header.csn, self._tables)
        self._inside = not batch.pieces[-1].ends
        if self._pending_bytes >= BLOCK:
            self._guarded(lambda: self._blocks.write_behind(self._descriptor, self._take_pending()))

    def flush(self) -> TrailPosition:
        """Make all that was written durable, show readers the whole transactions of it, and wake them.  Raises DiskError."""
        self._guarded(self._sync)
        return self._whole.position

    def flush_behind(self) -> None:
        """Begin to make durable what was written, and show what an earlier call has made so; never waits for the disk.

        For a steady stream: rows are made ready while the disk works.  Raises DiskError.
        """
        self._guarded(self._sync_behind)

    def rollover(self) -> TrailPosition:
        """Flush, and begin a new file with the next transaction; the position where that will stand."""
        self.flush()
        self._roll_wanted = True
        return TrailPosition(self._written.seqno + 1, 0)

    def use(self, options: WriterOptions) -> None:
        """Write differently from the next transaction on, in a new file."""
        self._roll_wanted = self._roll_wanted or self._differs(options)
        self._options = options

    def close(self) -> None:
        """Let the trail go; what was not flushed is left for the source to send again."""
        self._holds.close()

    def _close_file(self) -> None:
        self._blocks.close()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _check_order(self, piece: TransactionPiece) -> None:
        if piece.begins is self._inside:
            text = "begins while another is open" if self._inside else "goes on that was never begun"
            raise TrailError(
                f"transaction {piece.header.xid} (CSN {piece.header.csn}) {text} in trail {self.name}",
                hint="stop the group and start it again: it goes on behind the last whole transaction",
            )

    @property
    def _rba(self) -> int:
        """Where the next record will stand."""
        return self._written.rba + self._pending_bytes

    def _is_time_to_roll(self, batch: ChangeBatch) -> bool:
        """At a transaction's begin when the file is full; within one only when that has grown half a file too long."""
        if self._tables + len(batch.tables) > LAST_INDEX:
            return True
        if batch.pieces[0].begins:
            return self._roll_wanted or self._rba >= self._max_bytes
        return self._rba >= self._max_bytes + self._max_bytes // 2

    def _table_index(self, table: TableDefinition) -> int:
        index = self._indexes.get(table)
        if index is None:
            self._tables += 1
            index = self._indexes[table] = self._tables
            self._add(definition_record(table, index, self._clock.now(), self._rba))
        return index

    def _add(self, data: bytes | bytearray) -> None:
        self._pending.append(data)
        self._pending_bytes += len(data)

    def _guarded(self, action: Callable[[], None]) -> None:
        if self._failure is not None:
            raise self._disk_error(self._failure)
        try:
            action()
        except OSError as error:
            self._failure = error
            raise self._disk_error(error) from error

    def _disk_error(self, error: OSError) -> DiskError:
        path = self.name.file(self._written.seqno)
        return DiskError(
            f"cannot write trail file {path}: {error.strerror}",
            where=f"{path}, RBA {self._written.rba}",
            hint="make room or mend the disk, then start the group again: nothing is lost",
        )

    def _write_out(self) -> None:
        self._blocks.settle()
        write_all(self._descriptor, self._take_pending())

    def _take_pending(self) -> bytes:
        """What was collected; it counts as written from now on."""
        data = b"".join(self._pending)
        self._unsynced = self._unsynced or bool(data)
        self._written = self._written._replace(rba=self._written.rba + len(data))
        self._pending.clear()
        self._pending_bytes = 0
        return data

    def _sync(self) -> None:
        self._finish_behind()
        self._write_out()
        if self._unsynced:
            os.fdatasync(self._descriptor)
            self._unsynced = False
        self._show(self._ended)

    def _sync_behind(self) -> None:
        if self._behind is not None and not self._behind.done():
            return
        self._finish_behind()
        data = self._take_pending()
        if self._unsynced:
            self._behind = self._blocks.sync_behind(self._descriptor, data)
            self._behind_end, self._unsynced = self._ended, False

    def _finish_behind(self) -> None:
        """Wait for the sync that was begun, if there is one, and show what it made durable."""
        if self._behind is not None:
            behind, self._behind = self._behind, None
            behind.result()
            self._show(self._behind_end)

    def _show(self, end: DurableMark) -> None:
        """Let readers go on to this place."""
        if end != self._whole:
            self._whole = end
            self._mark.write(end)
            self._waker.wake()

    def _roll(self, first: TransactionPiece) -> None:
        self._sync()
        self._close_file()
        self._roll_wanted = False
        continuity = Continuity(self._whole.csn, self._written.rba, first=first.header, inside=not first.begins)
        self._create(self._written.seqno + 1, continuity)

    def _create(self, seqno: int, continuity: Continuity) -> None:
        """Begin a file: its header is durable, and its name, before anything else is written."""
        path = self.name.file(seqno)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o640)
        self._indexes, self._tables = {}, 0
        self._written = TrailPosition(seqno, 0)
        options = self._options
        self._cipher = None if options.protection is None else new_cipher(options.protection, options.keys)
        self._form = Form(options.compatibility, self._cipher.seal if self._cipher else None, options.uris)
        self._add(encode_header(str(path), seqno, self._clock.now(), self._producer, continuity, self._form))
        self._write_out()
        os.fsync(self._descriptor)
        self._unsynced = False
        self._mark.sync()
        sync_directory(self.name.folder)

    def _recover(self) -> None:
        """Go on behind the last whole transaction: cut what lies behind it, and append a restart record."""
        end = find_end(self.name)
        if end is None:
            self._create(0, Continuity())
            self._ended = DurableMark(self._written, None)
        else:
            self._cut(end)
            if self._options.restart_record:
                self._add(restart_record(self._clock.now(), self._rba))
            self._write_out()
            os.fsync(self._descriptor)
            self._unsynced = False
            self._ended = DurableMark(self._written, end.csn, self._tables)
        self._whole = DurableMark(TrailPosition(-1, -1), None)
        self._sync()
        self._mark.sync()
        sync_directory(self.name.folder)

    def _cut(self, end: DurableMark) -> None:
        """Take away what lies behind a place: the later files from the last one on, then the rest of its own file."""
        later = [seqno for seqno in self.name.sequences() if seqno > end.position.seqno]
        for seqno in reversed(later):
            self.name.file(seqno).unlink()
        path = self.name.file(end.position.seqno)
        if end.position.rba == 0:  # even its header is torn
            path.unlink()
            self._create(end.position.seqno, Continuity(end.csn))
            return
        self._take_up(path, end.position.seqno)
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        os.ftruncate(self._descriptor, end.position.rba)
        self._written, self._tables = end.position, end.tables

    def _take_up(self, path: Path, seqno: int) -> None:
        """Write on in a file as it was begun; where that is not what is wanted now, in a new one."""
        file = open_file(self.name, seqno)
        header = file.header
        file.close()
        self._form = Form(header.compatibility, header.seal, header.uris)
        self._roll_wanted = self._differs(self._options)
        if header.seal is not None and not self._roll_wanted:
            self._cipher = cipher_of(header.seal, self._options.keys, path)

    def _differs(self, options: WriterOptions) -> bool:
        """Whether the present file is of another form than is wanted."""
        seal = self._form.seal
        written = (self._form.compatibility, seal.protection if seal is not None else None)
        return written != (options.compatibility, options.protection)


def _split_at_last_end(batch: ChangeBatch) -> tuple[ChangeBatch, ...]:
    """A batch, cut before the rows of a transaction that does not end in it: what is whole must not wait for those."""
    tail = batch.pieces[-1]
    if tail.ends or len(batch.pieces) == 1:
        return (batch,)
    cut = tail.first
    return (
        batch.take(slice(None, cut), batch.pieces[:-1]),
        batch.take(slice(cut, None), (replace(tail, first=0),)),
    )
