"""What the service requires before it can serve: its socket and its certificate. RESTART SERVICE checks both first."""

from __future__ import annotations

import socket
import ssl
from typing import Final

from ggshell.clock import Clock
from ggshell.errors import ProcessError
from ggshell.home.certificate import CERTIFICATE, KEY, require_valid, server_context
from ggshell.home.home import Home
from ggshell.parameters.loading import load_manager
from ggshell.parameters.service_parameters import ServiceParameters

_BACKLOG: Final = 2048
_KEEP_ALIVE: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
)
"""A client whose machine vanished is noticed within 30 seconds, although it sends nothing.

The operating system asks the other machine. A ping of the service would ask its process instead, which may wait for a
database for minutes, and would end a connection that works.
"""


def listen(settings: ServiceParameters, *, any_port: bool = False) -> socket.socket:
    """Return the listening socket; with ``any_port`` on a free port, to check the address only. Raises ProcessError.

    It names its protocol, because asyncio sets TCP_NODELAY only on connections that do. Otherwise each answer would wait
    40 ms for the acknowledgement of its headers.
    """
    where = f"{settings.address}:{settings.port}"
    try:
        port = 0 if any_port else settings.port
        family = socket.getaddrinfo(settings.address, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family[0], socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except OSError as error:
        raise _unusable(where, error) from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        for level, option, value in _KEEP_ALIVE:  # accepted connections inherit them
            listener.setsockopt(level, option, value)
        listener.bind(family[4])
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise _unusable(where, error) from error
    return listener


def manager_port_of(home: Home, settings: ServiceParameters) -> int:
    """Return the PORT of mgr.prm, on which the service listens too; 0 if the file has none or it is the service's own.

    Raises ParameterError, StoreError.
    """
    port = load_manager(home.parameters("mgr")).service_port
    return port if port != settings.port else 0


def _unusable(where: str, error: OSError) -> ProcessError:
    return ProcessError(
        f"the service cannot listen on {where}: {error.strerror}",
        code="GGS-00907",
        hint="set another PORT or ADDRESS in dirprm/service.prm",
    )


def tls_context(home: Home, settings: ServiceParameters, clock: Clock) -> ssl.SSLContext:
    """Return the TLS settings. Raises StateError for an expired certificate, StoreError for one that cannot be used."""
    certificate = home.resolve(settings.certificate or CERTIFICATE)
    key = home.resolve(settings.key) if settings.certificate else home.root / KEY
    require_valid(certificate, clock)
    authority = home.resolve(settings.client_authority) if settings.client_authority else None
    return server_context(certificate, key, authority, required=settings.client_certificate_required)


def check_setup(home: Home, settings: ServiceParameters, running: tuple[str, set[int]], clock: Clock) -> None:
    """Check that a service with these settings could replace the running one.

    ``running``: the address and the ports of the running service. Raises ParameterError, ProcessError, StateError, StoreError.
    """
    load_manager(home.parameters("mgr"))  # its access rules
    makes_its_own = not settings.certificate and not (home.root / CERTIFICATE).exists()
    if not settings.plaintext and not makes_its_own:
        tls_context(home, settings, clock)
    address, ports = running
    if settings.port not in ports:
        listen(settings).close()
    elif settings.address != address:
        listen(settings, any_port=True).close()  # the running service holds the port
