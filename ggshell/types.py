"""Small ordered values that the whole house passes around: positions, numbers of commits, names.

A position is a type, never a bare number.  Everything here is immutable, comparable and printable, and knows no I/O.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_LSN = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")


class Csn(NamedTuple):
    """A commit sequence number: orders the commits of one source database.

    PostgreSQL: the LSN after the commit record, printed ``00000000/050056B8`` (``lsn=True``);
    Oracle: the SCN, printed in decimal.  ``Csn(0)`` stands before every commit.
    """

    value: int
    lsn: bool = True

    @classmethod
    def parse(cls, text: str) -> Csn:
        """Read either printed form.  Raises ValueError for anything else."""
        high, slash, low = text.partition("/")
        if not slash:
            return cls(int(text), False)
        if not (0 < len(high) <= 8 and 0 < len(low) <= 8):
            raise ValueError(f"not a CSN: {text!r}")
        return cls(int(high, 16) << 32 | int(low, 16), True)

    def __str__(self) -> str:
        if self.lsn:
            return f"{self.value >> 32:08X}/{self.value & 0xFFFFFFFF:08X}"
        return str(self.value)


def format_lsn(value: int) -> str:
    """PostgreSQL's own short form of an LSN, as its functions and slots print it: ``0/50056B8``."""
    return f"{value >> 32:X}/{value & 0xFFFFFFFF:X}"


def parse_lsn(text: str) -> int:
    """The number behind ``0/50056B8``.  Raises ValueError when the text is no LSN."""
    match = _LSN.fullmatch(text.strip())
    if not match:
        raise ValueError(f"not an LSN: {text!r}")
    return int(match[1], 16) << 32 | int(match[2], 16)


class TrailPosition(NamedTuple):
    """A place in a trail: file sequence number and relative byte address in that file."""

    seqno: int
    rba: int

    def __str__(self) -> str:
        return f"Seqno {self.seqno}, RBA {self.rba}"


class LogPosition(NamedTuple):
    """A place in a database's log.

    ``sequence`` and ``rba`` are the log file's number and the byte in it (PostgreSQL: the two halves of the LSN),
    ``csn`` the position as the database counts (LSN or SCN), ``thread`` the redo thread (0 where there is none).
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
    """A table as the database spells it (case kept, no quotes)."""

    owner: str
    name: str

    @classmethod
    def parse(cls, text: str) -> TableName:
        """Read ``owner.table``; double quotes keep case and dots, unquoted parts are folded to lower case.

        Raises ValueError when there are not exactly two parts.
        """
        parts = split_name(text)
        if len(parts) != 2:
            raise ValueError(f"a table is written schema.table: {text!r}")
        return cls(*parts)

    def __str__(self) -> str:
        return f"{display_part(self.owner)}.{display_part(self.name)}"


def display_part(part: str) -> str:
    """A name part as an administrator types it: quoted only when folding would change it."""
    return part if _PLAIN.fullmatch(part) else '"' + part.replace('"', '""') + '"'


def split_name(text: str) -> list[str]:
    """The parts of a dotted name; quoted parts keep their case, others are folded to lower case (PostgreSQL's rule)."""
    parts: list[str] = []
    rest = text.strip()
    while True:
        match = re.match(r'\s*(?:"((?:[^"]|"")+)"|([^".\s]+))\s*(\.|$)', rest)
        if not match:
            raise ValueError(f"not a name: {text!r}")
        parts.append(match[1].replace('""', '"') if match[1] is not None else match[2].lower())
        rest = rest[match.end() :]
        if match[3] != ".":
            return parts
