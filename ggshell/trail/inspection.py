"""Inspect a trail file as it is: with damage, of any producer, also past the durable mark.

For Logdump, not for delivery. Bytes that are not a valid record raise no error here: ``fault`` says what is wrong with them.
"""

from __future__ import annotations

import os
import re
import struct
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from ggshell.errors import DiskError, NotFoundError, TrailError
from ggshell.record.definition import TableDefinition
from ggshell.record.operation import IoType
from ggshell.store_paths import open_ranges
from ggshell.trail import layout
from ggshell.trail.durable import MarkReader
from ggshell.trail.fileheader import SIGNATURE, decode_header
from ggshell.trail.header_tokens import header_groups, header_length
from ggshell.trail.markers import decode_definition, table_index
from ggshell.trail.name import TrailName
from ggshell.trail.record import Record, decode_record
from ggshell.trail.sealing import Keys, RowCipher, cipher_of

LONGEST: Final = 0xFFFF
CHUNK: Final = 1 << 18
SMALLEST: Final = 46
"""The size of the smallest record of another producer in bytes: G, H with 34 bytes, Z."""
_BEGIN: Final = bytes([layout.RECORD, 1])


class InspectedRecord(NamedTuple):
    """The content of a place.

    ``fault`` is empty for an undamaged record, else it says what was expected. ``record`` is None for the file header and
    if the bytes cannot be decoded. ``size`` is 0 if not even the framing is valid."""

    rba: int
    data: bytes
    record: Record | None = None
    fault: str = ""
    is_header: bool = False

    @property
    def size(self) -> int:
        return len(self.data)


class InspectedTable(NamedTuple):
    """The table of a table index: its name, and its definition if the trail has one that ggshell can read."""

    name: str
    definition: TableDefinition | None = None


class InspectedFile:
    """An open trail file. Encrypted rows stay encrypted until ``decrypt`` gets keys.

    Raises NotFoundError if the file cannot be opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._cipher: RowCipher | None = None
        try:
            self._file = open_ranges(path, os.O_NONBLOCK)
        except OSError as error:
            raise NotFoundError(
                f"cannot open {path}: {error.strerror}", hint="list the trail files with FILES"
            ) from None
        if not path.is_file():
            self._file.close()
            raise NotFoundError(f"cannot open {path}: it is not a file", hint="list the trail files with FILES")
        self.header = self.read(LONGEST, 0)
        self.first = header_length(self.header)
        self.groups = header_groups(self.header)
        self.header_fault = _header_fault(self.header)
        self.ours = self._is_ours()
        self._tables: dict[int, InspectedTable] = {}
        self._searched = self.first

    def _is_ours(self) -> bool:
        """Whether ggshell wrote the file: by its header, or, if that is damaged, by a valid checksum in an early record."""
        tokens = [token for group in self.groups for token in group.tokens]
        if not self.header_fault or any(token.name == "Signature" and token.value == SIGNATURE for token in tokens):
            return True
        return any(_is_sealed(self.header[match.start() :]) for match in re.finditer(_BEGIN, self.header))

    def read(self, size: int, place: int) -> bytes:
        """Read bytes at a place; fewer at the end of the file. Raises DiskError."""
        try:
            return self._file.read(size, place)
        except OSError as error:
            raise DiskError(f"cannot read {self.path} at RBA {place}: {error.strerror}") from error

    @property
    def size(self) -> int:
        return self._file.size()

    @property
    def modified(self) -> int:
        """The time of the last write to the file, in microseconds since 1970."""
        return self._file.modified() // 1000

    def close(self) -> None:
        self._file.close()

    @property
    def trail(self) -> tuple[TrailName, int] | None:
        """The file's trail and sequence number, from its name; None if the name is not a trail file's."""
        return TrailName.of_file(self.path)

    def durable_end(self) -> int | None:
        """Return how far readers see this file; 0 if the mark is in an earlier file.

        None without a mark, or if the mark is in a later file."""
        if self.trail is None:
            return None
        name, seqno = self.trail
        reader = MarkReader(name)
        mark = reader.read()
        reader.close()
        if mark is None or mark.position.seqno > seqno:
            return None
        return mark.position.rba if mark.position.seqno == seqno else 0

    def decrypt(self, keys: Keys | None) -> None:
        """Decrypt rows from now on; with None, return them encrypted.

        Raises NotFoundError for a missing key, TrailError for a wrong key or a damaged header."""
        self._cipher = None
        if keys is not None and self.ours:
            if self.header_fault:
                raise TrailError(
                    f"trail file {self.path} is damaged at RBA 0: expected {self.header_fault}",
                    where=f"{self.path}, RBA 0",
                )
            seal = decode_header(self.header).seal
            self._cipher = cipher_of(seal, keys, self.path) if seal is not None else None

    def at(self, rba: int) -> InspectedRecord | None:
        """Return the content of a place; None at or past the end of the file."""
        if rba == 0 and self.first:
            return InspectedRecord(
                0, self.header[: self.first], fault=self.header_fault if self.ours else "", is_header=True
            )
        data = self.read(LONGEST, rba)
        if not data:
            return None
        size = framed(data)
        if not size:
            return InspectedRecord(rba, b"", fault=_unframed(data) if rba else self.header_fault)
        return self._seen(rba, data[:size])

    def _seen(self, rba: int, data: bytes) -> InspectedRecord:
        if not self.ours:
            try:
                return InspectedRecord(rba, data, decode_record(data, checked=False))
            except TrailError as error:
                return InspectedRecord(rba, data, fault=_expected(error))
        try:
            record = decode_record(data, rba=rba)
        except TrailError as error:
            return InspectedRecord(rba, data, self._unchecked(data), _expected(error))
        if record.checksum is None:
            return InspectedRecord(rba, data, record, "a checksum token")
        if self._cipher is not None and record.table_index is not None:
            try:
                opened = (self._cipher.open_area(record.data), self._cipher.open_area(record.user_tokens))
            except ValueError:  # a fragment is only a part of the encrypted data area
                return InspectedRecord(rba, data, record)
            record = replace(record, data=opened[0], user_tokens=opened[1])
        return InspectedRecord(rba, data, record)

    def _unchecked(self, data: bytes) -> Record | None:
        try:
            return decode_record(data, checked=False)
        except TrailError:
            return None

    def before(self, rba: int) -> int | None:
        """Return the start of the record that ends at a place, from its trailer.

        None at the beginning of the file, or if no record ends there."""
        if rba <= self.first:
            return 0 if rba and self.first else None
        if rba < SMALLEST:
            return None
        trailer = self.read(4, rba - 4)
        if trailer[:2] != bytes([layout.TRAILER, 1]):
            return None
        for order in "<>":
            size: int = struct.unpack(f"{order}H", trailer[2:])[0]
            if SMALLEST <= size <= rba and framed(self.read(size, rba - size)) == size:
                return rba - size
        return None

    def good_behind(self, place: int) -> InspectedRecord | None:
        """Return the first whole, undamaged record that begins at or after a place; anything before it is skipped."""
        size = self.size
        while place < size:
            chunk = self.read(CHUNK, place)
            at = chunk.find(_BEGIN)
            while at >= 0:
                found = self.at(place + at)
                if found is not None and found.size and not found.fault:
                    return found
                at = chunk.find(_BEGIN, at + 1)
            place += max(1, len(chunk) - 1)
        return None

    def good_before(self, place: int) -> InspectedRecord | None:
        """Return the last whole, undamaged record that begins before a place."""
        while place > self.first:
            low = max(self.first, place - CHUNK)
            chunk = self.read(place - low + 1, low)
            at = chunk.rfind(_BEGIN)
            while at >= 0:
                found = self.at(low + at)
                if found is not None and found.size and not found.fault and found.rba < place:
                    return found
                at = chunk.rfind(_BEGIN, 0, at + 1)
            place = low
        return None

    def table(self, index: int, limit: int) -> InspectedTable | None:
        """Return the table of a table index, from the Metadata records before a place."""
        while index not in self._tables and self._searched < limit:
            seen = self.at(self._searched)
            if seen is None:
                break
            if seen.fault or not seen.size:
                seen = self.good_behind(self._searched + 1)
                if seen is None:
                    break
            self._learn(seen)
            self._searched = seen.rba + seen.size
        return self._tables.get(index)

    def definitions(self, limit: int) -> dict[int, TableDefinition]:
        """Return all undamaged definitions before a place."""
        self.table(-1, limit)
        return {index: table.definition for index, table in self._tables.items() if table.definition is not None}

    def _learn(self, seen: InspectedRecord) -> None:
        record = seen.record
        if record is None or record.io_type != IoType.METADATA:
            return
        index = table_index(record.audit_rba)
        if index and record.name:
            self._tables[index] = InspectedTable(record.name, definition_of(self, seen))

    def step_tables(self, seen: InspectedRecord) -> None:
        """Learn the table definition in a record that the caller has read, so that a scan reads no record twice."""
        if seen.rba == self._searched and not seen.fault:
            self._learn(seen)
            self._searched = seen.rba + seen.size


def _header_fault(header: bytes) -> str:
    """Return what is wrong with a ggshell file header; an empty string if it is valid."""
    try:
        found = decode_header(header)
    except ValueError as error:
        return str(error)
    return "" if found.signature == SIGNATURE else f"signature {SIGNATURE!r}, not {found.signature!r}"


def _is_sealed(data: bytes) -> bool:
    """Whether these bytes begin with an undamaged ggshell record, at its own place or at another."""
    try:
        return decode_record(data[: framed(data)]).checksum is not None
    except TrailError:
        return False


def definition_of(file: InspectedFile, seen: InspectedRecord) -> TableDefinition | None:
    """Return the definition in a Metadata record and its fragments; None if it is not in ggshell's encoding."""
    record = seen.record
    if record is None:
        return None
    parts, place = [record.data], seen.rba + seen.size
    while record.continued:
        following = file.at(place)
        if following is None or following.record is None or following.record.io_type != IoType.RECORD_FRAGMENT:
            return None
        record, place = following.record, place + following.size
        parts.append(record.data)
    try:
        return decode_definition(b"".join(parts))
    except ValueError:
        return None


def framed(data: bytes) -> int:
    """Return the length of the record at the start of these bytes, from its first token and trailer; 0 if there is none."""
    if data[:2] != _BEGIN or len(data) < SMALLEST:
        return 0
    for order in "<>":
        size = int(struct.unpack_from(f"{order}H", data, 2)[0])
        if SMALLEST <= size <= len(data) and data[size - 4 : size] == bytes([layout.TRAILER, 1]) + data[2:4]:
            return size
    return 0


def _unframed(data: bytes) -> str:
    if data[:2] != _BEGIN:
        return "a record header token"
    size = data[2] | data[3] << 8 if len(data) > 3 else 0
    if len(data) < SMALLEST or (size >= SMALLEST and size > len(data)):
        return "a complete record before the end of the file"
    return "a trailer with the record's own length"


def _expected(error: TrailError) -> str:
    return error.message.partition("expected ")[2] or error.message
