"""Requests to a service: through proxies, to servers that fail, and never twice."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from remote_shell import RemoteShell
from service_client import RunningService

from ggshell.client.connection import Connection
from ggshell.client.credentials import StoredLogin
from ggshell.client.remote import Remote, ShellChoices
from ggshell.errors import ConnectionLostError, HttpError, UsageError
from ggshell.network.service_url import parse_url


class Server:
    """Accepts connections one after the other and gives each, with its first request, to a function."""

    def __init__(self, serve: Callable[[socket.socket, bytes], None]) -> None:
        self.requests: list[bytes] = []
        self._serve = serve
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._connected, args=(connection,), daemon=True).start()

    def _connected(self, connection: socket.socket) -> None:
        head = b""
        with connection, contextlib.suppress(OSError):
            while b"\r\n\r\n" not in head:
                data = connection.recv(1 << 16)
                if not data:
                    return
                head += data
            self.requests.append(head)
            self._serve(connection, head)

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def started() -> Iterator[Callable[[Callable[[socket.socket, bytes], None]], Server]]:
    """Starts servers."""
    found: list[Server] = []

    def start(serve: Callable[[socket.socket, bytes], None]) -> Server:
        found.append(Server(serve))
        return found[-1]

    yield start
    for each in found:
        each.close()


def pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def proxied(client: socket.socket, head: bytes) -> None:
    """Serve a client as an HTTP proxy does: a tunnel for CONNECT, one forwarded connection for an absolute address."""
    words = re.match(rb"(\w+) (?:http://)?([^:/ ]+):(\d+)(\S*)", head)
    assert words is not None
    with socket.create_connection((words[2].decode(), int(words[3]))) as server:
        if words[1] == b"CONNECT":
            client.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
        else:
            server.sendall(head.replace(b"http://" + words[2] + b":" + words[3], b"", 1))
        back = threading.Thread(target=pump, args=(server, client), daemon=True)
        back.start()
        pump(client, server)
        back.join()


@pytest.mark.slow
def test_a_service_is_reached_through_a_proxy(
    started: Callable[..., Server], service: RunningService, remote: RemoteShell
) -> None:
    proxy = started(proxied)
    done = remote.start("-c", f"CONNECT {service.url} PROXY {proxy.url} AS admin")
    assert (done.returncode, "Connected to" in done.stdout) == (0, True), done.stderr
    assert proxy.requests[0].startswith(f"POST {service.url}/services/v2/ggshell/sessions ".encode())


@pytest.mark.slow
def test_a_service_with_tls_is_reached_through_a_tunnel_that_sees_no_password(
    started: Callable[..., Server], secure: RunningService, secure_remote: RemoteShell
) -> None:
    proxy = started(proxied)
    done = secure_remote.start("-c", f"CONNECT {secure.url} PROXY {proxy.url} AS admin !; STATUS MANAGER; DISCONNECT")
    assert done.returncode == 0, done.stderr
    assert {each.split()[0] for each in proxy.requests} == {b"CONNECT"}
    assert not any(b"Authorization" in each for each in proxy.requests)


def test_a_proxy_that_refuses_is_reported(started: Callable[..., Server]) -> None:
    proxy = started(lambda client, _: client.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"))
    connection = Connection(parse_url("http://127.0.0.1:1"), None, proxy.url)
    remote = Remote(connection, StoredLogin("", "admin", "x"))
    with pytest.raises(HttpError, match="status 403, but is not a ggshell service"):
        remote.sign_in(ShellChoices())


@pytest.mark.parametrize("proxy", ["ftp://h:1", "http://", "http://u:p@h:1", "http://h:x"])
def test_a_proxy_that_is_not_valid_is_refused(proxy: str) -> None:
    with pytest.raises(UsageError, match="is not a valid address of a proxy"):
        Connection(parse_url("http://127.0.0.1:1"), None, proxy)


def test_a_request_is_not_repeated_when_its_answer_is_lost(started: Callable[..., Server]) -> None:
    server = started(lambda client, _: client.shutdown(socket.SHUT_RDWR))
    connection = Connection(parse_url(server.url), None)
    for number in (1, 2):
        with pytest.raises(ConnectionLostError, match="was lost before a response arrived"):
            connection.send("POST", "/services/v2/ggshell/statements", {"statement": "STOP ER *"})
        assert len(server.requests) == number


def test_a_connection_that_the_server_has_closed_is_replaced(started: Callable[..., Server]) -> None:
    def once(client: socket.socket, _: bytes) -> None:
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    server = started(once)
    connection = Connection(parse_url(server.url), None)
    assert [connection.send("GET", "/").status for _ in range(3)] == [200, 200, 200]
    assert len(server.requests) == 3


@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"SSH-2.0-OpenSSH_9\r\n"])
def test_another_server_is_reported(started: Callable[..., Server], answer: bytes) -> None:
    server = started(lambda client, _: client.sendall(answer))
    with pytest.raises((HttpError, ConnectionLostError), match=re.escape(server.url)):
        Connection(parse_url(server.url), None).send("GET", "/services/v2/version")
