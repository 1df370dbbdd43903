"""The HTTP proxy of a path, as ALTER DISTPATH names it."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import urlsplit

from ggshell.errors import UsageError
from ggshell.home.credential import Login
from ggshell.hosts import host_and_port

_PORT: Final = 3128


class HttpProxy(NamedTuple):
    """A proxy, and the login that it requires, if any."""

    host: str
    port: int
    login: Login | None = None

    @property
    def place(self) -> str:
        return host_and_port(self.host, self.port)


def parse_proxy(url: str) -> HttpProxy:
    """Return the proxy of a URL ``http://host:port``. Raises UsageError."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if (
        parts.scheme != "http"
        or not host
        or parts.username is not None
        or parts.path.strip("/")
        or not url.isprintable()
    ):
        raise UsageError(
            f"{url.rpartition('@')[2][:200]} is not a valid address of an HTTP proxy",
            hint="use http://HOST:PORT; CSALIAS names the login",
        )
    return HttpProxy(host, port or _PORT)
