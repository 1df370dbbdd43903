"""The two directions of COPY BOTH: the bodies of the server's CopyData messages, and ours.

libpq hands one message out a call, which costs more than all that Extract does with a row.  So where the connection is
plain, the protocol (version 3, chapter "Message Formats" of PostgreSQL's manual) is read off the socket itself, a block at
a time; under TLS or GSS, libpq does it.  Both give the same messages.
"""

from __future__ import annotations

import os
import select
import socket
import struct
from typing import TYPE_CHECKING, Any, Final, Protocol

from ggshell.databases.postgres import session
from ggshell.errors import ConnectionLostError

if TYPE_CHECKING:
    import psycopg

_HEAD = struct.Struct(">BI")
_COPY_DATA, _COPY_DONE, _COPY_BOTH, _ERROR = ord("d"), ord("c"), ord("W"), ord("E")
BLOCK: Final = 1 << 18
START_SECONDS = 60.0


class CopyStream(Protocol):
    """An open COPY BOTH."""

    def take(self) -> list[bytes]:
        """The messages that are there, none when nothing is; never waits.  Raises ConnectionLostError."""
        ...

    def send(self, body: bytes) -> None:
        """Send one message, now or with the next one.  Raises ConnectionLostError."""
        ...

    def fileno(self) -> int: ...

    def close(self) -> None: ...


def open_stream(connection: psycopg.Connection[Any], command: str) -> CopyStream:
    """Begin the COPY BOTH of a START_REPLICATION command on a fresh connection.

    Raises what the server's refusal means (see ``session.translate``), or ConnectionLostError.
    """
    settings = {option.keyword: option.val for option in connection.pgconn.info}
    plain = not connection.pgconn.ssl_in_use and settings.get(b"gssencmode", b"disable") == b"disable"
    return SocketStream(connection, command) if plain else LibpqStream(connection, command)


class Framer:
    """Cuts a stream of protocol bytes into messages, however the bytes come."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._have = 0
        self._need = _HEAD.size

    def feed(self, data: bytes) -> tuple[list[bytes], list[tuple[int, bytes]]]:
        """The bodies of the CopyData messages that are whole now, and all others as (type, body)."""
        bodies: list[bytes] = []
        others: list[tuple[int, bytes]] = []
        self._have += len(data)
        if self._parts or self._have < self._need:
            self._parts.append(data)
            if self._have < self._need:  # a long value is joined once, not with each block
                return bodies, others
            data = b"".join(self._parts)
            self._parts = []
        place, end, unpack, add = 0, len(data), _HEAD.unpack_from, bodies.append
        need = _HEAD.size
        while place + 5 <= end:
            kind, length = unpack(data, place)
            stop = place + 1 + length
            if stop > end:
                need = stop - place
                break
            if kind == _COPY_DATA:
                add(data[place + 5 : stop])
            else:
                others.append((kind, data[place + 5 : stop]))
            place = stop
        self._have, self._need = end - place, need
        if place < end:
            self._parts.append(data[place:])
        return bodies, others


class SocketStream:
    """COPY BOTH on the connection's own socket.  libpq knows nothing of it, and is only asked to close it."""

    def __init__(self, connection: psycopg.Connection[Any], command: str) -> None:
        self._connection = connection
        self._socket = socket.socket(fileno=os.dup(connection.pgconn.socket))
        self._socket.setblocking(False)
        self._block = bytearray(BLOCK)  # one for all: a new one for each recv costs more than the recv
        self._view = memoryview(self._block)
        self._framer = Framer()
        self._ready: list[bytes] = []
        self._unsent = b""
        try:
            self._start(command.encode() + b"\0")
        except BaseException:
            self.close()
            raise

    def take(self) -> list[bytes]:
        if self._ready:
            ready, self._ready = self._ready, []
            return ready
        try:
            size = self._socket.recv_into(self._block)
        except BlockingIOError:
            return []
        except OSError as error:
            raise ConnectionLostError(f"the log's connection broke: {error.strerror or error}") from error
        if not size:
            raise ConnectionLostError("the server closed the log's connection")
        data = self._view[:size].tobytes()
        bodies, others = self._framer.feed(data)
        for kind, body in others:
            self._other(kind, body)
        return bodies

    def send(self, body: bytes) -> None:
        self._unsent += _HEAD.pack(_COPY_DATA, 4 + len(body)) + body
        self._flush()

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()
        self._connection.close()

    def _flush(self) -> None:
        try:
            while self._unsent:
                self._unsent = self._unsent[self._socket.send(self._unsent) :]
        except BlockingIOError:  # the server reads later; what is left goes first then
            return
        except OSError as error:
            raise ConnectionLostError(f"the log's connection broke: {error.strerror or error}") from error

    def _start(self, query: bytes) -> None:
        self._unsent = _HEAD.pack(ord("Q"), 4 + len(query)) + query
        self._flush()
        started = False
        while not started:
            if not select.select([self._socket], [], [], START_SECONDS)[0]:
                raise ConnectionLostError(f"the server did not begin the log within {START_SECONDS:.0f} seconds")
            data = self._socket.recv(BLOCK)
            if not data:
                raise ConnectionLostError("the server closed the log's connection")
            bodies, others = self._framer.feed(data)
            self._ready += bodies
            for kind, body in others:
                started = started or kind == _COPY_BOTH
                self._other(kind, body)

    def _other(self, kind: int, body: bytes) -> None:
        """A message beside the log: an end, an error, or news that nobody needs (notices, settings)."""
        if kind == _ERROR:
            state, text = _error(body)
            raise session.refusal(text, state)
        if kind == _COPY_DONE:
            raise ConnectionLostError("the server ended the log")


def _error(body: bytes) -> tuple[str, str]:
    """SQLSTATE and text of an ErrorResponse: fields of a letter and a text with a zero byte behind it."""
    fields = {part[:1]: part[1:].decode(errors="replace") for part in body.split(b"\0") if part}
    text = ": ".join(fields[name] for name in (b"S", b"M", b"D") if name in fields)
    return fields.get(b"C", ""), text


class LibpqStream:
    """COPY BOTH through libpq."""

    def __init__(self, connection: psycopg.Connection[Any], command: str) -> None:
        from psycopg import pq

        self._connection = connection
        self._pgconn = connection.pgconn
        result = self._pgconn.exec_(command.encode())
        if result.status != pq.ExecStatus.COPY_BOTH:
            state = result.error_field(pq.DiagnosticField.SQLSTATE) or b""
            text = result.error_message.decode(errors="replace")
            connection.close()
            raise session.refusal(text, state.decode())

    def take(self) -> list[bytes]:
        import psycopg

        messages: list[bytes] = []
        try:
            self._pgconn.consume_input()
            while len(messages) < BLOCK >> 8:
                status, message = self._pgconn.get_copy_data(1)
                if status > 0:
                    messages.append(bytes(message))
                elif status == 0:
                    break
                else:
                    text = self._pgconn.error_message.decode(errors="replace")
                    raise ConnectionLostError(f"the server ended the log: {text}")
        except psycopg.Error as error:
            raise ConnectionLostError(f"the log's connection broke: {' '.join(str(error).split())}") from error
        return messages

    def send(self, body: bytes) -> None:
        import psycopg

        try:
            self._pgconn.put_copy_data(body)
            self._pgconn.flush()
        except psycopg.Error as error:
            raise ConnectionLostError(f"the log's connection broke: {' '.join(str(error).split())}") from error

    def fileno(self) -> int:
        return int(self._pgconn.socket)

    def close(self) -> None:
        self._connection.close()
