"""The proxy between this home and another one, as ALTER DISTPATH, RMTHOST and an alias Extract name it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from ggshell.errors import ProcessError, UsageError
from ggshell.home.credential import Login
from ggshell.hosts import host_and_port

REFUSED: Final = "GGS-00965"


class ProxyKind(StrEnum):
    """How a proxy is asked for a connection."""

    HTTP = "http"
    SOCKS = "socks5"

    @property
    def port(self) -> int:
        """The port of a proxy without one."""
        return 3128 if self is ProxyKind.HTTP else 1080


_SCHEMES: Final = {
    "http": ProxyKind.HTTP,
    "socks": ProxyKind.SOCKS,
    "socks5": ProxyKind.SOCKS,
    "socks5h": ProxyKind.SOCKS,
}


class Proxy(NamedTuple):
    """A proxy, and the login that it requires, if any."""

    host: str
    port: int
    login: Login | None = None
    kind: ProxyKind = ProxyKind.HTTP

    @property
    def place(self) -> str:
        return host_and_port(self.host, self.port)

    @property
    def url(self) -> str:
        return f"{self.kind}://{self.place}"

    def refused(self, why: str) -> ProcessError:
        """Return the error of a proxy that does not connect to the other home."""
        return ProcessError(
            f"the proxy {self.place} does not connect to the other home: {why}",
            code=REFUSED,
            hint="check the address of PROXY, its login (CSALIAS), and that it permits this port",
        )


def parse_proxy(url: str) -> Proxy:
    """Return the proxy of a URL ``http://host:port`` or ``socks5://host:port``. Raises UsageError."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    kind = _SCHEMES.get(parts.scheme)
    if kind is None or not host or parts.username is not None or parts.path.strip("/") or not url.isprintable():
        raise UsageError(
            f"{url.rpartition('@')[2][:200]} is not a valid address of a proxy",
            hint="use http://HOST:PORT, or socks5://HOST:PORT; CSALIAS names the login",
        )
    return Proxy(host, port or kind.port, kind=kind)


def socks_proxy(place: str) -> Proxy:
    """Return the proxy of SOCKSPROXY: ``host`` or ``host:port``. Raises UsageError."""
    return parse_proxy(f"{ProxyKind.SOCKS}://{place}")
