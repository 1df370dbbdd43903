"""When a connection counts as lost: after 30 seconds in which nothing moved, and never while the other side takes bytes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest
from websockets.http11 import Request
from websockets.server import ServerProtocol

from ggshell.clock import FakeClock
from ggshell.errors import ConnectionLostError
from ggshell.network.frames import PROTOCOL
from ggshell.network.link import Link

STEP = 4.9
"""Seconds between two looks at the connection: less than the process may be busy with something else."""


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a TCP connection that holds little."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
    with near, far:
        yield near, far


@pytest.fixture
def link(ends: tuple[socket.socket, socket.socket], clock: FakeClock) -> Iterator[Link]:
    """A WebSocket whose other side reads only when a test does."""
    found = Link(ends[0], "the receiver", clock)
    accepting = threading.Thread(target=accept, args=(ends[1],))
    accepting.start()
    found.upgrade("ws://127.0.0.1/services/v2/targets?trail=da", {})
    accepting.join()
    yield found
    found.close()


def accept(far: socket.socket) -> None:
    protocol = ServerProtocol(subprotocols=[PROTOCOL])  # type: ignore[list-item]
    protocol.receive_data(far.recv(1 << 16))
    (request,) = protocol.events_received()
    assert isinstance(request, Request)
    protocol.send_response(protocol.accept(request))
    far.sendall(b"".join(protocol.data_to_send()))


def look(link: Link, clock: FakeClock, seconds: float) -> None:
    """Let time pass on a connection."""
    for _ in range(round(seconds / STEP)):
        clock.advance(STEP)
        link.receive(0.0)


def test_a_silent_connection_is_lost_after_30_seconds(link: Link, clock: FakeClock) -> None:
    look(link, clock, 29)
    with pytest.raises(ConnectionLostError, match="30 seconds"):
        look(link, clock, 2 * STEP)


def test_a_connection_that_takes_bytes_slowly_is_not_lost(
    link: Link, ends: tuple[socket.socket, socket.socket], clock: FakeClock
) -> None:
    """The answers to pings wait after the data."""
    link.send(bytes(8 << 20))
    for _ in range(4):
        look(link, clock, 24)
        ends[1].recv(1 << 18)
        link.receive(0.0)
    with pytest.raises(ConnectionLostError, match="nothing could be sent for 30 seconds"):
        look(link, clock, 40)


def test_a_process_that_was_busy_itself_does_not_blame_the_connection(link: Link, clock: FakeClock) -> None:
    clock.advance(600)
    link.receive(0.0)
    look(link, clock, 24)
