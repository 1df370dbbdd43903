"""Connect to the service of another home: its address, the connection, trust in its certificate, and how to sign in."""

from __future__ import annotations

import base64
import os
import socket
import ssl
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from ggshell.clock import Clock
from ggshell.errors import ConnectionLostError
from ggshell.home.certificate import fingerprint_of, load_client_certificate
from ggshell.home.credential import Login
from ggshell.home.home import Home
from ggshell.home.peers import AUTHORITY, Peers
from ggshell.network.addresses import ReceiverAddress
from ggshell.network.certificate_refusals import certificate_refusal
from ggshell.network.link import LOST, NOT_A_RECEIVER, SILENCE_SECONDS, Link
from ggshell.network.proof import ExpectedHome, peer_name
from ggshell.network.proxy_url import Proxy
from ggshell.network.service_url import ServiceUrl
from ggshell.network.trust import Pin, Trust
from ggshell.network.tunnel import connect_through

CONNECT_SECONDS: Final = 10.0
USER_TIMEOUT_MILLISECONDS: Final = 30_000
_NOT_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "UNEXPECTED_MESSAGE"})
"""OpenSSL's reasons that mean: the other side answered without TLS."""


class Access(NamedTuple):
    """How to sign in to a receiver besides the proof of the home's key: a user's login, or a client certificate's files."""

    login: Login | None = None
    certificate: Path | None = None
    key: Path | None = None


class SocketOptions(NamedTuple):
    """Settings of a connection. ``send_buffer``: bytes, 0 for the operating system's own; ``silence``: the seconds without any
    message after which it counts as lost; ``plain``: whether a service without TLS is accepted on a loopback address."""

    send_buffer: int = 0
    silence: float = SILENCE_SECONDS
    plain: bool = False
    proxy: Proxy | None = None
    """The HTTP proxy between both homes."""


NO_ACCESS: Final = Access()
DEFAULT_SOCKET: Final = SocketOptions()


def dial(
    address: ReceiverAddress,
    home: Home,
    clock: Clock,
    access: Access = NO_ACCESS,
    options: SocketOptions = DEFAULT_SOCKET,
    environment: Mapping[str, str] = os.environ,
) -> Link:
    """Return an open WebSocket to a receiver.

    Raises ConnectionLostError if it cannot be reached, ProcessError for a certificate that is not trusted or a refusal,
    StoreError for a file that cannot be read.
    """
    service = address.service
    try:
        stream = _secured(service, home, access, options, environment)
    except OSError as error:
        if options.plain and _answers_without_tls(service, home, error):
            plain = address._replace(service=service._replace(scheme="http"))
            return dial(plain, home, clock, access, options, environment)
        refusal = certificate_refusal(address.where, error, NOT_A_RECEIVER)
        raise refusal or _unreachable(address.where, error, options.proxy) from error
    link = Link(stream, address.where, clock, options.silence, _expected(service, home, stream))
    try:
        link.upgrade(address.uri, _headers(access))
    except BaseException:
        link.close()
        raise
    return link


def _secured(
    service: ServiceUrl, home: Home, access: Access, options: SocketOptions, environment: Mapping[str, str]
) -> socket.socket:
    if not service.is_secure:
        return _connected(service, options)
    peers = Peers(home)
    trust = Trust(service, PeerPins(peers), environment, statement=partial(trusting, service, peers))

    def handshake(context: ssl.SSLContext) -> ssl.SSLSocket:
        if access.certificate is not None:
            load_client_certificate(context, access.certificate, access.key or access.certificate)
        plain = _connected(service, options)
        try:
            return context.wrap_socket(plain, server_hostname=service.host)
        except BaseException:
            plain.close()
            raise

    return trust.open(handshake)


def _expected(service: ServiceUrl, home: Home, stream: socket.socket) -> ExpectedHome:
    """Return which home must answer over a connection whose certificate is trusted. Raises StoreError."""
    peer = Peers(home).by_address(service.host, service.port)
    shown = fingerprint_of(stream.getpeercert(binary_form=True) or b"") if isinstance(stream, ssl.SSLSocket) else ""
    return ExpectedHome(service.place, peer.fingerprint if peer is not None else shown, shown, peer)


def trusting(service: ServiceUrl, peers: Peers, fingerprint: str) -> str:
    """Return the statement that trusts the certificate with a fingerprint at the address of a service.

    A peer with the same certificate receives the address; without one, the statement adds a peer. Raises StoreError.
    """
    peer = peers.by_address(service.host, service.port)
    if peer is not None:
        return f"ALTER PEER {peer.name}, PROXY {fingerprint}"
    known = peers.by_fingerprint(fingerprint)
    if known is not None:
        return f"ALTER PEER {known.name}, ADDRESS {', '.join((*known.addresses, service.place))}"
    return f"ADD PEER {peer_name(service.place)}, ADDRESS {service.place}, FINGERPRINT {fingerprint}"


def _answers_without_tls(service: ServiceUrl, home: Home, error: OSError) -> bool:
    """Whether a service on a loopback address does not use TLS; never one whose certificate is pinned."""
    if not (service.is_local and service.is_secure and isinstance(error, ssl.SSLError)):
        return False
    return error.reason in _NOT_TLS and Peers(home).by_address(service.host, service.port) is None


def _connected(service: ServiceUrl, options: SocketOptions) -> socket.socket:
    if options.proxy is not None:
        stream = connect_through(options.proxy, service.host, service.port, CONNECT_SECONDS)
    else:
        stream = socket.create_connection((service.host, service.port), CONNECT_SECONDS)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, USER_TIMEOUT_MILLISECONDS)
    if options.send_buffer:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, options.send_buffer)
    return stream


def _headers(access: Access) -> dict[str, str]:
    if access.login is None:
        return {}
    text = f"{access.login.userid}:{access.login.password}"
    return {"Authorization": f"Basic {base64.b64encode(text.encode()).decode()}"}


def _unreachable(where: str, error: OSError, proxy: Proxy | None) -> ConnectionLostError:
    where = f"{where} through the proxy {proxy.place}" if proxy is not None else where
    if isinstance(error, ssl.SSLError):
        reason = f"TLS: {error.reason or error}"
    elif isinstance(error, TimeoutError):
        reason = f"it does not answer within {CONNECT_SECONDS:g} seconds"
    else:
        reason = error.strerror or str(error)
    return ConnectionLostError(
        f"{where} cannot be reached: {reason}",
        code=LOST,
        hint="START SERVICE in the other home; check the address, ADDRESS in its service.prm, and firewalls",
    )


class PeerPins:
    """The peers of a home as pins: each certificate belongs to a home, or to the reverse proxy in front of one."""

    changed_hint = (
        "if the peer has a new certificate, compare it with INFO PEER there, then ALTER PEER … FINGERPRINT here"
    )

    def __init__(self, peers: Peers) -> None:
        self._peers = peers

    def find(self, place: str) -> Pin | None:
        """Return the certificate of the peer that has an address; None also if an authority verifies that of its proxy."""
        found = self._peers.by_address(*_split(place))
        if found is None or found.proxy == AUTHORITY:
            return None
        return Pin(found.proxy or found.fingerprint, f"peer {found.name}")

    def others(self, place: str) -> frozenset[str]:
        """A home has the same certificate at each port of its host."""
        return frozenset(each.fingerprint for each in self._peers.on_host(_split(place)[0]))


def _split(place: str) -> tuple[str, int]:
    host, _, port = place.rpartition(":")
    return host.strip("[]"), int(port)
