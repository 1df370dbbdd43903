"""The HTTP connections of the service: how many there are, how long they may send nothing, and whose certificate they show."""

from __future__ import annotations

import asyncio
import resource
import ssl
import sys
from collections.abc import Callable
from typing import Any, ClassVar, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS: Final = 30.0
MOST_DESCRIPTORS: Final = 65_536
OWN_DESCRIPTORS: Final = 256
"""How many descriptors connections leave to the service itself: its log files, databases and groups."""
COMPLAINT_SECONDS: Final = 60.0
_NO_DESCRIPTOR: Final = "out of system resource"


class CertifiedProtocol(H11Protocol):
    """HTTP/1.1 that remembers the common name of each connection's client certificate.

    It closes a connection that does not send the header of a request in time, and one beyond ``most`` immediately.
    ``invalid`` is called with the address of a client that sends something else than HTTP.
    """

    names: ClassVar[dict[tuple[str, int], str]] = {}
    most: ClassVar[int] = MOST_DESCRIPTORS
    header_seconds: ClassVar[float] = HEADER_SECONDS
    invalid: ClassVar[Callable[[str], None]] = staticmethod(lambda _: None)
    _header_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
        peer = tls.getpeercert() if tls is not None else None
        if self.client is not None:
            self.names.pop(self.client, None)  # a connection that became a WebSocket leaves its name
            if peer:
                self.names[self.client] = _common_name(peer)
        self._watch_header()
        if len(self.connections) > self.most:
            transport.close()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_header()

    def send_400_response(self, msg: str) -> None:
        type(self).invalid(self.client[0] if self.client is not None else "local")
        super().send_400_response(msg)

    def connection_lost(self, exc: Exception | None) -> None:
        self._unwatch_header()
        if self.client is not None:
            self.names.pop(self.client, None)
        super().connection_lost(exc)

    def _watch_header(self) -> None:
        """Start the time limit unless it runs, and end it when the header is complete."""
        if self.conn.their_state is not h11.IDLE:
            self._unwatch_header()
        elif self._header_timer is None:
            self._header_timer = self.loop.call_later(self.header_seconds, self.timeout_keep_alive_handler)

    def _unwatch_header(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None


def _common_name(peer: Any) -> str:
    parts = [pair for part in peer.get("subject", ()) for pair in part]
    return next((value for key, value in parts if key == "commonName"), "")


def most_connections() -> int:
    """Return how many connections the service accepts, after it raised its limit of descriptors as far as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        soft = min(hard, MOST_DESCRIPTORS)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(soft // 2, soft - OWN_DESCRIPTORS)


class Complaints:
    """The loop's handler of exceptions: that no descriptor is free is written to standard error at most once a minute."""

    def __init__(self) -> None:
        self._next = float("-inf")

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if _NO_DESCRIPTOR not in str(context.get("message", "")):
            loop.default_exception_handler(context)
        elif loop.time() >= self._next:
            self._next = loop.time() + COMPLAINT_SECONDS
            sys.stderr.write(f"connections are not accepted now: {context.get('exception')}\n")
            sys.stderr.flush()
