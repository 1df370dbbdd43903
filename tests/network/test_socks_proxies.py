"""Groups that reach the other home only through a SOCKS proxy of their network."""

from __future__ import annotations

import ipaddress
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from processes import until, until_state
from two_homes import TwoHomes

from ggshell.errors import ConnectionLostError, ProcessError
from ggshell.home.checkpoint import GroupKind
from ggshell.home.credential import Login
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessState
from ggshell.network.proxy_url import Proxy, ProxyKind
from ggshell.network.tunnel import connect_through


class SocksServer:
    """A SOCKS 5 proxy. ``login``: the user and the password that it requires; ``status``: what it answers, 0 if it connects."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.login: tuple[str, str] | None = None
        self.status = 0
        self.asked: list[tuple[str, int]] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        with near, suppress(OSError), near.makefile("rb") as data:
            if not self._signed_in(near, data.read(data.read(2)[1]), data.read):
                return
            host = {1: lambda: data.read(4), 3: lambda: data.read(data.read(1)[0]), 4: lambda: data.read(16)}
            kind = data.read(4)[3]
            found = host[kind]()
            name = found.decode() if kind == 3 else str(ipaddress.ip_address(found))
            (port,) = struct.unpack(">H", data.read(2))
            self.asked.append((name, port))
            near.sendall(bytes((5, self.status, 0, 1)) + bytes(6))
            if self.status:
                return
            with socket.create_connection((name, port)) as far:
                back = threading.Thread(target=_pass, args=(far.recv, near), daemon=True)
                back.start()
                _pass(data.read1, far)
                back.join()

    def _signed_in(self, near: socket.socket, methods: bytes, read: object) -> bool:
        if self.login is None:
            near.sendall(b"\x05\x00")
            return True
        near.sendall(b"\x05\x02" if 2 in methods else b"\x05\xff")
        if 2 not in methods:
            return False
        user = read(read(2)[1]).decode()  # type: ignore[operator]
        password = read(read(1)[0]).decode()  # type: ignore[operator]
        near.sendall(b"\x01\x00" if (user, password) == self.login else b"\x01\x01")
        return (user, password) == self.login


def _pass(read: object, other: socket.socket) -> None:
    with suppress(OSError):
        while data := read(1 << 16):  # type: ignore[operator]
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)


@pytest.fixture
def proxy() -> Iterator[SocksServer]:
    found = SocksServer()
    yield found
    found.close()


@pytest.mark.slow
def test_paths_and_pumps_connect_through_a_proxy_that_requires_a_login(homes: TwoHomes, proxy: SocksServer) -> None:
    proxy.login = ("pat", "correct-horse-7")
    homes.write(5)
    homes.run("ADD CREDENTIALSTORE")
    homes.run("ALTER CREDENTIALSTORE ADD USER pat PASSWORD correct-horse-7 ALIAS pat DOMAIN Network")
    homes.run(f"ADD DISTPATH dp1, SOURCE ./dirdat/ea, TARGET {homes.url()}")
    homes.run(f"ALTER DISTPATH dp1 TARGET PROXY URI socks5://127.0.0.1:{proxy.port} TYPE SOCKS; START DISTPATH dp1")
    until_state(Home(homes.source), "DP1", GroupKind.PATH, ProcessState.ABENDED)
    assert "GGS-00965" in homes.run("INFO DISTPATH dp1")
    named = f"URI http://127.0.0.1:{proxy.port} TYPE SOCKS CSALIAS pat CSDOMAIN Network"
    homes.run(f"ALTER DISTPATH dp1 TARGET PROXY {named}; START DISTPATH dp1")
    homes.until_equal()
    assert proxy.asked == [("127.0.0.1", homes.target.port)]
    homes.run("STOP DISTPATH dp1")
    socks = f"SOCKSPROXY 127.0.0.1:{proxy.port}, PROXYCSALIAS pat, PROXYCSDOMAIN Network"
    host = f"RMTHOST 127.0.0.1, PORT {homes.target.port}, {socks}"
    lines = f"EXTRACT pmp1\n{host}\nRMTTRAIL ./dirdat/pa\nTABLE *.*;\n"
    Home(homes.source).parameters("PMP1").write_text(lines)
    homes.run(
        "ADD EXTRACT pmp1, EXTTRAILSOURCE ./dirdat/ea; ADD RMTTRAIL ./dirdat/pa, EXTRACT pmp1; START EXTRACT pmp1"
    )
    until("the pump has sent its rows", lambda: bool(homes.written._replace(prefix="pa").sequences()))
    assert len(proxy.asked) == 2


@pytest.mark.parametrize(
    ("status", "login", "error"),
    [
        (1, None, ConnectionLostError),
        (5, None, ConnectionLostError),
        (2, None, ProcessError),
        (77, None, ProcessError),
        (0, ("pat", "other"), ProcessError),
    ],
)
def test_what_a_proxy_refuses_is_an_error_and_what_may_pass_is_tried_again(
    proxy: SocksServer, status: int, login: tuple[str, str] | None, error: type[Exception]
) -> None:
    proxy.status, proxy.login = status, login
    given = Proxy("127.0.0.1", proxy.port, Login("pat", "secret"), ProxyKind.SOCKS)
    with pytest.raises(error, match=f"127.0.0.1:{proxy.port}"):
        connect_through(given, "::1", 7810, 5.0)
    assert proxy.asked == ([] if login else [("::1", 7810)])


def test_the_proxy_resolves_names(proxy: SocksServer) -> None:
    proxy.status = 4
    with pytest.raises(ConnectionLostError):
        connect_through(Proxy("127.0.0.1", proxy.port, kind=ProxyKind.SOCKS), "target.example.com", 7810, 5.0)
    assert proxy.asked == [("target.example.com", 7810)]


def test_another_server_is_not_a_proxy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def answer() -> None:
            with listener.accept()[0] as near:
                near.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                near.recv(100)

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(ProcessError, match="is not SOCKS 5"):
            connect_through(Proxy("127.0.0.1", port, kind=ProxyKind.SOCKS), "target", 7810, 5.0)
