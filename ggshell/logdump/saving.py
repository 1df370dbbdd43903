"""SAVE: records to a new file that a reader can read."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from ggshell.errors import ConflictError, DiskError, UsageError
from ggshell.logdump.answers import Answer, Lines
from ggshell.logdump.registry import action
from ggshell.logdump.session import Session
from ggshell.record import IoType
from ggshell.trail import layout
from ggshell.trail.fileheader import Continuity, Producer, encode_header
from ggshell.trail.look import Seen
from ggshell.trail.markers import definition_record

_SEQUENCE = re.compile(r"..(\d{9}|\d{6})")
_PLACE = struct.Struct("<I")
_PLACE_FROM_END = 12
"""The record's place stands so far before its end: place, checksum, trailer."""


@action("SAVE")
def save(
    session: Session,
    *,
    file: str,
    n: int,
    records: bool = False,
    bytes: bool = False,  # noqa: A002 - the manual's word
    truncate: bool = False,
    force: bool = False,
) -> Iterator[Answer]:
    """Write the next records that the filters let through, behind a header and the definitions that they need.

    Raises ConflictError when the file is there and ``!`` is not, DiskError when it cannot be written, UsageError when a
    record is damaged.
    """
    path = Path(file).absolute()
    if path.exists() and not (force or truncate):
        raise ConflictError(f"{path} exists already", hint=f"SAVE {file} ! {n} {'BYTES' if bytes else 'RECORDS'}")
    saved = _Saved(session, path)
    for seen in session.walk.records():
        if not seen.size or (seen.fault and not seen.is_header):
            raise UsageError(
                f"the record at RBA {seen.rba} is damaged: expected {seen.fault}; nothing was saved",
                hint="SCANFORHEADER stands behind the damage",
            )
        if not seen.is_header and session.passes(seen):
            saved.add(seen)
        if (saved.size if bytes else saved.records) >= n:
            break
    try:
        path.write_bytes(saved.content)
    except OSError as error:
        raise DiskError(f"cannot write {path}: {error.strerror}", hint="make room, or name another folder") from error
    yield Lines((f"{saved.records} records, {saved.size} bytes saved to {path}",))


class _Saved:
    """A new file in the making."""

    def __init__(self, session: Session, path: Path) -> None:
        self._session = session
        self._own = session.file.ours
        match = _SEQUENCE.fullmatch(path.name)
        producer = Producer("LOGDUMP", "ggshell logdump")
        header = session.file.header[: session.file.first]
        if self._own:
            seqno = int(match[1]) if match else 0
            header = encode_header(str(path), seqno, session.clock.now(), producer, Continuity())
        self.content = bytearray(header)
        self._defined: set[int] = set()
        self.records = self.size = 0

    def add(self, seen: Seen) -> None:
        record = seen.record
        if record is None:
            return
        if record.io_type == IoType.METADATA:
            self._defined.add(record.audit_rba >> 16)
        elif record.table_index is not None:
            self._define(record.table_index, seen.rba)
        self.content += self._moved(seen.data)
        self.records += 1
        self.size += seen.size

    def _define(self, index: int, rba: int) -> None:
        if index in self._defined:
            return
        self._defined.add(index)
        table = self._session.file.table(index, rba)
        if table is not None and table.definition is not None:
            self.content += definition_record(table.definition, index, self._session.clock.now(), len(self.content))

    def _moved(self, data: bytes) -> bytes:
        """A record of ours knows its place: at another one it is sealed anew."""
        if not self._own:
            return data
        place = _PLACE.pack(len(self.content) & layout.PLACE_MASK)
        sealed = data[:-_PLACE_FROM_END] + place
        return sealed + _PLACE.pack(zlib.crc32(sealed)) + data[-4:]
