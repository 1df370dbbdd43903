"""Connects to another home through a proxy of this network, which passes everything on: CONNECT of HTTP, or SOCKS."""

from __future__ import annotations

import base64
import socket
from typing import Final

from ggshell.errors import ConnectionLostError
from ggshell.home.events import flat
from ggshell.hosts import host_and_port
from ggshell.network.link import LOST
from ggshell.network.proxy_url import Proxy, ProxyKind
from ggshell.network.socks import ask_socks

_LONGEST_ANSWER: Final = 1 << 14


def connect_through(proxy: Proxy, host: str, port: int, seconds: float) -> socket.socket:
    """Return a connection to a host and port that passes through a proxy.

    Raises OSError if the proxy cannot be reached, ConnectionLostError if it cannot reach the host, ProcessError (GGS-00965) if
    it refuses to.
    """
    stream = socket.create_connection((proxy.host, proxy.port), seconds)
    try:
        if proxy.kind is ProxyKind.SOCKS:
            ask_socks(stream, proxy, host, port)
            return stream
        place = host_and_port(host, port)
        stream.sendall(_request(proxy, place))
        _require_open(_answer(stream, proxy, place), proxy, place)
    except BaseException:
        stream.close()
        raise
    return stream


def _request(proxy: Proxy, place: str) -> bytes:
    lines = [f"CONNECT {place} HTTP/1.1", f"Host: {place}"]
    if proxy.login is not None:
        text = f"{proxy.login.userid}:{proxy.login.password}"
        lines.append(f"Proxy-Authorization: Basic {base64.b64encode(text.encode()).decode()}")
    return "\r\n".join([*lines, "", ""]).encode()


def _answer(stream: socket.socket, proxy: Proxy, place: str) -> bytes:
    """Return the head of the answer. What follows it belongs to the other home, so it is read byte by byte."""
    found = bytearray()
    while not found.endswith(b"\r\n\r\n"):
        data = stream.recv(1)
        if not data:
            raise ConnectionLostError(
                f"{place} cannot be reached: the proxy {proxy.place} closed the connection", code=LOST
            )
        found += data
        if len(found) > _LONGEST_ANSWER:
            raise proxy.refused("its answer is too long")
    return bytes(found)


def _require_open(answer: bytes, proxy: Proxy, place: str) -> None:
    line = flat(answer.partition(b"\r\n")[0].decode(errors="replace"))[:100]
    words = line.split(" ", 2)
    if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdecimal():
        raise proxy.refused(f"it answers {line!r}, which is not HTTP")
    status = int(words[1])
    if 200 <= status < 300:
        return
    if status >= 500 or status == 429:
        raise ConnectionLostError(f"{place} cannot be reached: the proxy {proxy.place} answers {line}", code=LOST)
    raise proxy.refused(f"it answers {line}")
