"""A proxy before an object store that knows HTTP: it refuses, delays, tears or loses the requests that a test names."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Fault(StrEnum):
    """What happens to a request."""

    NONE = "none"
    UNAVAILABLE = "the store answers 503 and does nothing"
    CLOSED = "the connection is closed before the store has the request"
    TORN = "the connection is closed in the middle of the body"
    LOST = "the store carries out the request, and its answer is lost"
    SILENT = "the store has the request and never answers"


class Request(NamedTuple):
    """A request since ``reset``: its number, its method and its path; ``writes``: how many requests before it write."""

    number: int
    method: str
    path: str
    writes: int

    @property
    def is_write(self) -> bool:
        """Whether the request creates or deletes an object; a part of an upload does not."""
        begins = self.path.endswith("uploads") or "partNumber=" in self.path
        return self.method in ("PUT", "POST", "DELETE") and not begins


SILENCE_SECONDS = 60
"""A client should have noticed a silent store after this time."""
Plan = Callable[[Request], Fault]


class StoreProxy:
    """The proxy. ``plan`` decides what happens to each request; ``seen`` has all requests since ``reset``.

    ``unnoticed``: the requests that were still without an answer after SILENCE_SECONDS.
    """

    def __init__(self, server: int) -> None:
        """``server``: the port of the store on this machine."""
        self.seen: list[Request] = []
        self.faults = self.unnoticed = 0
        self._writes = 0
        self._plan: Plan = healthy
        self._server = server
        self._lock = threading.Lock()
        self._silence = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def reset(self, plan: Plan | None = None) -> None:
        """Count from 0, with another plan; none: no faults."""
        with self._lock:
            self.seen, self.faults, self._writes, self._plan = [], 0, 0, plan or healthy
            self._silence.set()
            self._silence = threading.Event()

    @contextmanager
    def running(self) -> Iterator[StoreProxy]:
        thread = threading.Thread(target=self._http.serve_forever, name="store-proxy", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._silence.set()
            self._http.shutdown()
            self._http.server_close()
            thread.join()

    def chosen(self, method: str, path: str) -> Fault:
        """What happens to the next request."""
        with self._lock:
            request = Request(len(self.seen), method, path, self._writes)
            self.seen.append(request)
            self._writes += request.is_write
            fault = self._plan(request)
            self.faults += fault is not Fault.NONE
            silence = self._silence
        if fault is Fault.SILENT and not silence.wait(SILENCE_SECONDS):
            self.unnoticed += 1
        return fault

    def carry(self, handler: BaseHTTPRequestHandler, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        """Send a request to the store and return its answer."""
        connection = HTTPConnection("127.0.0.1", self._server, timeout=60)
        try:
            connection.request(handler.command, handler.path, body, dict(_headers(handler, body)))
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()

    def tear(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        """Send half of a request's body to the store, and close the connection."""
        connection = HTTPConnection("127.0.0.1", self._server, timeout=60)
        connection.putrequest(handler.command, handler.path, skip_host=True, skip_accept_encoding=True)
        for name, value in _headers(handler, body):
            connection.putheader(name, value)
        connection.endheaders(body[: len(body) // 2])
        connection.close()


def healthy(_: Request) -> Fault:
    """A plan without faults."""
    return Fault.NONE


def from_request(number: int, fault: Fault) -> Plan:
    """A plan: the fault at one request and at all later ones."""
    return lambda request: fault if request.number >= number else Fault.NONE


def at_write(number: int, fault: Fault) -> Plan:
    """A plan: the fault at one of the requests that create or delete an object."""
    return lambda request: fault if request.is_write and request.writes == number else Fault.NONE


def _headers(handler: BaseHTTPRequestHandler, body: bytes) -> list[tuple[str, str]]:
    """The headers of a request whose body is not in chunks."""
    kept = [each for each in handler.headers.items() if each[0].lower() not in ("content-length", "transfer-encoding")]
    return [*kept, ("Content-Length", str(len(body)))]


def _body(handler: BaseHTTPRequestHandler) -> bytes:
    if handler.headers.get("Transfer-Encoding", "").lower() != "chunked":
        return handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
    parts = []
    while size := int(handler.rfile.readline().partition(b";")[0], 16):
        parts.append(handler.rfile.read(size))
        handler.rfile.readline()
    while handler.rfile.readline().strip():
        """Trailers are not needed."""
    return b"".join(parts)


def _handler(proxy: StoreProxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def carried(self) -> None:
            body = _body(self)
            fault = proxy.chosen(self.command, self.path)
            if fault is Fault.UNAVAILABLE:
                self.answered(503, [], b"")
            elif fault is Fault.TORN and body:
                proxy.tear(self, body)
            elif fault in (Fault.NONE, Fault.LOST):
                status, headers, data = proxy.carry(self, body)
                if fault is Fault.NONE:
                    self.answered(status, headers, data)
                    return
            self.close_connection = True

        def answered(self, status: int, headers: list[tuple[str, str]], data: bytes) -> None:
            self.send_response(status)
            known = {name.lower(): value for name, value in headers}
            for name, value in headers:
                if name.lower() not in ("connection", "content-length", "date", "server", "transfer-encoding"):
                    self.send_header(name, value)
            # The answer to HEAD has the length of the object, and no body.
            self.send_header("Content-Length", known.get("content-length", str(len(data))))
            with suppress(ConnectionError):  # The client may have stopped waiting.
                self.end_headers()
                self.wfile.write(data)

        def log_request(self, *_: object) -> None:
            """Requests are in ``seen``."""

    for method in ("GET", "HEAD", "PUT", "POST", "DELETE"):
        setattr(Handler, f"do_{method}", Handler.carried)
    return Handler
