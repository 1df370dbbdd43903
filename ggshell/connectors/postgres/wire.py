"""The bytes of the replication connection: START_REPLICATION, what the server sends, and the feedback to the server.

libpq logs in. After that the socket is read here, in blocks, because reading through libpq costs more per row than all
other work on the row. When the connection is encrypted (TLS, GSSAPI), only libpq can read it, and its messages are put
back into protocol form. Both kinds of wire fill the same inbox with the same bytes.
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
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from ggshell.connectors.postgres import pgoutput, session
from ggshell.connectors.postgres.protocol import HEAD, is_plain, message, refusal
from ggshell.errors import ConnectionLostError, GgsError, LogRefusedError

_HEAD = struct.Struct(">BI")
_QUERY, _ERROR = ord("Q"), ord("E")
_COPY_BOTH, _COPY_BOTH_RESPONSE = 8, ord("W")
_END = -1
"""What libpq returns after the server has ended the copy."""
_AWAY = ("08", "53", "57")
"""SQLSTATE classes of a server that stops, is out of resources, or ends a session. A retry may succeed."""
START_SECONDS = 30.0
DRAIN_SECONDS = 0.0003
"""A socket holds a few hundred messages; a server sends that many in about twice this time."""


class ReplicationWire(Protocol):
    """A replication connection in COPY BOTH mode."""

    def fileno(self) -> int: ...

    def receive(self, inbox: Inbox) -> bool:
        """Take what has arrived, without waiting. Return whether anything was read. Raises ConnectionLostError."""
        ...

    def drained(self, inbox: Inbox) -> contextlib.AbstractContextManager[None]:
        """While the block runs, keep receiving what the server sends, so that the server does not have to wait."""
        ...

    def send(self, body: bytes) -> None:
        """Send a CopyData message, or drop it if the server accepts no data now. Raises ConnectionLostError."""
        ...

    def close(self) -> None: ...


def start(connection: Any, control: Any, command: str) -> tuple[ReplicationWire, Inbox]:
    """Start replication. Raises DatabaseError when the server refuses, ConnectionLostError when it does not answer."""
    inbox = Inbox()
    wire: ReplicationWire
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
        connection.close()
        raise session.refused(result)
    return LibpqWire(connection), inbox


class SocketWire:
    """Reads the socket directly, for connections that are not encrypted."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._socket = socket.socket(fileno=os.dup(connection.pgconn.socket))
        self._socket.setblocking(False)
        self._unsent = b""
        self._threads: ThreadPoolExecutor | None = None

    def begin(self, command: str, inbox: Inbox) -> None:
        """Send the command and read its response. Data after the response stays in the inbox."""
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
        raise ConnectionLostError(f"the server did not start sending its log within {START_SECONDS:.0f} s")

    def fileno(self) -> int:
        return self._socket.fileno()

    def receive(self, inbox: Inbox) -> bool:
        with inbox.room() as room:
            try:
                count = self._socket.recv_into(room)
            except BlockingIOError:
                return False
            except OSError as error:
                raise ConnectionLostError(f"the connection to the log was lost: {error.strerror}") from error
        if not count:
            raise ConnectionLostError("the server closed the connection to the log")
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
        """Read what arrives until ``done`` is set. The next ``receive`` reports any error."""
        blocks: list[bytes] = []
        while not done.is_set():
            with contextlib.suppress(OSError):
                data = self._socket.recv(BLOCK)
                if not data:
                    break
                blocks.append(data)
            done.wait(DRAIN_SECONDS)  # a wait on the socket would return for every message
        return blocks

    def send(self, body: bytes) -> None:
        if self._unsent:  # part of a message has been sent: it must be completed first
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
            raise ConnectionLostError(f"the connection to the log was lost: {error.strerror}") from error

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown()
        self._socket.close()
        self._connection.close()


class LibpqWire:
    """Reads through libpq, message by message."""

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
        """Take all messages that libpq holds. Its socket would not become readable for messages left inside libpq."""
        get, any_came = self._pgconn.get_copy_data, False
        while True:
            count, data = get(1)
            if count == 0:
                return any_came
            if count < 0:
                raise self._end(count)
            inbox.put(message(COPY_DATA, bytes(data)))
            any_came = True

    def _end(self, count: int) -> ConnectionLostError:
        result = self._pgconn.get_result() if count == _END else None
        state = (result.error_field(ord("C")) or b"").decode() if result is not None else ""
        return end_of_log(" ".join(self._pgconn.error_message.decode(errors="replace").split()), state)

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
    """Raise a driver's error during replication as a lost connection."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        raise ConnectionLostError(f"the connection to the log was lost: {' '.join(str(error).split())}") from error


def ended(frames: Frames, number: int) -> ConnectionLostError | None:
    """The reason why the log ended, if the message says that it did. None for notices and the like."""
    kind = frames.data[frames.edges[number]]
    if kind == _ERROR:
        error = refusal(frames.body(number))
        return end_of_log(str(error), getattr(error, "sqlstate", None) or "")
    if kind in b"cCZ":  # CopyDone, CommandComplete, ReadyForQuery
        return ConnectionLostError("the server ended the log stream")
    return None


def end_of_log(reason: str, state: str) -> ConnectionLostError:
    """The error for the end of the log.

    By the SQLSTATE, either the server is not available, or it cannot decode the next record.
    """
    kind = LogRefusedError if state and not state.startswith(_AWAY) else ConnectionLostError
    return kind(f"the server ended the log stream: {reason}")


# The bytes of the replication connection, split into whole protocol messages, a block at a time. No I/O.
#
# A protocol message is a type byte, a length of 4 bytes that includes itself, and a body. Log data arrive as CopyData
# (``d``) whose body begins with ``w``. The payload, which begins with the kind of change, is at ``PAYLOAD`` in the
# body.


BLOCK: Final = 256 << 10
COPY_DATA: Final = ord("d")

_OPENING = struct.Struct(f">BIB{pgoutput.PAYLOAD - 1}xB")
_SMALLEST_LENGTH = 4
FEW_BYTES = 4096
"""Up to this many bytes are split message by message."""
_ZERO = np.zeros(1, dtype=np.int64)
_IS_ROW = np.zeros(256, dtype=bool)
_IS_ROW[list(pgoutput.ROWS)] = True


class Frames(NamedTuple):
    """Whole messages: number n is ``data[edges[n]:edges[n + 1]]``, with its head. ``others`` are not rows."""

    data: bytes
    edges: list[int]
    others: list[int]

    def body(self, number: int) -> bytes:
        """A message without its head."""
        return self.data[self.edges[number] + HEAD : self.edges[number + 1]]


NO_FRAMES: Final = Frames(b"", [0], [])


class Inbox:
    """Data that were received and not taken yet. A message that is not complete stays here."""

    def __init__(self) -> None:
        self._buffer = bytearray(BLOCK + _OPENING.size)
        self._filled = 0
        self.fresh = False
        """Whether data have arrived since the last ``take``."""

    @property
    def full(self) -> bool:
        """Whether a whole block has been received and should be taken before more is received."""
        return self._filled >= BLOCK

    def room(self) -> memoryview:
        """The memory for the next bytes. The buffer grows for a message longer than a block."""
        capacity = len(self._buffer) - _OPENING.size
        if self._filled == capacity:
            self._buffer += bytes(capacity)
        return memoryview(self._buffer)[self._filled : len(self._buffer) - _OPENING.size]

    def received(self, count: int) -> None:
        """Record that ``count`` bytes were written to the room."""
        self._filled += count
        self.fresh = True

    def put(self, data: bytes) -> None:
        """Add bytes that were received elsewhere."""
        while data:
            with self.room() as room:
                count = min(len(data), len(room))
                room[:count] = data[:count]
            self.received(count)
            data = data[count:]

    def put_back(self, data: bytes) -> None:
        """Put back whole messages that were taken. They go before the incomplete message in the buffer."""
        rest = bytes(self._buffer[: self._filled])
        self._filled = 0
        self.put(data + rest)

    def take(self) -> Frames:
        """Take the whole messages. Raises ConnectionLostError when the bytes are not valid messages."""
        self.fresh = False
        if self._filled < self._needed():
            return NO_FRAMES
        edges, others = self._walk()
        place = edges[-1]
        if not place:
            return NO_FRAMES
        with memoryview(self._buffer) as view:
            data = bytes(view[:place])
        rest = self._filled - place
        if len(self._buffer) > BLOCK + _OPENING.size and rest <= BLOCK:
            kept = self._buffer[place : self._filled]
            self._buffer = bytearray(BLOCK + _OPENING.size)
            self._buffer[:rest] = kept
        else:
            self._buffer[:rest] = self._buffer[place : self._filled]
        self._filled = rest
        return Frames(data, edges, others)

    def _needed(self) -> int:
        """The number of bytes that complete the first message, so that a long message is searched only once."""
        if self._filled < HEAD:
            return HEAD
        return 1 + int.from_bytes(self._buffer[1:HEAD], "big")

    def _walk(self) -> tuple[list[int], list[int]]:
        """The edges of the whole messages, and the numbers of those that are not rows."""
        edges: list[int] = [0]
        others: list[int] = []
        if self._filled > FEW_BYTES:
            with memoryview(self._buffer) as view:
                edges, others = _leap(view, self._filled)
        _step(self._buffer, self._filled, edges, others)
        return edges, others


def _leap(view: memoryview, end: int) -> tuple[list[int], list[int]]:
    """Find all log data up to the first message of another kind.

    A byte that looks like the start of a message is one as long as each message is followed by the next.
    """
    raw = np.frombuffer(view, dtype=np.uint8)
    place = np.flatnonzero(raw[: end - HEAD] == COPY_DATA)
    place = place[raw[place + HEAD] == pgoutput.XLOG_DATA]
    after = place + 1 + np.ndarray((len(raw) - 4,), ">u4", view, strides=(1,))[place + 1]
    edges = np.concatenate((_ZERO, after))
    wrong = np.flatnonzero((place != edges[:-1]) | (after > end))
    whole = int(wrong[0]) if len(wrong) else len(place)
    others = np.flatnonzero(~_IS_ROW[raw[place[:whole] + HEAD + pgoutput.PAYLOAD]])
    return edges[: whole + 1].tolist(), others.tolist()


def _step(buffer: bytearray, end: int, edges: list[int], others: list[int]) -> None:
    """Split the rest message by message, in a minimal loop for speed. The buffer is longer than the received data."""
    place = edges[-1]
    unpack, add, data, log, rows = _OPENING.unpack_from, edges.append, COPY_DATA, pgoutput.XLOG_DATA, pgoutput.ROWS
    while place + HEAD <= end:
        code, length, form, kind = unpack(buffer, place)
        if length < _SMALLEST_LENGTH:
            raise ConnectionLostError(f"the connection to the log returned a message of invalid length {length}")
        place += 1 + length
        if place > end:
            break
        if kind not in rows or form != log or code != data:
            others.append(len(edges) - 1)
        add(place)
