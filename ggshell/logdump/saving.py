"""SAVE: write records to a new, valid trail file."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ggshell.errors import ConflictError, UsageError
from ggshell.files import replacing
from ggshell.logdump.answers import Answer, Lines
from ggshell.logdump.cursor import is_row
from ggshell.logdump.registry import action
from ggshell.logdump.state import LogdumpSession
from ggshell.record.operation import IoType, TransInd
from ggshell.record.transaction import TransactionHeader
from ggshell.trail import layout
from ggshell.trail.fileheader import Continuity, Form, Producer, decode_header, encode_header
from ggshell.trail.inspection import InspectedRecord
from ggshell.trail.markers import comment_record, definition_record
from ggshell.trail.record import Record
from ggshell.trail.tokens import transaction_tokens
from ggshell.types import Csn

_SEQUENCE = re.compile(r"..(\d{9}|\d{6})")
_TRANS_IND_AT = 8 + 28
_WANTED = {"FIRST": TransInd.BEGIN, "MIDDLE": TransInd.MIDDLE, "END": TransInd.END, "ONLY": TransInd.SOLE}
_BEGINS = (TransInd.BEGIN, TransInd.SOLE)


@action("SAVE")
def save(
    session: LogdumpSession,
    *,
    file: str,
    n: int,
    records: bool = False,
    bytes: bool = False,  # noqa: A002 - the manual's word
    nocomment: bool = False,
    newformat: bool = False,
    transind: str = "",
    truncate: bool = False,
    force: bool = False,
) -> Iterator[Answer]:
    """Write the next records that pass the filters, after a header and the definitions that they need.

    Raises ConflictError if the file exists and ``!`` is not given, or if it is the open file; DiskError if it cannot be
    written; UsageError if a record is damaged, or continues a transaction whose id and CSN are not known.
    """
    path = Path(file).absolute()
    if path.exists() and path.samefile(session.file.path):
        raise ConflictError(f"{path} is the open file", hint="SAVE another file")
    if path.exists() and not (force or truncate):
        raise ConflictError(f"{path} already exists", hint=f"SAVE {file} ! {n} {'BYTES' if bytes else 'RECORDS'}")
    if session.file.ours and session.file.header_fault:
        raise UsageError(f"the record at RBA 0 is damaged: expected {session.file.header_fault}; nothing was saved")
    with replacing(path) as out:
        saved = _Saved(session, path, out, _WANTED[transind.upper()] if transind else None)
        _take(session, saved, n, records=not bytes, comments=not nocomment)
    cut = "; transactions that were cut at an edge begin or end there" if saved.cut else ""
    yield Lines((f"{saved.records} records, {saved.size} bytes saved to {path}{cut}",))


def _take(session: LogdumpSession, saved: _Saved, n: int, *, records: bool, comments: bool) -> None:
    """Save the next ``n`` records or bytes."""
    first: int | None = None
    for seen in session.walk.records():
        if not seen.size or (seen.fault and not seen.is_header):
            raise UsageError(
                f"the record at RBA {seen.rba} is damaged: expected {seen.fault}; nothing was saved",
                hint="SCANFORHEADER skips the damage",
            )
        if first is None and not seen.is_header:
            first = seen.rba
            if comments:
                saved.comment(f"Begin of records saved from {session.file.path}, RBA {first}")
        saved.take(seen)
        if (saved.records if records else saved.size) >= n and not saved.within_value:
            break
        session.tell(seen)
    saved.close()
    if first is not None and comments:
        saved.comment(f"End of {saved.records} records saved from {session.file.path}, RBA {first}")


class _Saved:
    """A new file while it is written; only the last row is in memory, until it is known whether its transaction ends there."""

    def __init__(self, session: LogdumpSession, path: Path, file: BinaryIO, trans_ind: TransInd | None) -> None:
        self._session = session
        self._file = file
        self._end = 0
        self._own = session.file.ours
        self._trans_ind = trans_ind
        match = _SEQUENCE.fullmatch(path.name)
        header = session.file.header[: session.file.first]
        if self._own:
            producer = Producer("LOGDUMP", "ggshell logdump")
            seqno = int(match[1]) if match else 0
            found = decode_header(session.file.header)
            form = Form(found.compatibility, found.seal, (*found.uris, found.uri))
            header = encode_header(str(path), seqno, session.clock.now(), producer, Continuity(), form)
        self._write(header)
        self._defined: set[int] = set()
        self._held: list[InspectedRecord] = []
        """The last row of the open transaction, and the records after it."""
        self._began = self._kept = False
        """Whether a row of the open transaction is in the file, and whether the last record passed the filters."""
        self.records = self.size = 0
        self.within_value = self.cut = False

    def take(self, seen: InspectedRecord) -> None:
        """Keep the next record if it passes the filters; fragments are kept with their first record."""
        record = seen.record
        if record is None:
            return
        if record.io_type != IoType.RECORD_FRAGMENT:
            self._kept = self._session.passes(seen)
            if is_row(record) and record.trans_ind in _BEGINS:
                self.close()
        if not self._kept:
            return
        if self._held and is_row(record):
            self._put_held(last=False)
        self._held.append(seen)
        self.records += 1
        self.size += seen.size
        self.within_value = bool(record.continued)

    def comment(self, text: str) -> None:
        """Add a comment record, but not to a file in another producer's format."""
        if self._own:
            self._write(comment_record(text, self._session.clock.now(), self._end))

    def close(self) -> None:
        """End the open transaction with the last row that was taken."""
        self._put_held(last=True)
        self._began = False

    def _put_held(self, *, last: bool) -> None:
        held, self._held = self._held, []
        for seen in held:
            record = seen.record
            if record is None:
                continue
            if not is_row(record):
                self._defined.add(record.audit_rba >> 16)
                self._add(seen, record)
                continue
            if record.table_index is not None:
                self._define(record.table_index, seen.rba)
            inner = TransInd.END if last else TransInd.MIDDLE
            first = TransInd.SOLE if last else TransInd.BEGIN
            self._add(seen, record, inner if self._began else first)
            self._began = True

    def _write(self, data: bytes | bytearray) -> None:
        self._file.write(data)
        self._end += len(data)

    def _add(self, seen: InspectedRecord, record: Record, place: TransInd | None = None) -> None:
        """Add a record at its new place.

        ggshell's own records get a new checksum, and rows get a new TransInd for the saved part of their transaction."""
        if not self._own and (place is None or self._trans_ind is None):
            self._write(seen.data)
            return
        content = bytearray(seen.data)
        if place is not None:
            wanted = place if self._trans_ind is None else self._trans_ind
            self.cut |= wanted != record.trans_ind
            content[_TRANS_IND_AT] = wanted
            if self._own and wanted in _BEGINS and "L" not in record.tokens:
                content = _with_tokens(content, self._announced(seen, record))
        self._write(_sealed(content, self._end) if self._own else content)

    def _announced(self, seen: InspectedRecord, record: Record) -> bytes:
        identity = self._session.walk.identity(seen)
        try:
            return transaction_tokens(TransactionHeader(identity.xid, Csn.parse(identity.csn), 0))
        except ValueError:
            raise UsageError(
                f"the transaction of the record at RBA {seen.rba} began before this file, which does not contain its ID",
                hint="SCANFORNEXTTRANS, or SAVE from the file before",
            ) from None

    def _define(self, index: int, rba: int) -> None:
        if index in self._defined:
            return
        self._defined.add(index)
        table = self._session.file.table(index, rba)
        if self._own and table is not None and table.definition is not None:
            self._write(definition_record(table.definition, index, self._session.clock.now(), self._end))


def _with_tokens(record: bytearray, more: bytes) -> bytearray:
    """Insert GGS tokens before a record's own, and adjust the token length; ``_sealed`` adjusts the record's lengths."""
    place = 4
    while record[place] != layout.TOKENS:
        place += 4 + int.from_bytes(record[place + 2 : place + 4], "little")
    length = int.from_bytes(record[place + 2 : place + 4], "little") + len(more)
    return record[: place + 2] + struct.pack("<H", length) + more + record[place + 4 :]


def _sealed(record: bytearray, rba: int) -> bytes:
    """Return a ggshell record with its correct length, place and checksum."""
    total = struct.pack("<H", len(record))
    end = len(record) - layout.CLOSING_SIZE + 4
    content = bytes(record[:2]) + total + bytes(record[4:end]) + struct.pack("<I", rba & layout.PLACE_MASK)
    return content + struct.pack("<I", zlib.crc32(content)) + bytes(record[-4:-2]) + total
