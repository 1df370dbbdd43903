"""Rows of V$LOGMNR_CONTENTS, from lines of JSON.

A line is an object with the view's column names; of columns that say the same in two ways one is enough (XID, or XIDUSN with
XIDSLT and XIDSQN; OPERATION_CODE or OPERATION), and what is NULL may be left out.  Times without a zone are UTC.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple

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


@lru_cache(maxsize=4096)
def _time(text: str) -> int:
    moment = datetime.fromisoformat(text.strip())
    return from_datetime(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def decode_rows(lines: Iterable[bytes], thread: int, segment: int, where: str) -> list[RedoRow]:
    """The rows of whole lines; empty lines are passed over.  Raises CaptureError naming the file for one that is no row."""
    lines = [line for line in lines if line.strip()]
    try:
        return [_row(found, thread, segment) for found in json.loads(b"[" + b",".join(lines) + b"]")]
    except (ValueError, KeyError, TypeError, AttributeError):
        for line in lines:
            _explain(line, thread, segment, where)
        raise


def _explain(line: bytes, thread: int, segment: int, where: str) -> None:
    try:
        _row(json.loads(line), thread, segment)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        text = line[:120].decode("utf-8", "replace")
        raise CaptureError(
            f"a line is no row of V$LOGMNR_CONTENTS ({type(error).__name__}: {error}): {text}",
            code="GGS-00522",
            where=where,
            hint="export the segment again; README says which columns are needed",
        ) from error


def _row(found: dict[str, Any], thread: int, segment: int) -> RedoRow:
    get = found.get
    scn = int(found["SCN"])
    code = get("OPERATION_CODE")
    rba = get("RBASQN")
    text = get("TIMESTAMP")
    return RedoRow(
        scn,
        _xid(found),
        int(code) if code is not None else _NAMES.get(found["OPERATION"].upper(), Operation.UNSUPPORTED),
        _time(text) if text else 0,
        get("SEG_OWNER") or "",
        get("TABLE_NAME") or get("SEG_NAME") or "",
        get("ROW_ID") or "",
        bool(int(get("ROLLBACK") or 0)),
        bool(int(get("CSF") or 0)),
        int(get("THREAD#") or thread),
        segment,
        (int(rba) << 32) + int(get("RBABLK") or 0) * 512 + int(get("RBABYTE") or 0) if rba else segment << 32,
        get("SQL_REDO") or "",
        get("SQL_UNDO") or "",
        (get("RS_ID") or "", int(get("SSN") or 0)),
    )


def _xid(found: dict[str, Any]) -> int:
    usn = found.get("XIDUSN")
    if usn is not None:
        return int(usn) << 48 | int(found["XIDSLT"]) << 32 | int(found["XIDSQN"])
    text = found.get("XID")
    if not text:
        return 0
    raw = bytes.fromhex(text)
    if len(raw) != 8:
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
