"""Moves the rows of COPY from one server to another.

Both servers use the same message for a row (CopyData), so on two plain connections the source's bytes go to the target
unchanged, in blocks, and memory does not depend on the width of a row. An encrypted connection can only be read by libpq,
which holds at least one whole row.
"""

from __future__ import annotations

import os
import select
import socket
import struct
from collections.abc import Callable, Iterator
from typing import Any, Final

from ggshell.connectors.postgres import session
from ggshell.connectors.postgres.protocol import HEAD, is_plain, message, refusal
from ggshell.errors import ConnectionLostError, GgsError

BLOCK: Final = 256 << 10
PUT_BYTES: Final = 128 << 10
"""How many bytes of rows are sent in one message through libpq."""
_DATA, _COPY_DONE, _COMPLETE, _READY, _ERROR = b"dcCZE"
_OUT, _IN = ord("H"), ord("G")
_DATA_HEAD: Final = struct.Struct(">BI")
_COPY_IN, _COPY_OUT, _COMMAND_OK = 4, 3, 1
GATHER_MILLISECONDS: Final = 1
"""A server sends about 60 kB in this time, and a socket holds 200."""

Tick = Callable[[int], None]
"""Called with the bytes that were moved since the last call."""


class Watch:
    """Waits for the two servers, and for the process that started the copy: if that ends, the copy ends as well."""

    def __init__(self, control: int) -> None:
        self._control = control

    def gather(self) -> None:
        """Let a server send more, so that fewer and larger blocks are moved: each one wakes up three processes."""
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.poll(GATHER_MILLISECONDS)

    def wait(self, readable: tuple[int, ...], writable: tuple[int, ...] = ()) -> set[int]:
        """Wait until one of the descriptors is ready; return the ready ones. Raises EOFError if the process has ended."""
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        for each in {*readable, *writable}:
            wanted = (select.POLLIN if each in readable else 0) | (select.POLLOUT if each in writable else 0)
            poll.register(each, wanted)
        found = {number for number, _ in poll.poll()}
        if self._control in found:
            raise EOFError("the process that started the copy has ended")
        return found


def pump(source: Any, target: Any, reading: str, writing: str, watch: Watch, tick: Tick) -> int:
    """Copy what ``reading`` (COPY TO STDOUT) sends to ``writing`` (COPY FROM STDIN); return the number of rows.

    Raises DatabaseError and ConnectionLostError; then both connections must be closed.
    """
    if is_plain(source, source) and is_plain(target, target):
        with _End(source, watch, "source") as out, _End(target, watch, "target") as into:
            return _forward(out, into, reading, writing, watch, tick)
    return _through_libpq(source.pgconn, target.pgconn, reading, writing, watch, tick)


class _End:
    """One server's socket, read and written directly while its COPY runs."""

    def __init__(self, connection: Any, watch: Watch, name: str) -> None:
        self._socket = socket.socket(fileno=os.dup(connection.pgconn.socket))
        self._socket.setblocking(False)
        self._watch = watch
        self._name = name
        self.buffer = bytearray(BLOCK)
        self.filled = 0
        """How many bytes at the beginning of ``buffer`` have been received and not used."""

    def __enter__(self) -> _End:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def fileno(self) -> int:
        return self._socket.fileno()

    def receive(self) -> bool:
        """Fill the buffer with what has arrived; False if nothing has. Raises ConnectionLostError."""
        try:
            count = self._socket.recv_into(memoryview(self.buffer)[self.filled :])
        except BlockingIOError:
            return False
        except OSError as error:
            raise ConnectionLostError(f"the connection to the {self._name} was lost: {error.strerror}") from error
        if not count:
            raise ConnectionLostError(f"the {self._name} closed the connection")
        self.filled += count
        return True

    def used(self, count: int) -> None:
        """Remove bytes from the beginning of the buffer."""
        self.buffer[: self.filled - count] = self.buffer[count : self.filled]
        self.filled -= count

    def whole_message(self) -> tuple[int, bytes] | None:
        """Take the first message of the buffer: its kind and its body. None if it is not complete."""
        if self.filled < HEAD:
            return None
        kind, length = _DATA_HEAD.unpack_from(self.buffer)
        if length + 1 > len(self.buffer):
            self.buffer += bytes(length + 1 - len(self.buffer))
        if self.filled <= length:
            return None
        body = bytes(self.buffer[HEAD : length + 1])
        self.used(length + 1)
        return kind, body

    def expect(self, wanted: int) -> bytes:
        """Wait for a message of a kind and return its body; notices are skipped. Raises the server's error."""
        while True:
            found = self.whole_message()
            if found is None:
                if not self.receive():
                    self._watch.wait((self.fileno(),))
            elif found[0] == wanted:
                return found[1]
            elif found[0] == _ERROR:
                raise session.translate(refusal(found[1]))

    def begin(self, statement: str, wanted: int) -> None:
        self.send(memoryview(message(ord("Q"), statement.encode() + b"\0")))
        self.expect(wanted)

    def send(self, data: memoryview) -> None:
        """Send all of it. An error that the server reports meanwhile is raised."""
        while data:
            try:
                data = data[self._socket.send(data) :]
            except BlockingIOError:
                if self.fileno() in self._watch.wait((self.fileno(),), (self.fileno(),)):
                    self.reported()
            except OSError as error:
                self.reported()
                raise ConnectionLostError(f"the connection to the {self._name} was lost: {error.strerror}") from error

    def reported(self) -> None:
        """Raise the error that the server has sent during a COPY, if there is one."""
        self.receive()
        while (found := self.whole_message()) is not None:
            if found[0] == _ERROR:
                raise session.translate(refusal(found[1]))

    def ended(self) -> int:
        """The end of a COPY: the number of its rows."""
        rows = int(self.expect(_COMPLETE).rstrip(b"\0").split()[-1])
        self.expect(_READY)
        return rows


def _forward(out: _End, into: _End, reading: str, writing: str, watch: Watch, tick: Tick) -> int:
    into.begin(writing, _IN)
    out.begin(reading, _OUT)
    left = 0
    while True:
        end, left = _data(out.buffer, out.filled, left)
        if end:
            into.send(memoryview(out.buffer)[:end])
            out.used(end)
            tick(end)
        if not left and out.filled >= HEAD and out.buffer[0] != _DATA:
            found = out.whole_message()
            if found is not None and found[0] == _ERROR:
                raise session.translate(refusal(found[1]))
            if found is not None and found[0] == _COPY_DONE:
                break
            if found is not None:
                continue
        if not out.receive():
            watch.wait((out.fileno(),))
            watch.gather()
    into.send(memoryview(message(_COPY_DONE, b"")))
    out.ended()
    return into.ended()


def _data(buffer: bytearray, filled: int, left: int) -> tuple[int, int]:
    """How many bytes at the beginning of the buffer are rows, and how many bytes of the last row are still to come.

    ``left``: how many bytes of a row were still to come before.
    """
    place, unpack = left, _DATA_HEAD.unpack_from
    while place + HEAD <= filled:
        kind, length = unpack(buffer, place)
        if kind != _DATA:
            return place, 0
        place += length + 1
    return (place, 0) if place <= filled else (filled, place - filled)


def _through_libpq(source: Any, target: Any, reading: str, writing: str, watch: Watch, tick: Tick) -> int:
    import psycopg

    try:
        _ask(target, writing, _COPY_IN, watch)
        _ask(source, reading, _COPY_OUT, watch)
        for data in _blocks(source, watch):
            _put(target, data, watch)
            tick(len(data))
        target.put_copy_end()
        _sent(target, watch)
        _result(source, _COMMAND_OK, watch)
        rows = _result(target, _COMMAND_OK, watch).command_tuples or 0
        for each in (source, target):
            while each.get_result() is not None:
                continue
    except psycopg.Error as error:
        raise _reason(target) or session.translate(error) from error
    return int(rows)


def _ask(pgconn: Any, statement: str, wanted: int, watch: Watch) -> None:
    pgconn.send_query(statement.encode())
    _sent(pgconn, watch)
    _result(pgconn, wanted, watch)


def _result(pgconn: Any, wanted: int, watch: Watch) -> Any:
    while pgconn.is_busy():
        watch.wait((pgconn.socket,))
        pgconn.consume_input()
    found = pgconn.get_result()
    if found is None:
        raise ConnectionLostError("the database is not responding")
    if found.status != wanted:
        raise session.refused(found)
    return found


def _reason(target: Any) -> GgsError | None:
    """Why the target has ended a COPY, if it has reported the reason."""
    found = target.get_result() if target.status == 0 else None
    return session.refused(found) if found is not None and found.error_field(ord("C")) else None


def _blocks(source: Any, watch: Watch) -> Iterator[memoryview]:
    """What the source sends: many short rows together, or parts of a long one."""
    parts: list[Any] = []
    size, get = 0, source.get_copy_data
    while True:
        count, data = get(1)
        if count > 0:
            parts.append(data)
            size += count
        if parts and (size >= PUT_BYTES or count <= 0):
            block = memoryview(parts[0] if len(parts) == 1 else b"".join(parts))
            parts, size = [], 0
            for start in range(0, len(block), BLOCK):
                yield block[start : start + BLOCK]
        if count < 0:
            return
        if not count:
            watch.wait((source.socket,))
            source.consume_input()


def _put(target: Any, data: memoryview, watch: Watch) -> None:
    target.put_copy_data(data)
    _sent(target, watch)


def _sent(pgconn: Any, watch: Watch) -> None:
    """Wait until everything is sent. What the server sends meanwhile is read, or both would wait for each other."""
    while pgconn.flush():
        watch.wait((pgconn.socket,), (pgconn.socket,))
        pgconn.consume_input()
