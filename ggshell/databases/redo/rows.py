"""Rows of V$LOGMNR_CONTENTS, from lines of JSON.

A line is an object with the view's column names; of columns that say the same in two ways one is enough (XID, or XIDUSN with
XIDSLT and XIDSQN; OPERATION_CODE or OPERATION), and what is NULL may be left out.  Times without a zone are UTC.
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
    """OPERATION_CODE, as the vendor's description of the view numbers them."""

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


_NAMES = {
    **{operation.name: int(operation) for operation in Operation},
    "SEL_LOB_LOCATOR": 9,
    "MISSING_SCN": 34,
    "XML DOC BEGIN": 68,
    "XML DOC WRITE": 70,
    "XML DOC END": 71,
}


class RedoRow(NamedTuple):
    """One row.  ``xid`` packs undo segment, slot and sequence; ``time`` is in microseconds since 1970; ``place`` is the redo
    address, log number << 32 | byte; ``segment`` the number of the file that the row was read from; ``parts`` says that the
    next row goes on with this one's SQL (CSF)."""

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
    """``usn.slot.sequence``, as the vendor's tools print it."""
    return f"{xid >> 48}.{xid >> 32 & 0xFFFF}.{xid & 0xFFFFFFFF}"


def parse_xid(text: str) -> int:
    """The number behind ``10.31.1234``.  Raises ValueError."""
    usn, slot, sequence = (int(part) for part in text.split("."))
    return usn << 48 | slot << 32 | sequence


class _Line(msgspec.Struct):
    """A line's columns that are wanted; all others are passed over."""

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


_DECODER = msgspec.json.Decoder(_Line, strict=False)
"""Not strict: a number may come as a text."""


@lru_cache(maxsize=4096)
def _time(text: str) -> int:
    moment = datetime.fromisoformat(text.strip())
    return from_datetime(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def decode_rows(lines: bytes, thread: int, segment: int, where: str) -> list[RedoRow]:
    """The rows of whole lines; empty lines are passed over.  Raises CaptureError naming the file for one that is no row."""
    try:
        return [_row(found, thread, segment) for found in _DECODER.decode_lines(lines)]
    except (msgspec.MsgspecError, ValueError):
        for line in lines.split(b"\n"):
            if line.strip():
                _explain(line, thread, segment, where)
        raise


def _explain(line: bytes, thread: int, segment: int, where: str) -> None:
    try:
        _row(_DECODER.decode(line), thread, segment)
    except (msgspec.MsgspecError, ValueError) as error:
        text = line[:120].decode("utf-8", "replace")
        raise CaptureError(
            f"a line is no row of V$LOGMNR_CONTENTS ({error}): {text}",
            code="GGS-00522",
            where=where,
            hint="export the segment again; README says which columns are needed",
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
        raise ValueError("neither OPERATION_CODE nor OPERATION")
    return _NAMES.get(name.upper(), Operation.UNSUPPORTED)


def _packed_xid(text: str) -> int:
    raw = bytes.fromhex(text)
    if raw and len(raw) != 8:
        raise ValueError(f"XID {text} has not 8 bytes")
    usn, slot, sequence = (int.from_bytes(part, "little") for part in (raw[:2], raw[2:4], raw[4:]))
    return usn << 48 | slot << 32 | sequence


class Continuation:
    """Puts rows together whose SQL was too long for one (CSF)."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._parts: list[RedoRow] = []

    @property
    def open(self) -> bool:
        """Whether a row's end is still to come."""
        return bool(self._parts)

    def join(self, rows: list[RedoRow]) -> list[RedoRow]:
        """Rows whose SQL is whole.  Raises CaptureError when something else stands where the rest must be."""
        if not self._parts and not any(row.parts for row in rows):
            return rows
        result: list[RedoRow] = []
        for row in rows:
            if self._parts and (row.xid, row.record) != (self._parts[0].xid, self._parts[0].record):
                raise CaptureError(
                    f"the rest of a row at SCN {self._parts[0].scn} is missing (CSF): another one follows",
                    code="GGS-00523",
                    where=self._where,
                    hint="export the rows in the order of the view",
                )
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
