"""The replication connection: the commands of a replica, and the events that the server then sends.

A packet of the protocol has a head of 4 bytes (length and number); events of 16 MB and more come in several packets. The
first byte of a packet says whether an event, an error or the end follows it.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import ssl
import struct
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ggshell.connectors.mysql.session import connect, execute, server_version, translate, translated
from ggshell.errors import CaptureError, ConnectionLostError, GgsError, LogRefusedError

if TYPE_CHECKING:
    from pymysql.connections import Connection

READ_BYTES: Final = 1 << 18
HEARTBEAT_SECONDS: Final = 5
LOST_SECONDS: Final = 60.0
"""Without any packet for so long, the connection is regarded as lost; the server sends a heartbeat much earlier."""
DROPPED_SECONDS: Final = 600
"""net_write_timeout of the connection: how long the server waits for a reader that does not read."""
GONE: Final = "GGS-00474"
_CAPABILITY: Final = 4
"""MariaDB sends GTID events only to a replica that says that it knows them."""
_REGISTER, _DUMP = 0x15, 0x12
_NON_BLOCK: Final = 1
_PART: Final = 0xFFFFFF
_OK, _END, _ERROR = 0x00, 0xFE, 0xFF
_NOT_SENT: Final = 1236
"""The number of the error with which the server refuses to send a log, for any reason."""


class StartAt(NamedTuple):
    """Where to begin: at a position in a file or, with ``gtid``, after a GTID position. ``ends``: end with the log."""

    file: str = ""
    position: int = 4
    gtid: str | None = None
    ends: bool = False


class ReplicationWire:
    """A connection that receives events. ``ended``: the server has sent the log up to its end, or is shutting down."""

    def __init__(self, connection: Connection[Any], sock: socket.socket) -> None:
        self._connection = connection
        self._socket = sock
        self._buffer = bytearray()
        self._parts: list[bytes] = []
        self._failure: Exception | None = None
        self.ended = False

    @classmethod
    def open(cls, login: str, server_id: int, start: StartAt, program: str) -> ReplicationWire:
        """Connect as a replica and ask for the log. Raises DatabaseError, ConnectionLostError."""
        connection = connect(login, program=program)
        try:
            _prepare(connection, start)
            with translated():
                sock = _ask(connection, server_id, start)
        except GgsError:
            connection.close()
            raise
        sock.setblocking(False)
        return cls(connection, sock)

    def fileno(self) -> int:
        return self._socket.fileno()

    def wait(self, timeout: float) -> bool:
        """Wait until more can be received. Returns False on timeout."""
        if self.pending:
            return True
        poll = select.poll()
        poll.register(self.fileno(), select.POLLIN)
        return bool(poll.poll(timeout * 1000))

    @property
    def pending(self) -> bool:
        """Whether received data was not taken yet, which waiting for the socket would not notice."""
        return self._failure is not None or (isinstance(self._socket, ssl.SSLSocket) and bool(self._socket.pending()))

    def receive(self) -> list[bytes]:
        """Return the events that have arrived, up to about ``READ_BYTES``; empty if there are none.

        What came before an error is returned first. Raises ConnectionLostError, and CaptureError if the server cannot
        send the log.
        """
        if self._failure is not None:
            raise self._failure
        try:
            found = self._socket.recv(READ_BYTES)
        except (BlockingIOError, ssl.SSLWantReadError):
            return []
        except OSError as error:
            raise ConnectionLostError(f"the connection to the server was lost: {error}") from error
        if not found:
            raise ConnectionLostError("the server closed the replication connection")
        self._buffer += found
        events = self._events()
        if self._failure is not None and not events:
            raise self._failure
        return events

    def _events(self) -> list[bytes]:
        """Take the whole packets from the buffer."""
        buffer, place, events = self._buffer, 0, []
        while len(buffer) - place >= 4:
            size = int.from_bytes(buffer[place : place + 3], "little")
            if len(buffer) - place - 4 < size:
                break
            self._parts.append(bytes(buffer[place + 4 : place + 4 + size]))
            place += 4 + size
            if size == _PART:
                continue
            packet, self._parts = b"".join(self._parts), []
            if packet[0] != _OK:
                self.ended = packet[0] == _END
                self._failure = _ending(packet)
                break
            events.append(packet[1:])
        del buffer[:place]
        return events

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.close()


def _ending(packet: bytes) -> Exception:
    """The error that a packet means that is not an event."""
    if packet[0] == _END and len(packet) < 9:
        return ConnectionLostError(
            "the server ended the connection: it has sent everything that was requested, or is shutting down"
        )
    if packet[0] != _ERROR:
        return ConnectionLostError(f"the server sent a packet of kind {packet[0]:#x} instead of an event")
    text = packet[3:].decode("utf-8", "replace")
    return refusal(int.from_bytes(packet[1:3], "little"), text[6:] if text.startswith("#") else text)


def refusal(number: int, text: str) -> GgsError:
    """The error for a log that the server does not send."""
    import pymysql

    lowered = text.lower()
    if number != _NOT_SENT:
        return translate(pymysql.err.OperationalError(number, text))
    if "same server_uuid/server_id" in lowered or "same server_id" in lowered:
        return ConnectionLostError(
            f"another replica has taken over this connection: {text}",
            hint="check that no copy of this home captures from the same server",
        )
    if "purged" in lowered or "could not find first log" in lowered or "could not find gtid state" in lowered:
        return CaptureError(
            f"the server no longer has the log from this position: {text}",
            code=GONE,
            hint="ALTER EXTRACT …, BEGIN NOW and load the tables again; keep logs for longer with binlog_expire_logs_seconds",
        )
    if "not in the master's binlog" in lowered or "missing" in lowered or "impossible position" in lowered:
        return CaptureError(
            f"the server's log does not contain this position: {text}",
            code=GONE,
            hint="check that the login connects to the same server or to a replica of it; after RESET MASTER, ALTER EXTRACT …,"
            " BEGIN NOW and load the tables again",
        )
    return LogRefusedError(f"the server ended the log: {text}")


def _prepare(connection: Connection[Any], start: StartAt) -> None:
    """Set what the server reads of a replica's session."""
    execute(connection, "SET @master_binlog_checksum = @@GLOBAL.binlog_checksum")
    execute(connection, f"SET @master_heartbeat_period = {HEARTBEAT_SECONDS * 10**9}")
    execute(connection, f"SET SESSION net_write_timeout = {DROPPED_SECONDS}")
    if server_version(connection).mariadb:
        execute(connection, f"SET @mariadb_slave_capability = {_CAPABILITY}")
        if start.gtid is not None:
            execute(connection, "SET @slave_connect_state = %s", [start.gtid])
            execute(connection, "SET @slave_gtid_strict_mode = 1")
    elif start.gtid is not None:
        raise CaptureError(
            "a position by GTID is supported for MariaDB only", code=GONE, hint="use LOGNUM and LOGPOS, or BEGIN NOW"
        )


def _ask(connection: Connection[Any], server_id: int, start: StartAt) -> socket.socket:
    """Register as a replica, and ask for the log; return the socket, from which only events are read from now on."""
    driver: Any = connection
    name = socket.gethostname().encode()[:60]
    driver._execute_command(
        _REGISTER, struct.pack("<IB", server_id, len(name)) + name + struct.pack("<BBHII", 0, 0, 0, 0, 0)
    )
    driver._read_packet()
    file = b"" if start.gtid is not None else start.file.encode()
    flags = _NON_BLOCK if start.ends else 0
    driver._execute_command(_DUMP, struct.pack("<IHI", start.position, flags, server_id) + file)
    sock: socket.socket = driver._sock
    return sock


def server_number(names: Sequence[str]) -> int:
    """A server id for a group: the same after each restart, so that the server drops the former connection.

    It is above the numbers that administrators choose.
    """
    text = "\0".join((os.uname().nodename, *names))
    return 1 << 31 | zlib.crc32(text.encode()) >> 1
