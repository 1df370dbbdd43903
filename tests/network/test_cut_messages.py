"""A connection that ends after any number of bytes from the sender: the next one continues, and every row is there once."""

from __future__ import annotations

import contextlib
import socket
import threading
from contextlib import closing
from pathlib import Path

import pytest
from trail_kit import PRODUCER, read_all, small
from websockets.frames import Frame
from websockets.http11 import Request
from websockets.server import ServerProtocol

from ggshell.clock import FakeClock, SystemClock
from ggshell.errors import ConnectionLostError
from ggshell.network.frames import PROTOCOL
from ggshell.network.handshake import Sender
from ggshell.network.link import Link
from ggshell.network.opening import Challenge, encode_message
from ggshell.network.receiver import ReceivedTrail
from ggshell.network.remote_files import RemoteTrailFiles
from ggshell.network.trail_owner import TrailOwner
from ggshell.trail.name import TrailName
from ggshell.trail.writer import TrailWriter

TRANSACTIONS = 4
WHOLE = 1 << 40


class Receiver:
    """A receiver in a thread that takes so many bytes and then closes the connection."""

    def __init__(self, stream: socket.socket, name: TrailName, limit: int) -> None:
        self.taken, self._limit = 0, limit
        self._stream, self._name = stream, name
        self._trail: ReceivedTrail | None = None
        self._protocol = ServerProtocol(subprotocols=[PROTOCOL], max_size=None)  # type: ignore[list-item]
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        with self._stream, contextlib.suppress(OSError):
            while data := self._stream.recv(min(1 << 16, self._limit - self.taken)):
                self.taken += len(data)
                self._protocol.receive_data(data)
                for event in self._protocol.events_received():
                    self._take(event)
                self._stream.sendall(b"".join(self._protocol.data_to_send()))
        if self._trail is not None:
            self._trail.close()

    def _take(self, event: object) -> None:
        if isinstance(event, Request):
            self._protocol.send_response(self._protocol.accept(event))
            self._protocol.send_text(encode_message(Challenge("nonce", "1", "")).encode())
        elif isinstance(event, Frame) and event.opcode == 1:
            self._trail = ReceivedTrail(self._name, TrailOwner("home", "host", "DP1"), None)
            self._protocol.send_text(encode_message(self._trail.opened).encode())
        elif isinstance(event, Frame) and event.opcode == 2 and self._trail is not None:
            self._protocol.send_binary(self._trail.take([bytes(event.data)]))


def send(name: TrailName, limit: int) -> int:
    """Send what the trail does not have yet; returns how many bytes the receiver took. Raises ConnectionLostError."""
    near, far = socket.socketpair()
    receiver = Receiver(far, name, limit)
    link = Link(near, "the receiver", SystemClock())
    try:
        link.upgrade("ws://127.0.0.1/services/v2/targets?trail=da", {})
        files = RemoteTrailFiles(link, "the receiver", "da", Sender("home", "DP1", None), None)
        held = files.recover(None)
        first = held.csn.value + 1 if held is not None and held.csn is not None else 1
        with closing(TrailWriter.over(files, clock=FakeClock(), producer=PRODUCER, max_bytes=1 << 30)) as writer:
            for csn in range(first, TRANSACTIONS + 1):
                writer.write(small(csn))
                writer.flush()
    finally:
        link.close()
        receiver.thread.join()
    return receiver.taken


@pytest.mark.slow
def test_a_connection_that_ends_after_any_byte_of_a_message_loses_nothing(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    whole = TrailName(tmp_path / "whole", "da")
    total = send(whole, WHOLE)
    rows = read_all(whole)
    assert len(rows) == 2 * TRANSACTIONS
    for limit in range(0, total, 1 if request.config.getoption("--rounds") else max(1, total // 80)):
        name = TrailName(tmp_path / str(limit), "da")
        with contextlib.suppress(ConnectionLostError):
            send(name, limit)
        send(name, WHOLE)
        assert read_all(name) == rows, limit
