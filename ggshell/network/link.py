"""One WebSocket connection, driven by one thread: sends without blocking, and waits only where the caller requests it.

A connection is lost, although TCP may not know it, if nothing arrives on it for ``SILENCE_SECONDS``: a failed network sends
no reset. On an idle connection, pings make sure that something arrives. On a slow one, a ping waits after the data that was
sent before it, so bytes that the network takes count too.
"""

from __future__ import annotations

import contextlib
import fcntl
import select
import socket
import ssl
import struct
import termios
from collections import deque
from typing import Final

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidHandshake, InvalidMessage, InvalidStatus
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import State
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from ggshell.clock import Clock
from ggshell.errors import ConnectionLostError, ProcessError
from ggshell.home.events import flat
from ggshell.network.certificate_refusals import certificate_refusal
from ggshell.network.frames import LONGEST_FRAME, PROTOCOL
from ggshell.network.masking import masked_frame
from ggshell.network.opening import LONGEST_TEXT
from ggshell.network.proof import ExpectedHome
from ggshell.trail.blocks import Data
from ggshell.wake_up import WakeUp

SILENCE_SECONDS: Final = 30.0
PING_SECONDS: Final = 5.0
OPEN_SECONDS: Final = 20.0
_READ: Final = 1 << 16
_LAST_READS: Final = 16
_LONGEST_REASON: Final = 300
LOST: Final = "GGS-00950"
"""The code of a connection that cannot be made or was lost."""
NOT_A_RECEIVER: Final = "GGS-00957"
_ADDRESSES: Final = (
    "check the address: a target ends with /services/v2/targets?trail=NAME,"
    " a source with /services/v2/sources?trail=NAME"
)
ANY_HOME: Final = ExpectedHome()


class Link:
    """A WebSocket connection to ``where`` (for messages). Raises ConnectionLostError (GGS-00950) once it is lost."""

    def __init__(
        self,
        stream: socket.socket,
        where: str,
        clock: Clock,
        silence: float = SILENCE_SECONDS,
        home: ExpectedHome = ANY_HOME,
    ) -> None:
        """``silence``: the seconds without any message after which the connection counts as lost. ``home``: who must answer."""
        self.home = home
        self._silence = silence
        self._ping_seconds = min(PING_SECONDS, silence / 3)
        self._stream = stream
        self._where = where
        self._clock = clock
        self._out: deque[memoryview] = deque()
        self._in: deque[str | bytes] = deque()
        self._parts: list[bytes] = []
        self._text = False
        self._moved = self._pinged = self._looked = clock.steady()
        self._unsent = 0
        self._polled = clock.steady()
        self._ping_due: float | None = None
        self._protocol: ClientProtocol | None = None
        self._interrupt = WakeUp()
        self._stopped = False
        self._broken = False
        self._closed = False
        self.is_waiting = False
        """Whether the caller waits for a message with a time limit. Any thread can read it."""
        self.waiting = 0
        """Bytes that the operating system has not taken yet."""
        self.round_trip = 0.0
        """Seconds from the last ping to its answer; 0 before the first."""
        stream.setblocking(False)
        self._events = select.poll()
        self._events.register(stream, select.POLLIN)
        self._events.register(self._interrupt, select.POLLIN)

    def upgrade(self, uri: str, headers: dict[str, str]) -> None:
        """Make the connection a WebSocket. Raises ConnectionLostError, ProcessError for a server that refuses."""
        self._protocol = protocol = ClientProtocol(
            parse_uri(uri),
            subprotocols=[Subprotocol(PROTOCOL)],
            max_size=max(LONGEST_FRAME, LONGEST_TEXT),
        )
        request = protocol.connect()
        for name, value in headers.items():
            request.headers[name] = value
        protocol.send_request(request)
        self._collect()
        end = self._clock.steady() + OPEN_SECONDS
        while protocol.handshake_exc is None and protocol.state is State.CONNECTING:
            if self._clock.steady() >= end:
                raise self._lost("it does not answer")
            self._poll(end - self._clock.steady())
        if protocol.handshake_exc is not None:
            raise self._refused(protocol.handshake_exc)

    def send(self, message: str | bytes, more: Data = b"") -> None:
        """Queue a message and send as much as the operating system takes now. ``more``: the rest of a binary message."""
        protocol = self._open()
        if isinstance(message, str):
            protocol.send_text(message.encode())
            self._collect()
        else:
            self._queue(*masked_frame(message, more, private=isinstance(self._stream, ssl.SSLSocket)))
        self._write()

    def drain(self, most: int) -> None:
        """Wait until at most so many bytes wait for the operating system."""
        while self.waiting > most:
            self._poll(self._ping_seconds)

    def receive(self, timeout: float) -> str | bytes | None:
        """Return the next message, after waiting at most ``timeout`` seconds; None if there is none."""
        end = self._clock.steady() + timeout
        self.is_waiting = timeout > 0
        try:
            while not self._in:
                left = end - self._clock.steady()
                self._poll(max(0.0, left))
                if not self._in and left <= 0:
                    return None
        finally:
            self.is_waiting = False
        return self._in.popleft()

    def now(self) -> float:
        """The time by the clock of the connection, in seconds."""
        return self._clock.steady()

    def fileno(self) -> int:
        """The socket, to wait for messages. TLS may have read bytes ahead: call ``receive(0)`` before waiting."""
        return self._stream.fileno()

    def interrupt(self) -> None:
        """End the current and every later wait with ConnectionLostError. Any thread can call it."""
        self._stopped = True
        self._interrupt.ring()

    def close(self) -> None:
        """Send a close frame if that does not block, and close."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(Exception):  # the other side may be gone: it notices a closed connection anyway
            if self._protocol is not None and self._protocol.state is State.OPEN:
                self._protocol.send_close(1000)
                self._collect()
                self._write()
        self._stream.close()
        self._interrupt.close()

    def _open(self) -> ClientProtocol:
        if self._protocol is None or self._closed or self._stopped or self._protocol.state is not State.OPEN:
            raise self._lost("it is closed")
        return self._protocol

    def _poll(self, timeout: float) -> None:
        """Wait until something can be read or written, at most ``timeout`` seconds, and do it."""
        if self._stopped:
            raise self._lost("this process is stopping")
        now = self._clock.steady()
        if now - self._polled > PING_SECONDS:  # the caller was busy: the other side may have had nothing to answer
            self._moved = now
        self._ping()
        pending = isinstance(self._stream, ssl.SSLSocket) and self._stream.pending()
        self._events.modify(self._stream, select.POLLIN | (select.POLLOUT if self._out else 0))
        wait = 0.0 if pending else min(timeout, self._ping_seconds)
        ready = dict(self._events.poll(wait * 1000))
        if self._stopped:
            raise self._lost("this process is stopping")
        if self._out:
            self._write()
        if pending or ready.get(self._stream.fileno(), 0) & ~select.POLLOUT:
            self._read()
        self._polled = self._clock.steady()
        if self._polled - max(self._moved, self._looked) > self._ping_seconds / 2:
            self._require_movement(self._polled)

    def _require_movement(self, now: float) -> None:
        """Raise ConnectionLostError if nothing has arrived or left for too long."""
        self._looked = now
        unsent = self.waiting + _queued(self._stream)
        if unsent < self._unsent:
            self._moved = now
        self._unsent = unsent
        if now - self._moved > self._silence:
            what = "nothing could be sent" if unsent else "nothing has arrived"
            raise self._lost(f"{what} for {self._silence:g} seconds")

    def _ping(self) -> None:
        now = self._clock.steady()
        protocol = self._protocol
        if protocol is not None and protocol.state is State.OPEN and now - self._pinged >= self._ping_seconds:
            self._pinged = now
            if self._ping_due is None:
                self._ping_due = now
                protocol.send_ping(b"")
                self._collect()
                self._write()

    def _collect(self) -> None:
        if self._protocol is None:
            return
        self._queue(*self._protocol.data_to_send())

    def _queue(self, *parts: Data) -> None:
        for data in parts:
            if data:
                self._out.append(memoryview(data))
                self.waiting += len(data)

    def _write(self) -> None:
        while self._out:
            data = self._out[0]
            try:
                count = self._stream.send(data)
            except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
                return
            except OSError as error:
                self._hear_last_words()
                if self._in:
                    return  # first the caller learns what the other side said last: the reason, if it refused something
                raise self._lost(error.strerror or str(error)) from error
            self.waiting -= count
            if count == len(data):
                self._out.popleft()
            else:
                self._out[0] = data[count:]

    def _read(self) -> None:
        protocol = self._protocol
        if protocol is None:
            return
        try:
            data = self._stream.recv(_READ)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return
        except OSError as error:
            refusal = certificate_refusal(self._where, error, NOT_A_RECEIVER)
            raise refusal or self._lost(error.strerror or str(error)) from error
        if not data:
            protocol.receive_eof()
            self._take(protocol)
            if protocol.handshake_exc is None:
                raise self._lost("the other side has closed it")
            return
        self._moved = self._clock.steady()
        protocol.receive_data(data)
        self._take(protocol)
        self._collect()
        self._write()

    def _hear_last_words(self) -> None:
        """Read what has arrived over a connection to which nothing can be written now."""
        if self._broken:
            return
        self._broken = True
        with contextlib.suppress(ConnectionLostError):
            for _ in range(_LAST_READS):
                self._read()

    def _take(self, protocol: ClientProtocol) -> None:
        for event in protocol.events_received():
            if isinstance(event, Frame):
                self._take_frame(event)
        if protocol.close_rcvd is not None and not self._in:
            reason = protocol.close_rcvd.reason
            raise self._lost(f"the other side has closed it{f': {reason}' if reason else ''}")

    def _take_frame(self, frame: Frame) -> None:
        if frame.opcode is Opcode.PONG and self._ping_due is not None:
            self.round_trip, self._ping_due = self._clock.steady() - self._ping_due, None
        if frame.opcode not in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
            return
        if frame.opcode is not Opcode.CONT:
            self._text = frame.opcode is Opcode.TEXT
            self._parts.clear()
        self._parts.append(bytes(frame.data))
        if frame.fin:
            whole = b"".join(self._parts)
            self._in.append(whole.decode(errors="replace") if self._text else whole)
            self._parts.clear()

    def _lost(self, why: str) -> ConnectionLostError:
        return ConnectionLostError(f"the connection to {self._where} was lost: {why}", code=LOST)

    def _refused(self, error: Exception) -> ConnectionLostError | ProcessError:
        if isinstance(error, InvalidStatus):
            return _refused_status(self._where, error.response)
        if isinstance(error, InvalidMessage | EOFError):
            return self._lost("it closed the connection before it answered")
        if isinstance(error, InvalidHandshake):
            return ProcessError(
                f"{self._where} does not serve trails: {error}",
                code=NOT_A_RECEIVER,
                hint="check the address, and that the service there has the same release",
            )
        return self._lost(str(error) or type(error).__name__)


def _queued(stream: socket.socket) -> int:
    """Return how many bytes the other side has not acknowledged yet."""
    try:
        return int(struct.unpack("i", fcntl.ioctl(stream.fileno(), termios.TIOCOUTQ, bytes(4)))[0])
    except OSError:
        return 0


def _refused_status(where: str, response: Response) -> ConnectionLostError | ProcessError:
    """Return the error for an answer that is not a WebSocket: 5xx and 429 may pass, anything else needs a change."""
    status = response.status_code
    if status >= 500 or status == 429:
        return ConnectionLostError(f"{where} answers with status {status}", code=LOST)
    hints = {
        401: "check AUTHENTICATION here, and its user in the other home with INFO USER; a user for a client certificate has the"
        " name in the certificate: ADD USER name, ROLE DISTRIBUTION, CERTIFICATE",
        426: "use the same release of ggshell in both homes",
        403: "the user in the other home needs the role DISTRIBUTION or a higher one; see also ACCESSRULE there",
    }
    said = flat((response.body or b"").decode(errors="replace"))[:_LONGEST_REASON]
    theirs = ""
    if said.startswith("GGS-"):  # a service of ggshell, which knows the reason better
        said, _, theirs = said.partition(" - ")
    if status == 401:  # the user is missing there, but AUTHENTICATION is set here
        theirs = ""
    return ProcessError(
        f"{where} refuses the connection with status {status}{f': {said}' if said else ''}",
        code=NOT_A_RECEIVER,
        hint=theirs or hints.get(status, _ADDRESSES),
    )
