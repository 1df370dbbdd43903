"""Basic value types that all packages share: CSNs, positions and table names.

A position is a type, never a bare number. All types here are immutable, comparable and printable, and do no I/O.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Final, NamedTuple

_LSN = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")


class CsnForm(IntEnum):
    """How a CSN is printed. The numbers are stored in trails and sent to other homes; 2 means that there is no CSN."""

    NUMBER = 0
    LSN = 1
    LOG = 3


class Csn(NamedTuple):
    """A commit sequence number, which orders the commits of one source database.

    PostgreSQL: the LSN after the commit record, printed as ``00000000/050056B8``. Oracle: the SCN, printed in decimal.
    MariaDB and MySQL: the number of the log file and the position in it where the transaction begins, in the upper and lower
    32 bits, printed as ``000012:000000000000121``. ``Csn(0)`` precedes every commit.
    """

    value: int
    form: CsnForm = CsnForm.LSN

    @classmethod
    def parse(cls, text: str) -> Csn:
        """Parse any printed form. Raises ValueError for any other text."""
        file, colon, position = text.partition(":")
        if colon:
            return cls.of_log(int(file), int(position))
        high, slash, low = text.partition("/")
        if not slash:
            return cls(int(text), CsnForm.NUMBER)
        if not (0 < len(high) <= 8 and 0 < len(low) <= 8):
            raise ValueError(f"{text!r} is not a valid CSN")
        return cls(int(high, 16) << 32 | int(low, 16))

    @classmethod
    def of_log(cls, file: int, position: int) -> Csn:
        """The CSN of a position in a numbered file. Raises ValueError if a number is too large."""
        if not (0 <= file < 1 << 32 and 0 <= position < 1 << 32):
            raise ValueError(f"{file}:{position} is not a valid CSN")
        return cls(file << 32 | position, CsnForm.LOG)

    def __str__(self) -> str:
        if self.form == CsnForm.LOG:
            return f"{self.value >> 32:06d}:{self.value & 0xFFFFFFFF:015d}"
        if self.form == CsnForm.LSN:
            return f"{self.value >> 32:08X}/{self.value & 0xFFFFFFFF:08X}"
        return str(self.value)


def format_lsn(value: int) -> str:
    """Return an LSN in PostgreSQL's short form, as its functions and slots print it: ``0/50056B8``."""
    return f"{value >> 32:X}/{value & 0xFFFFFFFF:X}"


def parse_lsn(text: str) -> int:
    """Return the numeric value of an LSN such as ``0/50056B8``. Raises ValueError if the text is not an LSN."""
    match = _LSN.fullmatch(text.strip())
    if not match:
        raise ValueError(f"{text!r} is not a valid LSN")
    return int(match[1], 16) << 32 | int(match[2], 16)


LAST_OFFSET: Final = (1 << 63) - 1
"""The largest offset of a position, in bytes."""


class TrailPosition(NamedTuple):
    """A position in a trail: the file's sequence number and the relative byte address in that file."""

    seqno: int
    rba: int

    def __str__(self) -> str:
        return f"Seqno {self.seqno}, RBA {self.rba}"


class LogPosition(NamedTuple):
    """A position in a database log.

    ``sequence`` and ``rba`` are the log file's number and the byte offset in it (PostgreSQL: the two halves of the LSN).
    ``csn`` is the position in the database's own numbering (LSN or SCN). ``thread`` is the redo thread, or 0 for none.
    """

    sequence: int
    rba: int
    csn: int
    thread: int = 0

    @classmethod
    def of_lsn(cls, lsn: int) -> LogPosition:
        return cls(lsn >> 32, lsn & 0xFFFFFFFF, lsn)


_PLAIN = re.compile(r"[a-z_][a-z0-9_$]*")


class TableName(NamedTuple):
    """A table name as the database stores it: case preserved, no quotes. An object without an owner has an empty one."""

    owner: str
    name: str

    @classmethod
    def parse(cls, text: str) -> TableName:
        """Parse ``owner.table``. Double quotes preserve case and dots; unquoted parts are folded to lower case.

        Raises ValueError unless there are exactly two parts.
        """
        parts = split_name(text)
        if len(parts) != 2:
            raise ValueError(f"{text!r} is not a valid table name: write schema.table")
        return cls(*parts)

    def __str__(self) -> str:
        return ".".join(display_part(part) for part in (self.owner, self.name)[not self.owner :])


def display_part(part: str) -> str:
    """Return a name part as an administrator types it, quoted only if it is not a plain lower-case identifier."""
    return part if _PLAIN.fullmatch(part) else quote(part)


def quote(name: str) -> str:
    """Quote an identifier for SQL. All dialects that ggshell writes do it in this way."""
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    """Quote a text for an SQL dialect in which a backslash stands for itself: DuckDB, Delta, Oracle, MariaDB as a target."""
    return "'" + text.replace("'", "''") + "'"


def postgres_literal(text: str) -> str:
    """Quote a text for PostgreSQL, regardless of standard_conforming_strings."""
    found = text_literal(text)
    return "E" + found.replace("\\", "\\\\") if "\\" in found else found


def quote_table(table: TableName) -> str:
    return f"{quote(table.owner)}.{quote(table.name)}"


def split_name(text: str) -> list[str]:
    """Split a dotted name into its parts.

    Quoted parts keep their case; other parts are folded to lower case (PostgreSQL's rule). Raises ValueError.
    """
    parts: list[str] = []
    rest = text.strip()
    while True:
        match = re.match(r'\s*(?:"((?:[^"]|"")+)"|([^".\s]+))\s*(\.|$)', rest)
        if not match:
            raise ValueError(f"{text!r} is not a valid name")
        parts.append(match[1].replace('""', '"') if match[1] is not None else match[2].lower())
        rest = rest[match.end() :]
        if match[3] != ".":
            return parts
