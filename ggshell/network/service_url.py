"""The address of a service, as CONNECT takes it: ``https://host:port``."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import quote, urlsplit

from ggshell.errors import UsageError
from ggshell.hosts import host_and_port, is_loopback

_PORTS: Final = {"http": 80, "https": 443}


class ServiceUrl(NamedTuple):
    """An address. ``path``: what precedes ``/services`` in the address of a reverse proxy, usually empty."""

    scheme: str
    host: str
    port: int
    path: str = ""

    def __str__(self) -> str:
        return f"{self.scheme}://{self.place}{self.path}"

    @property
    def place(self) -> str:
        """Host and port, as written in a URL and in the file of pinned certificates."""
        return host_and_port(self.host, self.port)

    @property
    def is_secure(self) -> bool:
        return self.scheme == "https"

    @property
    def is_local(self) -> bool:
        """Whether the host is this machine, so that what is sent cannot be read in a network."""
        return is_loopback(self.host)

    def base(self, deployment: str) -> str:
        """Return the path of the API, for a deployment if one is named."""
        name = f"/{quote(deployment, safe='')}/adminsrvr" if deployment else ""
        return f"{self.path}/services{name}/v2"


def parse_url(text: str) -> ServiceUrl:
    """Parse a service's address. Raises UsageError."""
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname
    except ValueError:
        raise _not_valid(text) from None
    if parts.scheme not in _PORTS or not host or parts.query or parts.fragment or not text.isprintable():
        raise _not_valid(text)
    if parts.username is not None:
        raise UsageError("the address of a service contains no user", hint="CONNECT url AS user")
    path = parts.path.rstrip("/").removesuffix("/services/v2").removesuffix("/services")
    return ServiceUrl(parts.scheme, host, port or _PORTS[parts.scheme], path)


def _not_valid(text: str) -> UsageError:
    return UsageError(f"{text[:200]} is not a valid address of a service", hint="use https://host:port")
