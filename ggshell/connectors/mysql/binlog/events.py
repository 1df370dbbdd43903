"""Events of the binary log: the header that all have, and the content of those that are not rows.

Layouts: MariaDB knowledge base, "Replication Protocol", and MySQL's internals manual, "Binary Log". All numbers are
little-endian. An event arrives without the status byte of the replication protocol, with its checksum if the log has them.
"""

from __future__ import annotations

import struct
import zlib
from enum import IntEnum
from typing import Final, NamedTuple

from ggshell.connectors.mysql.binlog.charsets import charset_of
from ggshell.connectors.mysql.binlog.query_variables import QueryVariables, query_variables
from ggshell.errors import CaptureError

HEADER_SIZE: Final = 19
CHECKSUM_SIZE: Final = 4
ARTIFICIAL: Final = 0x20
"""The flag of events that the server makes for the reader and that are not in a file."""
DAMAGED: Final = "GGS-00471"
UNSUPPORTED: Final = "GGS-00472"
UNREADABLE: Final = (struct.error, IndexError, KeyError, ValueError, StopIteration)
"""What reading raises where the content of an event does not have the layout of its kind."""

_HEADER = struct.Struct("<IBIIIH")
_SEQUENCE = struct.Struct("<QIB")
_QUERY = struct.Struct("<IIBHH")
_XID = struct.Struct("<IBB")
_PREPARE = struct.Struct("<BIII")


class EventType(IntEnum):
    """The events that are read. Of others, those with the flag "ignorable" are skipped."""

    QUERY = 2
    STOP = 3
    ROTATE = 4
    INTVAR = 5
    RAND = 13
    USER_VAR = 14
    FORMAT_DESCRIPTION = 15
    XID = 16
    BEGIN_LOAD_QUERY = 17
    EXECUTE_LOAD_QUERY = 18
    TABLE_MAP = 19
    WRITE_ROWS_V1 = 23
    UPDATE_ROWS_V1 = 24
    DELETE_ROWS_V1 = 25
    INCIDENT = 26
    HEARTBEAT = 27
    IGNORABLE = 28
    ROWS_QUERY = 29
    WRITE_ROWS = 30
    UPDATE_ROWS = 31
    DELETE_ROWS = 32
    GTID = 33
    ANONYMOUS_GTID = 34
    PREVIOUS_GTIDS = 35
    TRANSACTION_CONTEXT = 36
    VIEW_CHANGE = 37
    XA_PREPARE = 38
    PARTIAL_UPDATE_ROWS = 39
    TRANSACTION_PAYLOAD = 40
    HEARTBEAT_V2 = 41
    GTID_TAGGED = 42
    ANNOTATE_ROWS = 160
    BINLOG_CHECKPOINT = 161
    MARIADB_GTID = 162
    MARIADB_GTID_LIST = 163
    START_ENCRYPTION = 164
    QUERY_COMPRESSED = 165
    WRITE_ROWS_COMPRESSED_V1 = 166
    UPDATE_ROWS_COMPRESSED_V1 = 167
    DELETE_ROWS_COMPRESSED_V1 = 168
    WRITE_ROWS_COMPRESSED = 169
    UPDATE_ROWS_COMPRESSED = 170
    DELETE_ROWS_COMPRESSED = 171


class EventHeader(NamedTuple):
    """The header. ``time``: seconds since 1970; ``next``: the position of the next event in its file, 0 if artificial."""

    time: int
    kind: int
    server_id: int
    size: int
    next: int
    flags: int

    @property
    def start(self) -> int:
        """The event's own position in its file."""
        return self.next - self.size

    @property
    def is_artificial(self) -> bool:
        return bool(self.flags & ARTIFICIAL) or not self.next


def header(event: bytes | memoryview) -> EventHeader:
    return EventHeader(*_HEADER.unpack_from(event))


def whole_event(event: bytes, *, checksums: bool) -> bytes:
    """Return an event as it arrived without its checksum, if it has one.

    Raises CaptureError if it is not whole, or was changed after it was written.
    """
    size = int.from_bytes(event[9:13], "little")
    if size != len(event) or size < HEADER_SIZE:
        raise CaptureError(f"an event of the binary log has {len(event)} bytes instead of {size}", code=DAMAGED)
    if not checksums:
        return event
    if not has_checksum(event):
        raise CaptureError(
            f"the checksum of the event at position {header(event).start} of the binary log does not match",
            code=DAMAGED,
            hint="check the log with mariadb-binlog --verify-binlog-checksum (mysqlbinlog) on the server",
        )
    return event[:-CHECKSUM_SIZE]


def unreadable(error: Exception) -> CaptureError:
    """The error for an event that could not be read with one of ``UNREADABLE``."""
    return CaptureError(
        f"an event of the binary log does not have the expected content: {error}",
        code=DAMAGED,
        hint="check the log with mariadb-binlog (mysqlbinlog) on the server",
    )


class FormatDescription(NamedTuple):
    """How the events of a file are written. ``created``: the server's start if the file is the first after it, else 0."""

    version: str
    created: int
    checksums: bool


def format_description(event: bytes) -> FormatDescription:
    """Read the description; it always has a checksum, whether the others have one or not."""
    version, server, created, length = struct.unpack_from("<H50sIB", event, HEADER_SIZE)
    if version != 4 or length != HEADER_SIZE:
        raise CaptureError(f"binary logs of version {version} are not supported", code=UNSUPPORTED)
    algorithm = event[-CHECKSUM_SIZE - 1]
    if algorithm not in (0, 1):
        raise CaptureError(f"the checksum algorithm {algorithm} is not supported", code=UNSUPPORTED)
    return FormatDescription(server.rstrip(b"\0").decode("ascii", "replace"), created, algorithm == 1)


def has_checksum(event: bytes) -> bool:
    """Whether an event ends with its valid checksum."""
    return zlib.crc32(memoryview(event)[:-CHECKSUM_SIZE]) == int.from_bytes(event[-CHECKSUM_SIZE:], "little")


class Rotate(NamedTuple):
    """The file that follows, and the position of its first event that will be sent."""

    position: int
    file: str


def rotate(event: bytes) -> Rotate:
    """Read a rotate event, with its checksum or without: the first one arrives before it is known whether events have one."""
    if has_checksum(event):
        event = event[:-CHECKSUM_SIZE]
    return Rotate(int.from_bytes(event[19:27], "little"), event[27:].decode("utf-8", "replace"))


class GtidFlags(IntEnum):
    """The flags of a GTID event of MariaDB."""

    STANDALONE = 1
    GROUP_COMMIT = 2
    TRANSACTIONAL = 4
    DDL = 32
    PREPARED_XA = 64
    COMPLETED_XA = 128


_BEGUN_ALTER, _FAILED_ALTER = 2, 8
"""More flags of a GTID event of MariaDB, in a byte after everything else. With binlog_alter_two_phase, ALTER TABLE is logged
when it begins, and again when it has been executed or has failed."""


class TransactionBegin(NamedTuple):
    """The GTID event that begins a transaction.

    ``gtid``: its text, empty for an anonymous transaction; ``domain``: what orders it (MariaDB: the replication domain, MySQL:
    the UUID of the server), with ``number`` rising in it. ``standalone``: a single statement without an end of its own.
    ``prepares`` and ``completes``: the name of the XA transaction that it prepares, or commits or rolls back.
    ``commit_time``: in microseconds since 1970, 0 if the event does not have it. ``ineffective``: its statement has only begun,
    or has failed.
    """

    gtid: str
    domain: str
    number: int
    standalone: bool = False
    prepares: str = ""
    completes: str = ""
    commit_time: int = 0
    ineffective: bool = False

    @property
    def of_mariadb(self) -> bool:
        """Whether MariaDB has written it; only MySQL has anonymous transactions."""
        return bool(self.gtid) and ":" not in self.gtid


def mariadb_gtid(event: bytes) -> TransactionBegin:
    head = header(event)
    number, domain, flags = _SEQUENCE.unpack_from(event, HEADER_SIZE)
    place = HEADER_SIZE + _SEQUENCE.size
    if flags & GtidFlags.GROUP_COMMIT:
        place += 8
    name = ""
    if flags & (GtidFlags.PREPARED_XA | GtidFlags.COMPLETED_XA):
        form, global_length, branch_length = _XID.unpack_from(event, place)
        data = event[place + _XID.size :][: global_length + branch_length]
        name = xa_name(form, data[:global_length], data[global_length:])
        place += _XID.size + len(data)
    more = event[place] if place < len(event) else 0
    return TransactionBegin(
        f"{domain}-{head.server_id}-{number}",
        str(domain),
        number,
        bool(flags & GtidFlags.STANDALONE),
        name if flags & GtidFlags.PREPARED_XA else "",
        name if flags & GtidFlags.COMPLETED_XA else "",
        ineffective=bool(more & (_BEGUN_ALTER | _FAILED_ALTER)),
    )


def uuid_text(raw: bytes) -> str:
    """The identifier of a MySQL server, from its bytes."""
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def mysql_gtid(event: bytes) -> TransactionBegin:
    """Read the GTID event of MySQL, also that of an anonymous transaction."""
    head = header(event)
    uuid, number = uuid_text(event[20:36]), int.from_bytes(event[36:44], "little")
    time = 0
    if len(event) >= 68 and event[44] == 2:  # the logical clock, and after it the time of the commit here
        time = int.from_bytes(event[61:68], "little") & ((1 << 55) - 1)
    anonymous = head.kind == EventType.ANONYMOUS_GTID
    return TransactionBegin(
        "" if anonymous else f"{uuid}:{number}", "" if anonymous else uuid, number, commit_time=time
    )


class Query(NamedTuple):
    """A statement in the log. ``error``: the number of the error it ended with on the source; ``variables``: of its session;
    ``time``: when it began, in seconds since 1970."""

    database: str
    text: str
    error: int
    variables: QueryVariables = QueryVariables()
    time: int = 0


def query(event: bytes) -> Query:
    """Read a query event, compressed or not."""
    _, _, length, error, variables = _QUERY.unpack_from(event, HEADER_SIZE)
    first = HEADER_SIZE + _QUERY.size
    place = first + variables
    database = event[place : place + length].decode("utf-8", "replace")
    text = event[place + length + 1 :]
    head = header(event)
    if head.kind == EventType.QUERY_COMPRESSED:
        text = decompressed(text)
    said = query_variables(event[first:place])
    return Query(database, _decoded(text, said.charset), error, said, head.time)


def _decoded(text: bytes, collation: int) -> str:
    """The text of a statement, which is in the character set of its client."""
    try:
        charset = charset_of(collation)
        return text.decode("utf-8", "replace") if charset.direct else charset.decode(text)
    except CaptureError:  # not known, or not valid: the words of the statement are ASCII in every client's set
        return text.decode("utf-8", "replace")


def decompressed(data: bytes | memoryview) -> bytes:
    """Decompress the content of one of MariaDB's compressed events: a head with the size, then zlib data."""
    size = data[0] & 7
    if (data[0] & 0x70) >> 4:
        raise CaptureError(f"the compression algorithm {(data[0] & 0x70) >> 4} is not supported", code=UNSUPPORTED)
    expected = int.from_bytes(data[1 : 1 + size], "big")
    try:
        found = zlib.decompress(data[1 + size :])
    except zlib.error as error:
        raise CaptureError(f"a compressed event in the binary log is damaged: {error}", code=DAMAGED) from error
    if len(found) != expected:
        raise CaptureError(f"a compressed event has {len(found)} bytes instead of {expected}", code=DAMAGED)
    return found


def xa_name(form: int, global_part: bytes, branch: bytes) -> str:
    """The name of an XA transaction as statements in the log write it: ``X'67',X'62',1``."""
    return f"X'{global_part.hex()}',X'{branch.hex()}',{form}"


def xa_prepare(event: bytes) -> tuple[str, bool]:
    """The XA transaction that an event prepares, and whether it is committed at once (ONE PHASE)."""
    one_phase, form, global_length, branch_length = _PREPARE.unpack_from(event, HEADER_SIZE)
    data = event[HEADER_SIZE + _PREPARE.size :][: global_length + branch_length]
    return xa_name(form, data[:global_length], data[global_length:]), bool(one_phase)


def incident(event: bytes) -> str:
    """The message of an event that says that the log lacks changes."""
    length = event[HEADER_SIZE + 2] if len(event) > HEADER_SIZE + 2 else 0
    return event[HEADER_SIZE + 3 : HEADER_SIZE + 3 + length].decode("utf-8", "replace")


def packed(data: bytes | memoryview, place: int) -> tuple[int, int]:
    """Read an integer of variable length; return it and the place after it."""
    first = data[place]
    if first < 0xFB:
        return first, place + 1
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}.get(first)
    if size is None:
        raise CaptureError(f"a length {first:#x} in the binary log", code=DAMAGED)
    return int.from_bytes(data[place + 1 : place + 1 + size], "little"), place + 1 + size


def packed_text(data: bytes | memoryview, place: int) -> tuple[bytes, int]:
    """Read bytes with their length before them; return them and the place after them."""
    size, first = packed(data, place)
    return bytes(data[first : first + size]), first + size
