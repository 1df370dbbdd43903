"""A path that reaches the other home only through an HTTP proxy of its network."""

from __future__ import annotations

import base64
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from processes import until, until_state
from two_homes import TwoHomes

from ggshell.errors import ConnectionLostError, ProcessError, UsageError
from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessState
from ggshell.network.proxy_url import Proxy as Tunnel
from ggshell.network.proxy_url import parse_proxy
from ggshell.network.tunnel import connect_through

LOGIN = base64.b64encode(b"pat:correct-horse-7")


class Proxy:
    """A proxy for CONNECT. ``login``: what it requires; ``answer``: what it answers instead of connecting."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.login = b""
        self.answer = b""
        self.asked: list[bytes] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        with near, suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                head += near.recv(1 << 16)
            self.asked.append(head)
            if self.answer or self.login not in head:
                near.sendall(self.answer or b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
                return
            host, _, port = head.split()[1].decode().rpartition(":")
            with socket.create_connection((host, int(port))) as far:
                near.sendall(b"HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n")
                back = threading.Thread(target=_pass, args=(far, near), daemon=True)
                back.start()
                _pass(near, far)
                back.join()


def _pass(stream: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while data := stream.recv(1 << 16):
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    found = Proxy()
    yield found
    found.close()


@pytest.mark.slow
def test_a_path_connects_through_a_proxy_that_requires_a_login(homes: TwoHomes, proxy: Proxy) -> None:
    proxy.login = LOGIN
    homes.write(5)
    homes.run(f"ADD DISTPATH dp1, SOURCE ./dirdat/ea, TARGET {homes.url()}")
    homes.run(f"ALTER DISTPATH dp1 TARGET PROXY URI http://127.0.0.1:{proxy.port} TYPE HTTP; START DISTPATH dp1")
    until_state(Home(homes.source), "DP1", GroupKind.PATH, ProcessState.ABENDED)
    assert "GGS-00965" in homes.run("INFO DISTPATH dp1, DETAIL")
    homes.run("ADD CREDENTIALSTORE")
    homes.run("ALTER CREDENTIALSTORE ADD USER pat PASSWORD correct-horse-7 ALIAS pat DOMAIN Network")
    homes.run(
        f"ALTER DISTPATH dp1 TARGET PROXY URI http://127.0.0.1:{proxy.port} TYPE HTTP CSALIAS pat CSDOMAIN Network"
        "; START DISTPATH dp1"
    )
    homes.until_equal()
    assert proxy.asked[-1].startswith(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n" % homes.target.port)
    assert f"Proxy                http://127.0.0.1:{proxy.port}" in homes.run("INFO DISTPATH dp1, DETAIL")
    homes.run("STOP DISTPATH dp1; ALTER DISTPATH dp1 TARGET PROXY URI none TYPE HTTP; START DISTPATH dp1")
    asked = len(proxy.asked)
    homes.write(5)
    homes.until_equal()
    assert len(proxy.asked) == asked


@pytest.mark.slow
def test_a_proxy_that_is_away_is_waited_for(homes: TwoHomes, proxy: Proxy) -> None:
    proxy.answer = b"HTTP/1.1 503 Service Unavailable\r\n\r\n"
    homes.write(5)
    homes.run(f"ADD DISTPATH dp1, SOURCE ./dirdat/ea, TARGET {homes.url()}")
    homes.run(f"ALTER DISTPATH dp1 TARGET PROXY URI http://127.0.0.1:{proxy.port} TYPE HTTP; START DISTPATH dp1")
    until("the path waits", lambda: "503 Service Unavailable" in homes.run("INFO DISTPATH dp1"))
    proxy.answer = b""
    homes.until_equal()


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"HTTP/1.1 403 Forbidden\r\n\r\n", ProcessError),
        (b"SSH-2.0-OpenSSH\r\n\r\n", ProcessError),
        (b"HTTP/1.1 200 " + b"x" * 20_000 + b"\r\n\r\n", ProcessError),
        (b"HTTP/1.1 502 Bad Gateway\r\n\r\n", ConnectionLostError),
        (b"HTTP/1.1 200", ConnectionLostError),
    ],
    ids=["refused", "no HTTP", "endless", "temporary", "cut"],
)
def test_other_answers_are_errors_that_name_the_proxy(proxy: Proxy, answer: bytes, error: type[Exception]) -> None:
    proxy.answer = answer
    with pytest.raises(error, match=f"127.0.0.1:{proxy.port}"):
        connect_through(Tunnel("127.0.0.1", proxy.port), "target", 7810, 5.0)


@pytest.mark.parametrize(
    "url", ["proxy:3128", "https://proxy", "http://u:p@proxy", "http://proxy/x", "http://[::1", "http://"]
)
def test_other_addresses_are_not_those_of_a_proxy(url: str) -> None:
    with pytest.raises(UsageError, match="is not a valid address of a proxy"):
        parse_proxy(url)
    assert parse_proxy("http://proxy").port == 3128
