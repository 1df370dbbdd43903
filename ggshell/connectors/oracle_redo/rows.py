"""Parses rows of V$LOGMNR_CONTENTS from JSON lines.

A line is an object with the column names of the view. Where the view has the same fact in two forms, one is enough
(XID, or XIDUSN with XIDSLT and XIDSQN; OPERATION_CODE or OPERATION). NULLs may be left out. Times without a zone are
UTC.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

import msgspec

from ggshell.clock import from_datetime
from ggshell.errors import CaptureError


class Operation(IntEnum):
    """The values of OPERATION_CODE, as the vendor's description of the view numbers them."""

    INTERNAL = 0
    INSERT = 1
    DELETE = 2
    UPDATE = 3
    DDL = 5
    START = 6
    COMMIT = 7
    SELECT_LOB_LOCATOR = 9
    LOB_WRITE = 10
    LOB_TRIM = 11
    SELECT_FOR_UPDATE = 25
    LOB_ERASE = 29
    MISSING_SCN = 34
    ROLLBACK = 36
    XML_BEGIN = 68
    XML_WRITE = 70
    XML_END = 71
    UNSUPPORTED = 255


LOB_PIECES = frozenset(
    {
        Operation.SELECT_LOB_LOCATOR,
        Operation.LOB_WRITE,
        Operation.LOB_TRIM,
        Operation.LOB_ERASE,
        Operation.XML_BEGIN,
        Operation.XML_WRITE,
        Operation.XML_END,
    }
)
"""Operations that change a large value in pieces, separate from the row it belongs to."""


_NAMES = {
    **{operation.name: int(operation) for operation in Operation},
    "SEL_LOB_LOCATOR": 9,
    "MISSING_SCN": 34,
    "XML DOC BEGIN": 68,
    "XML DOC WRITE": 70,
    "XML DOC END": 71,
}


class RedoRow(NamedTuple):
    """One row.

    ``xid`` packs undo segment, slot and sequence. ``time`` is in microseconds since 1970. ``place`` is the redo
    address: log number << 32 | byte. ``segment`` is the number of the file that the row was read from. ``parts`` means
    that the SQL of this row continues in the next row (CSF).
    """

    scn: int
    xid: int
    operation: int
    time: int
    owner: str
    table: str
    row_id: str
    rollback: bool
    parts: bool
    thread: int
    segment: int
    place: int
    redo: str
    undo: str
    record: tuple[str, int]


def format_xid(xid: int) -> str:
    """Format a transaction id as ``usn.slot.sequence``, like the vendor's tools."""
    return f"{xid >> 48}.{xid >> 32 & 0xFFFF}.{xid & 0xFFFFFFFF}"


def parse_xid(text: str) -> int:
    """Parse a transaction id such as ``10.31.1234``. Raises ValueError."""
    usn, slot, sequence = (int(part) for part in text.split("."))
    return usn << 48 | slot << 32 | sequence


def undo_slot(xid: int) -> int:
    """The undo segment and slot of a transaction id. Its low 32 bits count the uses of the slot."""
    return xid >> 32


def scn_text(scn: int) -> str:
    """Format an SCN as wrap and base, and as a number."""
    return f"{scn >> 32}.{scn & 0xFFFFFFFF} ({scn})"


class _Line(msgspec.Struct):
    """The columns of a line that are used; all others are ignored."""

    SCN: int
    XIDUSN: int | None = None
    XIDSLT: int | None = None
    XIDSQN: int | None = None
    XID: str | None = None
    OPERATION: str | None = None
    OPERATION_CODE: int | None = None
    TIMESTAMP: str | None = None
    SEG_OWNER: str | None = None
    TABLE_NAME: str | None = None
    ROW_ID: str | None = None
    ROLLBACK: int | None = None
    CSF: int | None = None
    THREAD: int | None = msgspec.field(default=None, name="THREAD#")
    RBASQN: int | None = None
    RBABLK: int | None = None
    RBABYTE: int | None = None
    RS_ID: str | None = None
    SSN: int | None = None
    SQL_REDO: str | None = None
    SQL_UNDO: str | None = None


_UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)
"""The errors for a line that is not a valid row; the last one if it is nested too deeply."""
_DECODER = msgspec.json.Decoder(_Line, strict=False)
"""Not strict: a number may be given as a text."""


@lru_cache(maxsize=4096)
def _time(text: str) -> int:
    moment = datetime.fromisoformat(text.strip())
    return from_datetime(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def decode_rows(lines: bytes, thread: int, segment: int, where: str) -> list[RedoRow]:
    """Decode the rows of whole lines; empty lines are skipped. Raises CaptureError naming the file for other lines."""
    try:
        return [_row(found, thread, segment) for found in _DECODER.decode_lines(lines)]
    except _UNREADABLE:
        for line in lines.split(b"\n"):
            if line.strip():
                _explain(line, thread, segment, where)
        raise


def decode_good_rows(lines: bytes, thread: int, segment: int, where: str) -> tuple[list[RedoRow], CaptureError | None]:
    """Decode the rows before the first line that is not a row, and return them with the error of that line."""
    try:
        return decode_rows(lines, thread, segment, where), None
    except CaptureError as error:
        failure = error
    found: list[RedoRow] = []
    for line in lines.split(b"\n"):
        try:
            found += decode_rows(line, thread, segment, where)
        except CaptureError:
            break
    return found, failure


def _explain(line: bytes, thread: int, segment: int, where: str) -> None:
    try:
        _row(_DECODER.decode(line), thread, segment)
    except _UNREADABLE as error:
        text = line[:120].decode("utf-8", "replace")
        raise CaptureError(
            f"a line is not a valid row of V$LOGMNR_CONTENTS ({error}): {text}",
            code="GGS-00522",
            where=where,
            hint="export the segment again; docs/oracle-redo.md lists the required columns",
        ) from error


def _row(found: _Line, thread: int, segment: int) -> RedoRow:
    usn, code, text, rba = found.XIDUSN, found.OPERATION_CODE, found.TIMESTAMP, found.RBASQN
    return RedoRow(
        found.SCN,
        _packed_xid(found.XID or "") if usn is None else usn << 48 | (found.XIDSLT or 0) << 32 | (found.XIDSQN or 0),
        code if code is not None else _code(found.OPERATION),
        _time(text) if text else 0,
        found.SEG_OWNER or "",
        found.TABLE_NAME or "",
        found.ROW_ID or "",
        bool(found.ROLLBACK),
        bool(found.CSF),
        found.THREAD or thread,
        segment,
        (rba << 32) + (found.RBABLK or 0) * 512 + (found.RBABYTE or 0) if rba else segment << 32,
        found.SQL_REDO or "",
        found.SQL_UNDO or "",
        (found.RS_ID or "", found.SSN or 0),
    )


def _code(name: str | None) -> int:
    if name is None:
        raise ValueError("OPERATION_CODE or OPERATION is required")
    return _NAMES.get(name.upper(), Operation.UNSUPPORTED)


def _packed_xid(text: str) -> int:
    raw = bytes.fromhex(text)
    if raw and len(raw) != 8:
        raise ValueError(f"XID {text} does not have 8 bytes")
    usn, slot, sequence = (int.from_bytes(part, "little") for part in (raw[:2], raw[2:4], raw[4:]))
    return usn << 48 | slot << 32 | sequence


class Continuation:
    """Joins the rows of a statement whose SQL was too long for one row (CSF)."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._parts: list[RedoRow] = []
        self.failure: CaptureError | None = None

    @property
    def open(self) -> bool:
        """Whether the rest of a row is still missing."""
        return bool(self._parts)

    def join(self, rows: list[RedoRow]) -> list[RedoRow]:
        """Return the rows whose SQL is complete.

        If another row follows instead of the rest of one, return the rows before it and set ``failure``.
        """
        if not self._parts and not any(row.parts for row in rows):
            return rows
        result: list[RedoRow] = []
        for row in rows:
            if self._parts and (row.xid, row.record) != (self._parts[0].xid, self._parts[0].record):
                self.failure = CaptureError(
                    f"the rest of a row at SCN {self._parts[0].scn} is missing (CSF): another row follows",
                    code="GGS-00523",
                    where=self._where,
                    hint="export the rows in the order of the view",
                )
                break
            self._parts.append(row)
            if not row.parts:
                result.append(self._whole())
        return result

    def _whole(self) -> RedoRow:
        parts, self._parts = self._parts, []
        if len(parts) == 1:
            return parts[0]
        redo, undo = "".join(part.redo for part in parts), "".join(part.undo for part in parts)
        return parts[0]._replace(redo=redo, undo=undo, parts=False)
