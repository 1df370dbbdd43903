"""The replication connection's bytes: START_REPLICATION, what the server sends, and the feedback to it.

libpq logs in.  From then on the socket is read here, in blocks, since libpq's own way costs more for each row than all
that is done with the row; where the bytes are encrypted (TLS, GSSAPI) only libpq can read them, and its messages are put
together again.  Both wires fill the same inbox with the same bytes.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from ggshell.databases.postgres import session
from ggshell.databases.postgres.frames import BLOCK, COPY_DATA, Frames, Inbox
from ggshell.errors import ConnectionLostError, GgsError

_HEAD = struct.Struct(">BI")
_QUERY, _ERROR = ord("Q"), ord("E")
_COPY_BOTH, _COPY_BOTH_RESPONSE = 8, ord("W")
START_SECONDS = 30.0
DRAIN_SECONDS = 0.0003
"""A socket holds a few hundred messages, which a server sends in about twice this time."""
GSSAPI_SINCE = 120_000


def message(kind: int, body: bytes) -> bytes:
    """One protocol message."""
    return _HEAD.pack(kind, len(body) + 4) + body


class Wire(Protocol):
    """A replication connection in COPY BOTH mode."""

    def fileno(self) -> int: ...

    def receive(self, inbox: Inbox) -> bool:
        """Take what is there without waiting; whether anything was.  Raises ConnectionLostError."""
        ...

    def drained(self, inbox: Inbox) -> contextlib.AbstractContextManager[None]:
        """While the block runs, keep taking what the server sends, so that it need not wait for us."""
        ...

    def send(self, body: bytes) -> None:
        """Send a CopyData message, or leave it out when the server does not take any now.  Raises ConnectionLostError."""
        ...

    def close(self) -> None: ...


def start(connection: Any, control: Any, command: str) -> tuple[Wire, Inbox]:
    """Begin to replicate.  Raises DatabaseError when the server refuses, ConnectionLostError when it does not answer."""
    inbox = Inbox()
    wire: Wire
    if is_plain(connection, control):
        wire = SocketWire(connection)
        try:
            wire.begin(command, inbox)
        except GgsError:
            wire.close()
            raise
        return wire, inbox
    result = connection.pgconn.exec_(command.encode())
    if result.status != _COPY_BOTH:
        text = result.error_message.decode(errors="replace")
        connection.close()
        raise session.translate(Exception(text))
    return LibpqWire(connection), inbox


def is_plain(connection: Any, control: Any) -> bool:
    """Whether what goes over the socket is the protocol itself.  ``control`` is another connection of the same login."""
    pgconn = connection.pgconn
    if pgconn.host.startswith((b"/", b"@")):  # neither TLS nor GSSAPI is ever used on a Unix socket
        return True
    if pgconn.ssl_in_use:
        return False
    if connection.info.server_version < GSSAPI_SINCE:
        return True
    rows = session.execute(control, "SELECT encrypted FROM pg_stat_gssapi WHERE pid = %s", (pgconn.backend_pid,))
    return rows == [(False,)]


class SocketWire:
    """The socket itself, for connections that are not encrypted."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._socket = socket.socket(fileno=os.dup(connection.pgconn.socket))
        self._socket.setblocking(False)
        self._unsent = b""
        self._threads: ThreadPoolExecutor | None = None

    def begin(self, command: str, inbox: Inbox) -> None:
        """Send the command and read up to its answer; what comes behind that stays in the inbox."""
        self._write(message(_QUERY, command.encode() + b"\0"))
        poll = select.poll()
        poll.register(self.fileno(), select.POLLIN)
        while poll.poll(START_SECONDS * 1000):
            self.receive(inbox)
            frames = inbox.take()
            for number in frames.others:
                kind = frames.data[frames.edges[number]]
                if kind == _COPY_BOTH_RESPONSE:
                    inbox.put_back(frames.data[frames.edges[number + 1] :])
                    return
                if kind == _ERROR:
                    raise session.translate(refusal(frames.body(number)))
        raise ConnectionLostError(f"the server did not begin to send its log within {START_SECONDS:.0f} s")

    def fileno(self) -> int:
        return self._socket.fileno()

    def receive(self, inbox: Inbox) -> bool:
        with inbox.room() as room:
            try:
                count = self._socket.recv_into(room)
            except BlockingIOError:
                return False
            except OSError as error:
                raise ConnectionLostError(f"the log's connection broke: {error.strerror}") from error
        if not count:
            raise ConnectionLostError("the server closed the log's connection")
        inbox.received(count)
        return True

    @contextlib.contextmanager
    def drained(self, inbox: Inbox) -> Iterator[None]:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(1, thread_name_prefix="log")
        done = threading.Event()
        blocks = self._threads.submit(self._drain, done)
        try:
            yield
        finally:
            done.set()
            for block in blocks.result():
                inbox.put(block)

    def _drain(self, done: threading.Event) -> list[bytes]:
        """What comes until ``done``; an error is left for the next ``receive`` to find."""
        blocks: list[bytes] = []
        while not done.is_set():
            with contextlib.suppress(OSError):
                data = self._socket.recv(BLOCK)
                if not data:
                    break
                blocks.append(data)
            select.select((), (), (), DRAIN_SECONDS)  # a socket that is empty wakes us for every message
        return blocks

    def send(self, body: bytes) -> None:
        if self._unsent:  # half a message stands on the wire: it must be finished first
            self._write(b"")
        if not self._unsent:
            self._write(message(COPY_DATA, body))

    def _write(self, data: bytes) -> None:
        self._unsent += data
        try:
            while self._unsent:
                self._unsent = self._unsent[self._socket.send(self._unsent) :]
        except BlockingIOError:
            return
        except OSError as error:
            raise ConnectionLostError(f"the log's connection broke: {error.strerror}") from error

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown()
        self._socket.close()
        self._connection.close()


class LibpqWire:
    """Through libpq, message by message."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._pgconn = connection.pgconn

    def fileno(self) -> int:
        return int(self._pgconn.socket)

    def receive(self, inbox: Inbox) -> bool:
        with _lost():
            self._pgconn.consume_input()
            return self._drain(inbox)

    def _drain(self, inbox: Inbox) -> bool:
        """Take the messages that libpq holds: all of them, since its socket would not tell of any left behind."""
        get, any_came = self._pgconn.get_copy_data, False
        while True:
            count, data = get(1)
            if count == 0:
                return any_came
            if count < 0:
                text = self._pgconn.error_message.decode(errors="replace")
                raise ConnectionLostError(f"the server ended the log: {text}")
            inbox.put(message(COPY_DATA, bytes(data)))
            any_came = True

    def drained(self, inbox: Inbox) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def send(self, body: bytes) -> None:
        with _lost():
            self._pgconn.put_copy_data(body)
            self._pgconn.flush()

    def close(self) -> None:
        self._connection.close()


@contextlib.contextmanager
def _lost() -> Any:
    """A driver's error while replicating is a lost connection."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        raise ConnectionLostError(f"the log's connection broke: {' '.join(str(error).split())}") from error


def refusal(body: bytes) -> Exception:
    """The server's ErrorResponse as the driver would raise it: fields of one letter and a text."""
    import psycopg

    fields = {part[:1]: part[1:].decode(errors="replace") for part in body.split(b"\0") if part}
    try:
        kind: type[Exception] = psycopg.errors.lookup(fields.get(b"C", ""))
    except KeyError:
        kind = psycopg.DatabaseError
    return kind(fields.get(b"M", "the server gave no reason"))


def ended(frames: Frames, number: int) -> ConnectionLostError | None:
    """Why the log ended, when a message that is no CopyData says that it did; None for notices and the like."""
    kind = frames.data[frames.edges[number]]
    if kind == _ERROR:
        return ConnectionLostError(f"the server ended the log: {refusal(frames.body(number))}")
    if kind in b"cCZ":  # CopyDone, CommandComplete, ReadyForQuery
        return ConnectionLostError("the server ended the log")
    return None
