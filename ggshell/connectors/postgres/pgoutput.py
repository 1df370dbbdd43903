"""Messages of pgoutput, PostgreSQL's logical replication protocol (versions 1 to 4), except the rows (see rows.py).

Each message is a CopyData body: ``w``, WAL start, WAL end and server time (8 bytes each), then the payload at byte 25.
All integers are big-endian; times count microseconds from 2000-01-01.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

PAYLOAD: Final = 25
POSTGRES_EPOCH: Final = 946_684_800_000_000
"""Microseconds from 1970-01-01 to 2000-01-01."""

XLOG_DATA: Final = ord("w")
KEEPALIVE: Final = ord("k")
BEGIN, COMMIT, RELATION = ord("B"), ord("C"), ord("R")
INSERT, UPDATE, DELETE, TRUNCATE = ord("I"), ord("U"), ord("D"), ord("T")
STREAM_START, STREAM_STOP, STREAM_COMMIT, STREAM_ABORT = ord("S"), ord("E"), ord("c"), ord("A")
MESSAGE, ORIGIN = ord("M"), ord("O")
DDL: Final = ord("Q")
"""Not a message of the protocol: a DDL statement, which ``record_of`` makes from a logical decoding message."""
SEQUENCE: Final = ord("V")
"""The same for the value of a sequence."""
ROWS = frozenset((INSERT, UPDATE, DELETE, TRUNCATE))

_BEGIN = struct.Struct(">8xqI")
_COMMIT = struct.Struct(">BQQq")
_STREAM_COMMIT = struct.Struct(">IBQQq")
_KEEPALIVE = struct.Struct(">QqB")


class Begin(NamedTuple):
    """The begin of a transaction: its commit time and its id."""

    time: int
    xid: int


class Commit(NamedTuple):
    """The end of a transaction. ``end_lsn`` is the position after the commit record (the CSN)."""

    commit_lsn: int
    end_lsn: int
    time: int
    xid: int = 0


class RelationColumn(NamedTuple):
    """A column of a Relation message; ``key`` means that it is part of the replica identity."""

    key: bool
    name: str
    type_id: int
    modifier: int


class Relation(NamedTuple):
    """A table as the log describes it; ``identity`` is pg_class.relreplident (d, n, f, i)."""

    relation: int
    owner: str
    name: str
    identity: str
    columns: tuple[RelationColumn, ...]


def begin(message: memoryview | bytes) -> Begin:
    time, xid = _BEGIN.unpack_from(message, PAYLOAD + 1)
    return Begin(time + POSTGRES_EPOCH, xid)


def commit(message: memoryview | bytes) -> Commit:
    _, at, end, time = _COMMIT.unpack_from(message, PAYLOAD + 1)
    return Commit(at, end, time + POSTGRES_EPOCH)


def stream_commit(message: memoryview | bytes) -> Commit:
    xid, _, at, end, time = _STREAM_COMMIT.unpack_from(message, PAYLOAD + 1)
    return Commit(at, end, time + POSTGRES_EPOCH, xid)


def keepalive(message: memoryview | bytes) -> tuple[int, bool]:
    """Parse a keepalive: (the server's position, whether it requests a reply now)."""
    end, _, wanted = _KEEPALIVE.unpack_from(message, 1)
    return end, bool(wanted)


def relation(message: bytes, *, streamed: bool) -> Relation:
    """Parse a Relation message. In a streamed one the transaction's id precedes the table's id."""
    place = PAYLOAD + 1 + (4 if streamed else 0)
    number = int.from_bytes(message[place : place + 4], "big")
    owner, place = _text(message, place + 4)
    name, place = _text(message, place)
    identity, count = chr(message[place]), int.from_bytes(message[place + 1 : place + 3], "big")
    place += 3
    found = []
    for _ in range(count):
        flag = message[place]
        column, place = _text(message, place + 1)
        kind, modifier = struct.unpack_from(">Ii", message, place)
        place += 8
        found.append(RelationColumn(bool(flag & 1), column, kind, modifier))
    return Relation(number, owner or "pg_catalog", name, identity, tuple(found))


def note(message: bytes, *, streamed: bool) -> tuple[str, bytes]:
    """The prefix and the content of a logical decoding message."""
    place = PAYLOAD + 1 + (4 if streamed else 0) + 9
    prefix, place = _text(message, place)
    size = int.from_bytes(message[place : place + 4], "big")
    return prefix, message[place + 4 : place + 4 + size]


def note_lsn(message: bytes, *, streamed: bool) -> int:
    """The position of a logical decoding message in the log."""
    place = PAYLOAD + 1 + (4 if streamed else 0) + 1
    return int.from_bytes(message[place : place + 8], "big")


def truncate_of(message: bytes, relation: int, *, streamed: bool) -> bytes:
    """Build a Truncate message of one table, at the position of another message and in its transaction."""
    head = PAYLOAD + 1 + (4 if streamed else 0)
    return message[:PAYLOAD] + b"T" + message[PAYLOAD + 1 : head] + struct.pack(">IBI", 1, 0, relation)


def record_of(message: bytes, kind: int, relation: int, data: bytes, *, streamed: bool) -> bytes:
    """Build a message of a finished record (DDL, SEQUENCE), at the position of another message and in its transaction."""
    head = PAYLOAD + 1 + (4 if streamed else 0)
    return message[:PAYLOAD] + bytes([kind]) + message[PAYLOAD + 1 : head] + struct.pack(">I", relation) + data


def _text(message: bytes, place: int) -> tuple[str, int]:
    end = message.index(b"\0", place)
    return message[place:end].decode(), end + 1


def standby_status(position: int, now: int, *, reply: bool = False) -> bytes:
    """Build the feedback message: written, flushed and applied up to a position. ``now``: microseconds since 1970."""
    return struct.pack(">BQQQqB", ord("r"), position, position, position, now - POSTGRES_EPOCH, int(reply))
