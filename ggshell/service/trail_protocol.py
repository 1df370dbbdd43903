"""The WebSocket connections of the service: what a client that has not signed in, or never reads, can make it keep."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.http11 import Request
from websockets.protocol import State

from ggshell.network.frames import LONGEST_FRAME
from ggshell.network.opening import LONGEST_OPENING
from ggshell.service.binary_messages import BinaryMessages
from ggshell.trail.blocks import Data

if TYPE_CHECKING:
    from uvicorn._types import ASGISendEvent

CONNECTION: Final = "connection"
"""The key in the scope's state of the connection itself, for what ASGI has no message for."""
MOST_PARTS: Final = 1024
"""How many parts a message may have: parts without data would otherwise be kept without limit."""
_AWAITED: Final = 512 << 10
"""How many bytes of a long message are received at once. Linux holds at least as many for a connection."""
_READ_AHEAD: Final = 32 << 10
"""How many bytes of a message TLS may have taken from the socket without passing them on: less than two of its records."""
MOST_UNREAD: Final = 1 << 20
"""How many bytes of answers a client may leave unread."""
UNREAD_MILLISECONDS: Final = 30_000
"""How long a client may acknowledge nothing of what TCP sends to it."""


class TrailProtocol(WebSocketsSansIOProtocol, asyncio.BufferedProtocol):
    """A WebSocket whose messages are as short as an opening, until the application knows the sender and sets another limit."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._binary = BinaryMessages(self._accepts)
        self._take: Callable[[Data], None] | None = None
        self._newest: bytes | None = None
        self.conn.max_message_size = LONGEST_OPENING
        self._awaited = 1
        stream = self._stream = transport.get_extra_info("socket")
        with contextlib.suppress(OSError):  # a connection that has ended already
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_MILLISECONDS)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._binary.room()

    def buffer_updated(self, nbytes: int) -> None:
        for is_message, data in self._binary.arrived(nbytes):
            if is_message:
                whole: Any = [data]
                self.curr_msg_data_type, self.frames = "bytes", whole
                self.send_receive_event_to_app()
            else:
                self.data_received(bytes(data))
        self._await_most()

    def _await_most(self) -> None:
        """Be woken for the rest of a long message, not for every packet of it: waking costs more than receiving."""
        awaited = max(1, min(self._binary.missing - _READ_AHEAD, _AWAITED))
        if awaited != self._awaited:
            self._awaited = awaited
            with contextlib.suppress(OSError):  # a connection that has ended already
                self._stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, awaited)

    def _accepts(self, length: int) -> bool:
        """Whether a binary message of this length may begin: no other one is incomplete, and it is not too long."""
        most = self.conn.max_message_size
        return self.conn.state is State.OPEN and self.conn.current_size is None and most is not None and length <= most

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if self.response.status_code == 101:
            self.scope["state"][CONNECTION] = self

    def handle_cont(self, event: Frame) -> None:
        if len(self.frames) >= MOST_PARTS:
            self.conn.fail(1009, f"a message has more than {MOST_PARTS} parts")
            self.handle_parser_exception()
            return
        super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        """Pass a message on. A text that is not UTF-8 ends the connection; the base class would also print a traceback."""
        if self._take is not None and self.curr_msg_data_type == "bytes" and not self.close_sent:
            whole, self.frames = self.frames, []
            self._take(memoryview(whole[0] if len(whole) == 1 else b"".join(whole)))
            return
        if self.curr_msg_data_type == "text":
            try:
                b"".join(self.frames).decode()
            except UnicodeDecodeError:
                self.conn.fail(1007, "a text is not in UTF-8")
                self.handle_parser_exception()
                return
        super().send_receive_event_to_app()

    def handle_ping(self) -> None:
        """Answer, unless the client reads no answers."""
        if self.transport.get_write_buffer_size() > MOST_UNREAD:
            self.transport.abort()
            return
        super().handle_ping()

    async def send(self, message: ASGISendEvent) -> None:
        """Send a message of the application. A refusal completes the handshake; the base class would complain about it."""
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            self.handshake_complete = True

    def keepalive_timeout(self) -> None:
        """End the connection at once: closing would first wait until the client, which does not answer, has read."""
        super().keepalive_timeout()
        self.transport.abort()

    def abort(self) -> None:
        """End the connection at once, as a cut line does."""
        self.transport.abort()

    def allow(self, longest: int) -> None:
        """Accept messages of this many bytes; until then only an opening is short enough."""
        self.conn.max_message_size = min(longest, LONGEST_FRAME)

    def take_directly(self, take: Callable[[Data], None] | None) -> None:
        """From now on, pass binary messages to a function instead of to the application's queue; None: to the queue."""
        self._take = take

    def send_newest(self, message: bytes) -> None:
        """Send a binary message at once. While the client does not read, only the newest one of them is kept."""
        if self.close_sent or self.disconnected or self.conn.state is not State.OPEN:
            return
        if not self.writable.is_set():
            self._newest = message
            return
        self.conn.send_binary(message)
        self.transport.write(b"".join(self.conn.data_to_send()))

    def resume_writing(self) -> None:
        super().resume_writing()
        newest, self._newest = self._newest, None
        if newest is not None:
            self.send_newest(newest)

    def pause(self) -> None:
        """Read nothing more for now."""
        if not self.read_paused:
            self.read_paused = True
            self.transport.pause_reading()

    def resume(self) -> None:
        """Read again."""
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
