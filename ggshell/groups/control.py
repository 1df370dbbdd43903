"""The control socket of a process: requests of SEND as JSON lines over a Unix socket that only the owner can open.

A separate thread serves the socket, so it answers even while the process's worker is busy. The thread never waits for a
client: data that cannot be sent at once stays in the client's buffer until the client reads.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import socket
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ggshell import sockets
from ggshell.clock import Clock, SystemClock
from ggshell.errors import GgsError, ProcessError
from ggshell.files import read_json

Handler = Callable[[str, dict[str, Any]], "dict[str, Any] | LaterAnswer"]
PATIENCE_SECONDS = 0.6
"""Seconds that the worker has to answer a request before it is answered without the worker."""
CHECK_SECONDS = 0.5
LONGEST_REQUEST = 1 << 20
_BLOCK = 1 << 16


class LaterAnswer:
    """An answer that a handler gives later; the worker continues in the meantime."""

    def __init__(self) -> None:
        self._post: Callable[[bytes], None] | None = None
        self._line: bytes | None = None

    def answer(self, result: dict[str, Any]) -> None:
        """Send the answer."""
        self._send(_line({"status": "ok", "result": result}))

    def refuse(self, error: GgsError) -> None:
        """Send a refusal."""
        self._send(_line(_refusal(error)))

    def bind(self, post: Callable[[bytes], None]) -> None:
        """Set the function that sends the answer; an answer that is already known is sent at once."""
        self._post = post
        if self._line is not None:
            post(self._line)

    def _send(self, line: bytes) -> None:
        self._line = line
        if self._post is not None:
            self._post(line)


class Meanwhile:
    """Answers that the control thread gives without the worker. It may read published state only, not the worker's own."""

    def patience(self, verb: str) -> float:
        """Return the seconds that the worker has to answer a request that arrives now."""
        return PATIENCE_SECONDS

    def at_once(self, verb: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """Return the answer to a request that does not need the worker, or None if it does."""
        return None

    def instead(self, verb: str, arguments: dict[str, Any], *, begun: bool) -> dict[str, Any] | None:
        """Return the answer to a request that the worker has not answered in time, or None to keep waiting for the worker.

        ``begun``: the worker is executing the request. Raises GgsError to refuse the request.
        """
        return None

    def stays(self, verb: str) -> bool:
        """Whether the worker still executes a request that was answered without it."""
        return False

    def check(self) -> None:
        """Check the process; called at least every ``LOOK_SECONDS``."""


class _Request:
    """A request for the worker."""

    __slots__ = ("answered", "arguments", "begun", "client", "due", "verb")

    def __init__(self, verb: str, arguments: dict[str, Any], client: _Client, due: float) -> None:
        self.verb = verb
        self.arguments = arguments
        self.client = client
        self.due = due
        self.begun = self.answered = False


class _Client:
    """A connection: received data, the request that the worker is answering, and data to send."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.received = bytearray()
        self.pending = bytearray()
        self.request: _Request | None = None

    def receive(self) -> bool:
        """Receive the available data; False if the client has disconnected or its request is too long."""
        try:
            data = self.connection.recv(_BLOCK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self.received += data
        return bool(data) and len(self.received) <= LONGEST_REQUEST

    def send(self) -> bool:
        """Send as much as possible without waiting; False if the client has disconnected."""
        try:
            while self.pending:
                del self.pending[: self.connection.send(self.pending)]
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True


class ControlServer:
    """Answers requests in a separate thread, even while the worker is busy.

    The worker answers a request in ``work``, between two pieces of its own work. If it has not answered within the
    ``patience`` of ``meanwhile``, then ``meanwhile`` answers. The thread never waits for a client.
    """

    def __init__(
        self, path: Path, handler: Handler, meanwhile: Meanwhile | None = None, clock: Clock | None = None
    ) -> None:
        self.path = path
        self._handler = handler
        self._meanwhile = meanwhile or Meanwhile()
        self._clock = clock or SystemClock()
        self._clients: dict[int, _Client] = {}
        self._asked: deque[_Request] = deque()
        self._answers: deque[tuple[_Request, bytes]] = deque()
        self._on_signal: Callable[[int], None] = lambda _: None
        self._closing = False
        self._accepts_at = 0.0
        """When the next client is accepted, by the steady clock; 0 unless the system has refused one."""
        sockets.remove(self.path)
        self._listener = _listen(self.path)
        self._signals, self.signal_end = _pipe()
        self._wake, self._wake_end = _pipe()
        self.asked, self._asked_end = _pipe()
        self._thread = threading.Thread(target=self._run, name="control", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> bool:
        """Whether requests are waiting for the worker."""
        return bool(self._asked)

    def on_signal(self, function: Callable[[int], None]) -> None:
        """Set the function that the thread calls with a signal's number, which Python writes to ``signal_end``."""
        self._on_signal = function

    def work(self) -> None:
        """Answer the waiting requests. The worker calls this when ``asked`` is readable."""
        _empty(self.asked)
        while self._asked:
            try:
                request = self._asked.popleft()
            except IndexError:  # it was answered in the meantime and removed
                return
            request.begun = True
            result = self._result(request)
            if isinstance(result, LaterAnswer):
                result.bind(partial(self._post, request))
            else:
                self._post(request, _line(result))

    def wake_worker(self) -> None:
        """Wake the worker."""
        with contextlib.suppress(BlockingIOError):  # the pipe is full of wake-ups
            os.write(self._asked_end, b"!")

    def close(self, *, remove: bool = True) -> None:
        """Stop the thread, close all connections and remove the socket.

        ``remove`` must be False if another home may use the socket's path by now.
        """
        self._closing = True
        self._wake_up()
        self._thread.join()
        for client in self._clients.values():
            client.connection.close()
        self._clients.clear()
        self._listener.close()
        if remove:
            sockets.remove(self.path)
        for end in (self._signals, self.signal_end, self._wake, self._wake_end, self.asked, self._asked_end):
            os.close(end)

    def _post(self, request: _Request, line: bytes) -> None:
        """Queue the worker's answer for the thread to send."""
        self._answers.append((request, line))
        self._wake_up()

    def _wake_up(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake_end, b"!")

    def _run(self) -> None:
        while not self._closing:
            try:
                self._turn()
            except Exception:  # noqa: BLE001 - an error in one request must not prevent answers to others
                sys.stderr.write(traceback.format_exc())

    def _turn(self) -> None:
        ready = self._poll()
        if self._signals in ready:
            for number in _empty(self._signals):
                self._on_signal(number)
        _empty(self._wake)
        self._take_answers()
        if self._listener.fileno() in ready:
            self._accept()
        for number in [number for number in self._clients if number in ready]:
            client = self._clients[number]
            stays = (bool(client.pending) or client.receive()) and self._go_on(client)
            if not stays:
                del self._clients[number]
                client.connection.close()
        self._answer_overdue()
        self._meanwhile.check()

    def _accept(self) -> None:
        """Take a new client; after an error of the system, for example without a free descriptor, the next ones wait."""
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, ConnectionAbortedError):  # the client has already disconnected
            return
        except OSError as error:
            if not self._accepts_at:
                sys.stderr.write(f"{self.path}: no client can connect: {error.strerror}\n")
            self._accepts_at = self._clock.steady() + CHECK_SECONDS
            return
        self._accepts_at = 0.0
        connection.setblocking(False)
        self._clients[connection.fileno()] = _Client(connection)

    def _poll(self) -> set[int]:
        """Wait for descriptors, at most until the next answer is due; clients with a request in progress are not read."""
        poll = select.poll()
        accepts = self._clock.steady() >= self._accepts_at
        for number in (*((self._listener.fileno(),) if accepts else ()), self._signals, self._wake):
            poll.register(number, select.POLLIN)
        due = []
        for number, client in self._clients.items():
            if client.request is None:
                poll.register(number, select.POLLOUT if client.pending else select.POLLIN)
            elif not client.request.answered:
                due.append(client.request.due)
        timeout = min([CHECK_SECONDS, *(moment - self._clock.steady() for moment in due)])
        return {number for number, _ in poll.poll(max(0.0, timeout) * 1000)}

    def _take_answers(self) -> None:
        while self._answers:
            request, line = self._answers.popleft()
            if not request.answered:
                self._answer(request, line)

    def _answer(self, request: _Request, line: bytes) -> None:
        request.answered = True
        client = request.client
        client.request = None
        client.pending += line
        if not self._go_on(client) and client.connection.fileno() >= 0:
            self._clients.pop(client.connection.fileno(), None)
            client.connection.close()

    def _answer_overdue(self) -> None:
        """Answer the requests that the worker has not answered in time."""
        now = self._clock.steady()
        for client in list(self._clients.values()):
            request = client.request
            if request is None or request.due > now:
                continue
            try:
                found = self._meanwhile.instead(request.verb, request.arguments, begun=request.begun)
                line = None if found is None else _line({"status": "ok", "result": found})
            except GgsError as error:
                line = _line(_refusal(error))
            if line is None:
                request.due = math.inf
                continue
            if not self._meanwhile.stays(request.verb):
                with contextlib.suppress(ValueError):  # the worker has just started it
                    self._asked.remove(request)
            self._answer(request, line)

    def _go_on(self, client: _Client) -> bool:
        """Process a client's next complete request once the previous one is answered; False if it has disconnected."""
        while client.send():
            if client.request is not None:
                return True
            line, end, rest = bytes(client.received).partition(b"\n")
            if client.pending or not end:
                return True
            client.received[:] = rest
            self._ask(client, line)
        return False

    def _ask(self, client: _Client, line: bytes) -> None:
        try:
            request = read_json(line)
            verb, arguments = str(request["verb"]), dict(request.get("args", {}))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            refusal = ProcessError(f"this is not a valid request: {type(error).__name__}: {error}")
            client.pending += _line(_refusal(refusal))
            return
        found = self._meanwhile.at_once(verb, arguments)
        if found is not None:
            client.pending += _line({"status": "ok", "result": found})
            return
        client.request = _Request(verb, arguments, client, self._clock.steady() + self._meanwhile.patience(verb))
        self._asked.append(client.request)
        self.wake_worker()

    def _result(self, request: _Request) -> dict[str, Any] | LaterAnswer:
        try:
            found = self._handler(request.verb, request.arguments)
        except GgsError as error:
            return _refusal(error)
        except Exception as error:  # noqa: BLE001 - a request must not end the process
            sys.stderr.write(traceback.format_exc())
            return _refusal(ProcessError(f"internal error: {type(error).__name__}: {error}", code="GGS-00999"))
        return found if isinstance(found, LaterAnswer) else {"status": "ok", "result": found}


def _listen(path: Path) -> socket.socket:
    """Return a listening socket that only the owner can open. Raises ProcessError."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | getattr(socket, "SOCK_CLOEXEC", 0))
    try:
        sockets.bind(listener, path)
    except OSError as error:
        listener.close()
        raise ProcessError(f"cannot listen at {path}: {error.strerror or error}") from error
    listener.listen(16)
    listener.setblocking(False)
    return listener


def _pipe() -> tuple[int, int]:
    """Return the two ends of a non-blocking pipe."""
    ends = os.pipe()
    for end in ends:
        os.set_blocking(end, False)
    return ends


def _empty(end: int) -> bytes:
    """Read what a pipe contains."""
    try:
        return os.read(end, 4096)
    except BlockingIOError:
        return b""


def _line(answer: dict[str, Any]) -> bytes:
    return json.dumps(answer, default=str).encode() + b"\n"


def _refusal(error: GgsError) -> dict[str, Any]:
    return {
        "status": "error",
        "kind": type(error).__name__,
        "code": error.code,
        "message": error.message,
        "where": error.where,
        "hint": error.hint,
    }


def wait_readable(descriptors: list[int], timeout: float | None) -> set[int]:
    """Wait until a descriptor is readable or closed, at most ``timeout`` seconds; return the ready descriptors."""
    poll = select.poll()
    for number in descriptors:
        poll.register(number, select.POLLIN)
    return {number for number, _ in poll.poll(None if timeout is None else max(0, timeout) * 1000)}
