"""Clients that send nothing, or too much: their connections end."""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from service_client import RunningService

from ggshell.clock import SystemClock
from ggshell.home.home import Home
from ggshell.parameters.service_parameters import ServiceParameters
from ggshell.service.app import Application
from ggshell.service.process import Server, configuration
from ggshell.service.protocol import CertifiedProtocol, Complaints
from ggshell.service.state import ServiceState


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Connections with a short time limit, two at a time."""
    monkeypatch.setattr(CertifiedProtocol, "header_seconds", 0.3)
    monkeypatch.setattr(CertifiedProtocol, "most", 2)
    yield


async def _served(state: ServiceState) -> list[bytes]:
    """Return what connections receive: one that sends half a header, two silent ones."""
    listening = asyncio.Event()
    server = Server(configuration(Application(state), None), listening.set)
    server.config.port = 0
    task = asyncio.create_task(server.serve())
    await listening.wait()
    port = server.servers[0].sockets[0].getsockname()[1]
    streams = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
    streams[0][1].write(b"GET /services/v2/version HTTP/1.1\r\nHost:")
    received = list(await asyncio.wait_for(asyncio.gather(*(reader.read() for reader, _ in streams)), 10))
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /services/v2/version HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    received.append(await asyncio.wait_for(reader.read(), 10))
    for _, each in [*streams, (reader, writer)]:
        each.close()
    server.should_exit = True
    await task
    return received


def test_connections_without_a_request_are_closed(tmp_path: Path, limits: None) -> None:
    with ExitStack() as ending:
        state = ServiceState(Home(tmp_path), ServiceParameters(), SystemClock())
        ending.callback(state.close)
        received = asyncio.run(_served(state))
    assert received[:3] == [b"", b"", b""]
    assert received[3].startswith(b"HTTP/1.1 200 ")


def test_missing_descriptors_are_reported_once(capfd: pytest.CaptureFixture[str]) -> None:
    loop = asyncio.new_event_loop()
    complaints = Complaints()
    for _ in range(3):
        complaints(loop, {"message": "socket.accept() out of system resource", "exception": OSError(24, "Too many")})
    loop.close()
    assert capfd.readouterr().err.count("Too many") == 1


@pytest.mark.slow
def test_a_refusal_that_left_the_body_unread_ends_the_connection(service: RunningService) -> None:
    for path, sent, expected in (("/nothing", "{}", "close"), ("/nothing", None, None)):
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
        connection.request("POST", f"/services/v2{path}", sent)
        assert connection.getresponse().headers.get("Connection") == expected
        connection.close()
