"""Write a trail: encode rows, choose where files begin, and say up to where readers may read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ggshell.cipher import Key
from ggshell.clock import Clock
from ggshell.errors import ConnectionLostError, DiskError, NotFoundError, TrailError
from ggshell.record.change import ChangeBatch
from ggshell.record.definition import TableDefinition
from ggshell.record.transaction import TransactionPiece
from ggshell.trail.blocks import Data
from ggshell.trail.durable import DurableMark
from ggshell.trail.encode import encode_batch
from ggshell.trail.file_index import BETWEEN, CONTINUED, IndexBuilder
from ggshell.trail.fileheader import (
    COMPATIBILITY,
    Continuity,
    FileHeader,
    Form,
    Producer,
    adapted_header,
    decode_header,
    encode_header,
    file_uri,
)
from ggshell.trail.files import LocalTrailFiles, TrailFiles, Transfer, unwritable
from ggshell.trail.markers import LAST_INDEX, definition_record, restart_record
from ggshell.trail.name import TrailName
from ggshell.trail.sealing import Keys, Protection, RowCipher, check_same_wallet, cipher_of, new_cipher
from ggshell.types import Csn, TrailPosition

BLOCK = 1 << 20


def no_keys(name: str, version: int) -> Sequence[Key]:
    """The key source of a writer that has no keys: always raises NotFoundError."""
    raise NotFoundError(
        f"key {name}, version {version} does not exist", hint="create one with CREATE WALLET and ADD MASTERKEY"
    )


class WriterOptions(NamedTuple):
    """How a trail is written.

    ``compatibility``: the format (FORMAT RELEASE); ``protection`` and ``keys``: the encryption and the source of its keys;
    ``uris``: the trails that the rows came through; ``restart_record``: whether a restart appends a record of itself (not
    with OVERWRITEMODE); ``follows``: the wallets that this wallet was merged with or replaces; ``forwards``: the rows come
    from another trail, whose files may be copied as they are (``ggshell.trail.copying``)."""

    compatibility: int = COMPATIBILITY
    protection: Protection | None = None
    keys: Keys = no_keys
    uris: tuple[str, ...] = ()
    restart_record: bool = True
    follows: tuple[str, ...] = ()
    forwards: bool = False


DEFAULT_OPTIONS = WriterOptions()


class TrailWriter:
    """The only writer of a trail.

    ``write`` collects rows. ``flush`` makes them durable: the files write the blocks, sync once, write the durable mark and
    wake the readers, in this order. After any failure the writer refuses further work, because the content of the disk is
    then unknown and a failed fsync cannot be repeated. Opening the trail again recovers it.
    """

    def __init__(
        self, files: TrailFiles, clock: Clock, producer: Producer, max_bytes: int, options: WriterOptions
    ) -> None:
        self.name = files.name
        self._files = files
        self._clock = clock
        self._producer = producer
        self._max_bytes = max_bytes
        self._options = options
        self._cipher: RowCipher | None = None
        self._indexes: dict[TableDefinition, int] = {}
        self._tables = 0
        self._index: IndexBuilder | None = None
        self._pending: list[bytes | bytearray | memoryview] = []
        self._pending_bytes = 0
        self._written = TrailPosition(0, 0)
        self._ended = DurableMark(TrailPosition(0, 0), None)
        self._form = Form()
        self._header = b""
        self._is_copy = False
        self._inside = False
        self._roll_wanted = False
        self._failure: OSError | DiskError | TrailError | ConnectionLostError | None = None

    @classmethod
    def open(
        cls,
        name: TrailName,
        *,
        clock: Clock,
        producer: Producer,
        max_bytes: int,
        options: WriterOptions = DEFAULT_OPTIONS,
        reached: TrailPosition | None = None,
    ) -> TrailWriter:
        """Take the trail's lock, recover its end, and get ready to append after it.

        ``reached``: the position up to which the trail was written, according to the group's checkpoint. Raises
        ConflictError if another process writes the trail, TrailError if the trail lost data or has damage other than a
        torn tail, DiskError if the folder cannot be written, NotFoundError if a key does not exist.
        """
        return cls.over(
            LocalTrailFiles.open(name),
            clock=clock,
            producer=producer,
            max_bytes=max_bytes,
            options=options,
            reached=reached,
        )

    @classmethod
    def over(
        cls,
        files: TrailFiles,
        *,
        clock: Clock,
        producer: Producer,
        max_bytes: int,
        options: WriterOptions = DEFAULT_OPTIONS,
        reached: TrailPosition | None = None,
    ) -> TrailWriter:
        """Recover the end of the trail of these files and get ready to append after it; see ``open``.

        The files are closed with the writer, and if this fails."""
        writer = cls(files, clock, producer, max_bytes, options)
        try:
            writer._recover(reached)
        except OSError as error:
            files.close()
            raise unwritable(files.name, error) from error
        except BaseException:
            files.close()
            raise
        return writer

    @property
    def last_csn(self) -> Csn | None:
        """The CSN of the last whole transaction in the trail."""
        return self._files.shown.csn

    @property
    def is_encrypted(self) -> bool:
        """Whether the newest file is encrypted."""
        return self._form.seal is not None

    @property
    def encrypts(self) -> bool:
        """Whether new files are encrypted."""
        return self._options.protection is not None

    @property
    def position(self) -> TrailPosition:
        """The durable end of the trail."""
        return max(self._files.shown.position, TrailPosition(0, 0))

    @property
    def ended(self) -> TrailPosition:
        """The end of the last whole transaction that was written, durable or not."""
        return self._ended.position

    @property
    def place(self) -> TrailPosition:
        """Where the next record stands; RBA 0 if the trail has no file yet."""
        return self._written._replace(rba=self._rba)

    @property
    def ended_csn(self) -> Csn | None:
        """The CSN of the last whole transaction that was written, durable or not."""
        return self._ended.csn

    @property
    def is_inside(self) -> bool:
        """Whether the last transaction is not complete yet."""
        return self._inside

    @property
    def rollover_waits(self) -> bool:
        """Whether a new file is requested that has no whole transaction yet, so that its file may be removed again."""
        return self._roll_wanted or self._written.seqno > self._ended.position.seqno

    @property
    def transfer(self) -> Transfer | None:
        """How the connection to a receiver works now; None for files of this machine."""
        return self._files.transfer

    @property
    def is_broken(self) -> bool:
        """Whether the trail must be opened again before anything can be written."""
        return self._failure is not None

    def transactions_of(self, csn: Csn) -> frozenset[str]:
        """Return the ids of the trail's transactions with its last CSN."""
        return self._files.transactions_of(csn)

    def write(self, batch: ChangeBatch) -> None:
        """Append rows. They become visible at the first flush after the end of their transaction.

        Raises DiskError. Raises TrailError and writes nothing if a transaction begins while another is open, or continues
        while none is open.
        """
        if self._failure is not None:
            raise self._error(self._failure)
        if not len(batch):
            return
        self._check_order(batch.pieces[0])
        if not self._header:
            self._guarded(self._begin)
        if self._is_copy or self._is_time_to_roll(batch):
            self._guarded(lambda: self._roll(batch.pieces[0]))
        if self._cipher is not None:
            batch = self._cipher.close_rows(batch)
        indexes = np.array([self._table_index(table) for table in batch.tables], dtype=np.uint16)
        for part in _split_at_last_end(batch):
            last = part.pieces[-1]
            if self._index is not None:
                self._note(self._index, last)
            self._add(encode_batch(part, indexes, self._rba))
            if last.ends:
                end = TrailPosition(self._written.seqno, self._rba)
                self._ended = DurableMark(end, last.header.csn, self._tables)
        self._inside = not batch.pieces[-1].ends
        self._append_block()

    def _note(self, index: IndexBuilder, last: TransactionPiece) -> None:
        """Note in the index where rows begin. A transaction that does not end in them is alone; ``last``: the last one."""
        index.reach(self._rba)
        if last.ends:
            index.opened = BETWEEN
        elif last.begins:
            index.opened = self._rba

    def is_copy_of(self, header: bytes) -> bool:
        """Whether the newest file is a copy of the file with this header record, and can be continued as one."""
        return self._is_copy and not self._roll_wanted and self._adapted(header, self._header) == self._header

    def can_copy(self, header: bytes) -> bool:
        """Whether a copy of the file with this header record can be the next file: it has the form that the options ask for."""
        return not self._differs(self._options, decode_header(header))

    def begin_copy(self, header: bytes) -> None:
        """Begin the next file as a copy of the file with this header record; only if ``can_copy``. Raises DiskError."""
        self._guarded(lambda: self._begin_copy(header))

    def copy(self, data: Data, end: DurableMark | None, *, inside: bool) -> None:
        """Append bytes of the file that the newest one is a copy of; they belong at ``place``.

        ``end``: the last place in them at which no transaction is open (its file number is not used); None if there is none.
        ``inside``: whether a transaction is open after them. Raises DiskError.
        """
        if self._failure is not None:
            raise self._error(self._failure)
        self._add(data)
        if end is not None:
            self._ended = end._replace(position=TrailPosition(self._written.seqno, end.position.rba))
        self._inside = inside
        self._append_block(BLOCK // 2)  # what was read at once is a little shorter than a block

    def has_room(self, piece: TransactionPiece) -> bool:
        """Whether rows of this transaction can be appended to the newest file: it has not reached its limit."""
        if piece.begins:
            return not self._roll_wanted and self._rba < self._max_bytes
        return self._rba < self._max_bytes + self._max_bytes // 2

    def flush(self) -> TrailPosition:
        """Make all written rows durable, make their whole transactions visible, and wake the readers. Raises DiskError."""
        self._guarded(self._sync)
        return self.position

    def flush_behind(self) -> None:
        """Flush in the background: start to sync what was written, and make visible what an earlier call has synced.

        Never waits for the disk, so a steady stream of rows is encoded while the disk works. Raises DiskError.
        """
        self._guarded(self._sync_behind)

    def send(self) -> None:
        """Send what was written to a receiver; files of this machine wait for ``flush``. Raises ConnectionLostError."""
        if self._header and self._files.transfer is not None:
            self._guarded(lambda: self._files.flush_behind(self._take_pending(), self._ended))

    def remove_unfinished(self) -> TrailPosition:
        """Make every whole transaction durable, remove the unfinished one, and return the end of the trail.

        The source sends the unfinished transaction again from its beginning. Raises DiskError."""
        self.flush()
        if self._inside:
            self._guarded(self._take_back)
        return self.position

    def rollover(self) -> TrailPosition:
        """Flush, begin a new file with the next transaction, and return the position where that file starts."""
        self.flush()
        self._roll_wanted = True
        return TrailPosition(self._written.seqno + 1, 0)

    def use(self, options: WriterOptions) -> None:
        """Use other options from the next transaction on; if the file's form changes, it begins a new file."""
        self._roll_wanted = self._roll_wanted or (bool(self._header) and self._differs(options, self._form))
        self._options = options

    def wake(self) -> Sequence[int]:
        """Descriptors that are readable when ``check`` has something to take."""
        return self._files.wake()

    def check(self) -> None:
        """Check, while there is nothing to write, that the trail can still be written. Raises ConnectionLostError."""
        self._guarded(self._files.check)

    def close(self) -> None:
        """Release the trail. Rows that were not flushed are dropped; the source sends them again."""
        self._files.close()

    def _check_order(self, piece: TransactionPiece) -> None:
        if piece.begins is self._inside:
            text = "begins while another one is open" if self._inside else "continues, but never began"
            raise TrailError(
                f"transaction {piece.header.xid} (CSN {piece.header.csn}) in trail {self.name} {text}",
                hint="restart the group: it continues after the last complete transaction",
            )

    @property
    def _rba(self) -> int:
        """The RBA of the next record."""
        return self._written.rba + self._pending_bytes

    def _is_time_to_roll(self, batch: ChangeBatch) -> bool:
        """Whether to begin a new file: at the start of a transaction if the file is full or a rollover was requested.

        Inside a transaction only if the file exceeds its limit by half. In both cases also if the table indexes run out."""
        if self._tables + len(batch.tables) > LAST_INDEX:
            return True
        return not self.has_room(batch.pieces[0])

    def _table_index(self, table: TableDefinition) -> int:
        index = self._indexes.get(table)
        if index is None:
            self._tables += 1
            index = self._indexes[table] = self._tables
            if self._index is not None:
                self._index.define(index, self._rba)
            self._add(definition_record(table, index, self._clock.now(), self._rba))
        return index

    def _add(self, data: Data | bytearray) -> None:
        self._pending.append(data)
        self._pending_bytes += len(data)

    def _append_block(self, least: int = BLOCK) -> None:
        if self._pending_bytes >= least:
            self._guarded(lambda: self._files.append(self._take_pending()))

    def _guarded(self, action: Callable[[], None]) -> None:
        if self._failure is not None:
            raise self._error(self._failure)
        try:
            action()
        except OSError as error:
            self._failure = error
            raise self._error(error) from error
        except (DiskError, TrailError, ConnectionLostError) as error:
            self._failure = error
            raise

    def _error(
        self, error: OSError | DiskError | TrailError | ConnectionLostError
    ) -> DiskError | TrailError | ConnectionLostError:
        if isinstance(error, (DiskError, TrailError, ConnectionLostError)):
            return error
        path = self._files.file_name(self._written.seqno)
        return DiskError(
            f"cannot write trail file {path}: {error.strerror}",
            where=f"{path}, RBA {self._written.rba}",
            hint="free space or repair the disk, then start the group again: no data is lost",
        )

    def _take_pending(self) -> Data:
        """Return the collected bytes and count them as written. A single block is not copied: bytes of a file."""
        only = self._pending[0] if len(self._pending) == 1 else None
        data = only if isinstance(only, memoryview) else b"".join(self._pending)
        self._written = self._written._replace(rba=self._written.rba + len(data))
        self._pending.clear()
        self._pending_bytes = 0
        return data

    def _sync(self) -> None:
        if not self._header:  # there is nothing to sync
            return
        self._files.flush(self._take_pending(), self._ended)

    def _sync_behind(self) -> None:
        if self._header and not self._files.is_flushing():
            self._files.flush_behind(self._take_pending(), self._ended)

    def _end_file(self) -> None:
        """Pass on the last bytes of the newest file; they are durable before the next file begins."""
        if self._header:
            self._files.flush_in_order(self._take_pending(), self._ended)

    def _close_file(self) -> None:
        """Pass on the last bytes of the newest file, and write its index."""
        self._end_file()
        if self._index is not None:
            index = self._index.finish(self._header, self._written.rba)
            self._files.keep_index(self._written.seqno, index.encode())
            self._index = None

    def _roll(self, first: TransactionPiece) -> None:
        self._close_file()
        self._roll_wanted = False
        continuity = Continuity(self._ended.csn, self._written.rba, first=first.header, inside=not first.begins)
        self._create(self._written.seqno + 1, continuity)

    def _create(self, seqno: int, continuity: Continuity) -> None:
        """Create the next file; its header and its name are durable before anything else is written.

        No record may be pending."""
        options = self._options
        self._check_wallet(seqno - 1)
        self._is_copy = False
        self._cipher = None if options.protection is None else new_cipher(options.protection, options.keys)
        self._indexes, self._tables = {}, 0
        self._written = TrailPosition(seqno, 0)
        self._form = Form(options.compatibility, self._cipher.seal if self._cipher else None, options.uris)
        name = self._files.file_name(seqno)
        header = encode_header(name, seqno, self._clock.now(), self._producer, continuity, self._form)
        self._files.create(seqno, header)
        self._header, self._written = header, TrailPosition(seqno, len(header))
        self._index = IndexBuilder(CONTINUED if continuity.inside else BETWEEN)

    def _begin(self) -> None:
        """Create the first file of the trail."""
        self._create(0, Continuity())
        self._ended = DurableMark(self._written, None)
        self._end_file()
        self._files.settle()

    def _begin_copy(self, header: bytes) -> None:
        self._close_file()
        seqno = self._written.seqno + 1 if self._header else 0
        self._check_wallet(seqno - 1)
        adapted = adapted_header(header, seqno, self._written.rba if self._header else None)
        self._files.create(seqno, adapted)
        begins = not self._header
        self._continue_form(decode_header(adapted), seqno)
        self._header, self._is_copy, self._roll_wanted = adapted, True, False
        self._written, self._tables = TrailPosition(seqno, len(adapted)), 0
        if begins:
            self._ended = DurableMark(self._written, None)
            self._end_file()
            self._files.settle()

    def _adapted(self, header: bytes, mine: bytes) -> bytes:
        """Return the header record of a source file as a copy of it with the number and place of my file would have it."""
        own = decode_header(mine)
        return adapted_header(header, self._written.seqno if own.seqno is None else own.seqno, own.previous_size)

    def _recover(self, reached: TrailPosition | None) -> None:
        """Continue after the last whole transaction: cut off everything after it, and append a restart record."""
        end = self._files.recover(reached)
        if end is None:
            if not self._options.forwards:  # otherwise the first rows show whether the file is a copy
                self._begin()
            elif self._options.protection is not None:  # its key must exist
                new_cipher(self._options.protection, self._options.keys)
            return
        self._continue_at(end)
        if self._options.restart_record and self._files.restarts_are_recorded and not self._is_copy:
            self._add(restart_record(self._clock.now(), self._rba))
        self._ended = DurableMark(TrailPosition(self._written.seqno, self._rba), end.csn, self._tables)
        self._sync()
        self._files.settle()

    def _take_back(self) -> None:
        """Remove the rows of the unfinished transaction and the files that were created for them."""
        roll = self._roll_wanted or self._written.seqno > self._ended.position.seqno
        self._continue_at(self._ended)
        self._indexes, self._inside = {}, False
        self._roll_wanted = self._roll_wanted or roll

    def _continue_at(self, end: DurableMark) -> None:
        """Remove everything after a place and continue there. The file has no index then: the next reader makes it."""
        self._index = None
        found = self._files.continue_at(end)
        if found is None:
            self._create(end.position.seqno, Continuity(end.csn))
            return
        header, seqno = decode_header(found), end.position.seqno
        self._header, self._written, self._tables = found, end.position, end.tables
        self._is_copy = self._options.forwards and header.uri != file_uri(
            self._files.file_name(seqno), self._producer.group
        )
        self._continue_form(header, seqno)

    def _continue_form(self, header: FileHeader, seqno: int) -> None:
        """Continue a file in the form it was created with, or request a new file if the options ask for another form."""
        self._form = Form(header.compatibility, header.seal, header.uris)
        self._check_wallet(seqno)
        self._roll_wanted = self._differs(self._options, self._form)
        if header.seal is not None and not self._roll_wanted:
            self._cipher = cipher_of(header.seal, self._options.keys, self._files.file_name(seqno))

    def _check_wallet(self, seqno: int) -> None:
        """Raises TrailError if the previous file was encrypted with a different wallet."""
        seal, options = self._form.seal, self._options
        if seal is not None and options.protection is not None:
            check_same_wallet(seal, options.protection, options.follows, options.keys, self._files.file_name(seqno))

    def _differs(self, options: WriterOptions, form: Form | FileHeader) -> bool:
        """Whether the options ask for another encryption or format than a file has."""
        seal = form.seal
        same = options.protection is None if seal is None else seal.protection.is_as(options.protection)
        return not same or form.compatibility != options.compatibility


def _split_at_last_end(batch: ChangeBatch) -> tuple[ChangeBatch, ...]:
    """Split a batch before the rows of a transaction that does not end in it, so that whole transactions need not wait."""
    tail = batch.pieces[-1]
    if tail.ends or len(batch.pieces) == 1:
        return (batch,)
    cut = tail.first
    return (
        batch.take(slice(None, cut), batch.pieces[:-1]),
        batch.take(slice(cut, None), (replace(tail, first=0),)),
    )
