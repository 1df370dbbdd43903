"""Writes redo in the form of V$LOGMNR_CONTENTS, for demonstrations and tests: segments of JSON lines for a RedoLog.

A change is given as columns with their values as text; the SQL statement, its undo and the records of a rollback are
derived from it.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ggshell.clock import to_datetime
from ggshell.types import quote, text_literal

Row = Mapping[str, str | None]
BLOCK = 512
_CODES = {"INSERT": 1, "DELETE": 2, "UPDATE": 3, "DDL": 5, "START": 6, "COMMIT": 7, "ROLLBACK": 36, "UNSUPPORTED": 255}
_CODES |= {"SELECT_LOB_LOCATOR": 9, "LOB_WRITE": 10, "LOB_TRIM": 11, "LOB_ERASE": 29, "XML DOC BEGIN": 68}
_OPPOSITE = {"INSERT": "DELETE", "DELETE": "INSERT", "UPDATE": "UPDATE"}
LONGEST_SQL = 4000
"""Maximum length of the view's SQL columns; a longer statement continues in the next row (CSF)."""


class RedoChange(NamedTuple):
    """A change of a transaction, with what is needed to undo it."""

    operation: str
    table: str
    row_id: str
    redo: str
    undo: str


class OpenXid:
    """An open transaction of the writer: its XID and its changes that were not rolled back."""

    def __init__(self, number: int) -> None:
        self.usn, self.slot, self.sequence = number % 10 + 1, number % 32, number
        self.changes: list[RedoChange] = []

    @property
    def text(self) -> str:
        return f"{self.usn}.{self.slot}.{self.sequence}"

    @property
    def value(self) -> int:
        return self.usn << 48 | self.slot << 32 | self.sequence


class RedoWriter:
    """Writes one redo thread to a folder.

    The caller sets ``time`` (microseconds since 1970) and ``scn``: each row takes the next SCN unless ``hold`` is set.
    """

    def __init__(
        self,
        folder: Path,
        *,
        thread: int = 1,
        segment: int = 1,
        scn: int = 1000,
        time: int = 1_767_225_600_000_000,
        segment_bytes: int = 64 << 20,
        packed: bool = False,
        owner: str = "SHOP",
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.thread = thread
        self.segment = segment
        self.scn = scn
        self.time = time
        self.hold = False
        self.rows = 0
        self._segment_bytes = segment_bytes
        self._packed = packed
        self._owner = owner
        self._number = 0
        self._row_ids = 0
        self._size = 0
        self._shown = (-1, "")
        self._file = self.path.open("ab")

    @property
    def path(self) -> Path:
        """The segment that is being written."""
        return self.folder / f"redo_{self.thread}_{self.segment:09d}.jsonl"

    def begin(self, number: int = 0) -> OpenXid:
        """Begin a transaction; ``number`` sets its XID sequence."""
        self._number = number or self._number + 1
        xid = OpenXid(self._number)
        self._write(xid, "START", sql="set transaction read write;")
        return xid

    def insert(self, xid: OpenXid, table: str, row: Row) -> str:
        """Insert a row and return its ROWID."""
        self._row_ids += 1
        row_id = f"AAAR{self._row_ids:014d}"
        redo, undo = self._insert_sql(table, row), self._delete_sql(table, row, row_id)
        self._change(xid, RedoChange("INSERT", table, row_id, redo, undo))
        return row_id

    def update(self, xid: OpenXid, table: str, row_id: str, old: Row, new: Row) -> None:
        """Update a row.

        ``old``: the columns that the log holds of the row before the change; ``new``: the changed columns.
        """
        changed = {name: old.get(name) for name in new}
        redo = self._update_sql(table, new, {**old, **changed}, row_id)
        undo = self._update_sql(table, changed, {**old, **new}, row_id)
        self._change(xid, RedoChange("UPDATE", table, row_id, redo, undo))

    def delete(self, xid: OpenXid, table: str, row_id: str, old: Row) -> None:
        redo, undo = self._delete_sql(table, old, row_id), self._insert_sql(table, old)
        self._change(xid, RedoChange("DELETE", table, row_id, redo, undo))

    def change(self, xid: OpenXid, change: RedoChange) -> None:
        """Write a change with given statements."""
        self._change(xid, change)

    def take_back(self, xid: OpenXid, count: int = 1) -> None:
        """Undo the last changes of a transaction, as a statement-level rollback does."""
        for _ in range(count):
            found = xid.changes.pop()
            back = found._replace(operation=_OPPOSITE[found.operation], redo=found.undo, undo="")
            self._write(xid, back.operation, back, rollback=True)

    def commit(self, xid: OpenXid) -> int:
        """Commit a transaction and return its commit SCN."""
        self._write(xid, "COMMIT", sql="commit;")
        return self.scn

    def rollback(self, xid: OpenXid) -> None:
        """Undo all changes of a transaction and end it."""
        self.take_back(xid, len(xid.changes))
        self._write(xid, "ROLLBACK", sql="rollback;")

    def ddl(self, table: str, sql: str) -> int:
        """Write a DDL statement in its own transaction and return its commit SCN."""
        xid = self.begin()
        self._write(xid, "DDL", RedoChange("DDL", table, "", sql, ""))
        return self.commit(xid)

    def lob(self, xid: OpenXid, table: str, operation: str, sql: str) -> None:
        """Write a LOB operation, with the statement that LogMiner prints for it."""
        self._write(xid, operation, RedoChange(operation, table, "", sql, ""))

    def unsupported(self, xid: OpenXid, table: str) -> None:
        """Write a change that LogMiner could not reconstruct."""
        self._write(xid, "UNSUPPORTED", RedoChange("UNSUPPORTED", table, "", "Unsupported", ""))

    def roll(self) -> None:
        """Complete the segment and begin the next one."""
        self._file.close()
        done = self.path
        if self._packed:
            temporary = done.with_name(done.name + ".gz.part")
            temporary.write_bytes(gzip.compress(done.read_bytes(), 1))
            temporary.rename(done.with_name(done.name + ".gz"))
        self.segment += 1
        self._size = 0
        self._file = self.path.open("ab")
        if self._packed:
            done.unlink()

    def flush(self) -> None:
        """Make everything written so far visible to readers."""
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def _change(self, xid: OpenXid, change: RedoChange) -> None:
        xid.changes.append(change)
        self._write(xid, change.operation, change)

    def _write(
        self, xid: OpenXid, operation: str, change: RedoChange | None = None, *, sql: str = "", rollback: bool = False
    ) -> None:
        if not self.hold:
            self.scn += 1
        redo = change.redo if change is not None else sql
        undo = change.undo if change is not None else ""
        parts = max(1, -(-len(redo) // LONGEST_SQL), -(-len(undo) // LONGEST_SQL))
        record = f" 0x{self.segment:06x}.{self._size // BLOCK:08x}.{self._size % BLOCK:04x} "
        for part in range(parts):
            piece = slice(part * LONGEST_SQL, (part + 1) * LONGEST_SQL)
            last = part == parts - 1
            self._line(xid, operation, change, record, redo[piece], undo[piece], int(not last), int(rollback))
        if self._size >= self._segment_bytes:
            self.roll()

    def _line(
        self,
        xid: OpenXid,
        operation: str,
        change: RedoChange | None,
        record: str,
        redo: str,
        undo: str,
        csf: int,
        back: int,
    ) -> None:
        if self._shown[0] != self.time // 1_000_000:
            self._shown = (self.time // 1_000_000, to_datetime(self.time).strftime("%Y-%m-%d %H:%M:%S"))
        of_row = ""
        if change is not None:
            of_row = f'"SEG_OWNER":"{self._owner}","TABLE_NAME":{json.dumps(change.table)},"ROW_ID":"{change.row_id}",'
        line = (
            f'{{"SCN":{self.scn},"TIMESTAMP":"{self._shown[1]}","XIDUSN":{xid.usn},"XIDSLT":{xid.slot},'
            f'"XIDSQN":{xid.sequence},"OPERATION":"{operation}","OPERATION_CODE":{_CODES[operation]},{of_row}'
            f'"RS_ID":"{record}","SSN":0,"CSF":{csf},"ROLLBACK":{back},"THREAD#":{self.thread},"RBASQN":{self.segment},'
            f'"RBABLK":{self._size // BLOCK},"RBABYTE":{self._size % BLOCK},'
            f'"SQL_REDO":{json.dumps(redo)},"SQL_UNDO":{json.dumps(undo) if undo else "null"}}}\n'
        ).encode()
        self._file.write(line)
        self._size += len(line)
        self.rows += 1

    def _table(self, table: str) -> str:
        return f"{quote(self._owner)}.{quote(table)}"

    def _insert_sql(self, table: str, row: Row) -> str:
        names, values = ",".join(map(quote, row)), ",".join(map(literal, row.values()))
        return f"insert into {self._table(table)}({names}) values ({values});"

    def _delete_sql(self, table: str, row: Row, row_id: str) -> str:
        return f"delete from {self._table(table)} where {_where(row, row_id)};"

    def _update_sql(self, table: str, new: Row, old: Row, row_id: str) -> str:
        changes = ", ".join(f"{quote(name)} = {literal(value)}" for name, value in new.items())
        return f"update {self._table(table)} set {changes} where {_where(old, row_id)};"


def literal(value: str | None) -> str:
    """Format a value as LogMiner prints text.

    A value that begins with ``=`` is an expression and is printed without the sign.
    """
    if value is None:
        return "NULL"
    if value.startswith("="):
        return value[1:]
    return text_literal(value)


def _where(row: Row, row_id: str) -> str:
    parts = [
        f"{quote(name)} IS NULL" if value is None else f"{quote(name)} = {literal(value)}"
        for name, value in row.items()
    ]
    return " and ".join([*parts, f"ROWID = '{row_id}'"])
