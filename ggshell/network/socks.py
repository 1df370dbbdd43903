"""Asks a SOCKS 5 proxy for a connection (RFC 1928), with a user and a password if it has a login (RFC 1929)."""

from __future__ import annotations

import ipaddress
import socket
import struct
from typing import Final

from ggshell.errors import ConnectionLostError
from ggshell.network.link import LOST
from ggshell.network.proxy_url import Proxy

_VERSION: Final = 5
_NO_LOGIN, _PASSWORD, _REFUSED = 0, 2, 255
_CONNECT: Final = 1
_IPV4, _NAME, _IPV6 = 1, 3, 4
_TEMPORARY: Final = {
    1: "general failure",
    3: "the network is unreachable",
    4: "the host is unreachable",
    5: "the connection is refused",
    6: "the time to live has expired",
}
_PERMANENT: Final = {
    2: "its rules do not permit it",
    7: "it does not support CONNECT",
    8: "it does not know the address",
}
_LONGEST: Final = 255


def ask_socks(stream: socket.socket, proxy: Proxy, host: str, port: int) -> None:
    """Have a proxy connect to a host, which the proxy resolves if it is a name.

    Raises ConnectionLostError if that may succeed later, ProcessError (GGS-00965) if the proxy refuses.
    """
    _sign_in(stream, proxy)
    stream.sendall(bytes((_VERSION, _CONNECT, 0)) + _address(proxy, host) + struct.pack(">H", port))
    version, status, _, kind = _received(stream, proxy, 4)
    if version != _VERSION:
        raise proxy.refused(f"it answers with version {version} of SOCKS")
    if status in _TEMPORARY:
        raise ConnectionLostError(
            f"{host} cannot be reached: the proxy {proxy.place} answers: {_TEMPORARY[status]}", code=LOST
        )
    if status:
        raise proxy.refused(_PERMANENT.get(status, f"it answers with code {status}"))
    size = {_IPV4: 4, _IPV6: 16}.get(kind) or _received(stream, proxy, 1)[0]
    _received(stream, proxy, size + 2)


def _sign_in(stream: socket.socket, proxy: Proxy) -> None:
    methods = bytes((_NO_LOGIN,)) if proxy.login is None else bytes((_NO_LOGIN, _PASSWORD))
    stream.sendall(bytes((_VERSION, len(methods))) + methods)
    version, method = _received(stream, proxy, 2)
    if version != _VERSION:
        raise proxy.refused(f"it answers with byte {version}, which is not SOCKS 5")
    if method == _REFUSED:
        raise proxy.refused(
            "it requires a login"
            if proxy.login is None
            else "it accepts neither a password nor a connection without a login"
        )
    if method == _PASSWORD and proxy.login is not None:
        user, password = proxy.login.userid.encode(), proxy.login.password.encode()
        if not 0 < len(user) <= _LONGEST or not 0 < len(password) <= _LONGEST:
            raise proxy.refused("user and password must have 1 to 255 bytes")
        stream.sendall(bytes((1, len(user))) + user + bytes((len(password),)) + password)
        if _received(stream, proxy, 2)[1]:
            raise proxy.refused("it does not accept the login")
    elif method != _NO_LOGIN:
        raise proxy.refused(f"it requires method {method} of signing in")


def _address(proxy: Proxy, host: str) -> bytes:
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        try:
            name = host.encode("idna")
        except UnicodeError:
            name = b""
        if not 0 < len(name) <= _LONGEST:
            raise proxy.refused(f"{host[:100]} is not a valid name of a host") from None
        return bytes((_NAME, len(name))) + name
    return bytes((_IPV4 if found.version == 4 else _IPV6,)) + found.packed


def _received(stream: socket.socket, proxy: Proxy, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        data = stream.recv(size - len(found))
        if not data:
            raise ConnectionLostError(f"the proxy {proxy.place} closed the connection", code=LOST)
        found += data
    return bytes(found)
