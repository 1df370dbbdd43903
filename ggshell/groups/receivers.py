"""How a group reaches the receivers of its remote trails: addresses from RMTHOST or a path's target, keys and logins."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote

from ggshell.clock import Clock
from ggshell.errors import UsageError
from ggshell.groups.lifecycle import GroupContext
from ggshell.home.checkpoint import GroupOptions, WriteCheckpoint
from ggshell.home.credential import DEFAULT_DOMAIN, CredentialStore
from ggshell.home.home import Home
from ggshell.home.identity import ensure_identity
from ggshell.links import LINKS, Link, Seen
from ggshell.network.addresses import TARGETS, ReceiverAddress, parse_receiver
from ggshell.network.dialing import DEFAULT_SOCKET, Access, SocketOptions, dial
from ggshell.network.frames import LONGEST_DATA, Compression
from ggshell.network.handshake import Sender
from ggshell.network.link import SILENCE_SECONDS
from ggshell.network.link import Link as NetworkLink
from ggshell.network.local_readers import require_unread
from ggshell.network.proof import home_key
from ggshell.network.proxy_url import Proxy, parse_proxy, socks_proxy
from ggshell.network.remote_files import FULL_PACE, WINDOW, Pace, RemoteTrailFiles
from ggshell.network.trail_owner import require_no_sender
from ggshell.parameters.loading import load_manager, load_service
from ggshell.parameters.remote_hosts import MANAGER_PORT, RemoteHost
from ggshell.trail.files import LocalTrailFiles, TrailFiles
from ggshell.trail.name import TrailName
from ggshell.trail.removing import remove_held

STOP_PATIENCE: Final = 2.0
"""Seconds that a group that stops waits for acknowledgements before it gives the connection up."""


def receiver_of(home: Home, host: RemoteHost | None, trail: str) -> str:
    """Return the URL of the receiver of a remote trail; empty if the trail is a local one.

    A loopback address with a port of this home, or without a port, means this home: published parameter files use RMTHOST
    localhost for trails on the same machine. Raises ParameterError, StoreError.
    """
    if host is None or (host.is_loopback and (not host.port or host.port in own_ports(home))):
        return ""
    return f"wss://{host.place}{TARGETS}?trail={quote(trail, safe='/.')}"


def own_ports(home: Home) -> frozenset[int]:
    """Return the ports of this home's Manager and service. Raises ParameterError, StoreError."""
    manager = home.parameters("mgr")
    port = load_manager(manager).port if manager.exists() else MANAGER_PORT
    return frozenset({port, load_service(home.parameters("service")).port})


class Receivers:
    """Opens the files of a group's trails, here or in other homes."""

    def __init__(
        self,
        context: GroupContext,
        hosts: Mapping[TrailName, RemoteHost] | None = None,
        purges: Mapping[str, int] | None = None,
    ) -> None:
        """``hosts``: RMTHOST of the remote trails of a parameter file. ``purges``: the trails whose files are removed first,
        each from a sequence number on."""
        self._home: Home = context.home
        self._group = context.group
        self._clock: Clock = context.clock
        self._options: GroupOptions = context.checkpoint.options
        self._hosts = hosts or {}
        self._purges = purges or {}

    def located(self, targets: Sequence[WriteCheckpoint]) -> tuple[WriteCheckpoint, ...]:
        """Return the trails with the receivers that the parameter file names now; a path's do not change."""
        if not self._hosts and not any(each.receiver for each in targets):
            return tuple(targets)
        return tuple(
            each._replace(receiver=receiver_of(self._home, self._host(each), each.trail))
            if each.remote and not self._options.target
            else each
            for each in targets
        )

    def open(self, target: WriteCheckpoint) -> TrailFiles:
        """Open the files of a trail. Raises ConnectionLostError, ProcessError, ConflictError, DiskError, TrailError."""
        purge = self._purges.get(target.trail)
        if not target.is_elsewhere:
            return self._open_here(TrailName.parse(target.trail, self._home.root), purge)
        host = self._host(target)
        threshold = host.compress_threshold if host is not None else self._options.compression
        pace = _manner(host)[1]
        link, address = self.connect(target)
        return RemoteTrailFiles(
            link,
            address.where,
            address.trail,
            self.sender,
            target.current if target.current.rba and purge is None else None,
            Compression(threshold) if threshold is not None else None,
            pace,
            purge=purge,
        )

    def _open_here(self, name: TrailName, purge: int | None) -> TrailFiles:
        """Open the files of a trail of this machine, after removing those from a sequence number on."""
        require_no_sender(name)

        def prepare() -> None:
            if purge is not None:
                require_unread(self._home, name, purge)
                remove_held(name, purge)

        return LocalTrailFiles.open(name, prepare)

    @property
    def sender(self) -> Sender:
        """Who this group is for a receiver."""
        return sender_of(self._home, self._group, self._clock, self._access())

    def connect(self, target: WriteCheckpoint) -> tuple[NetworkLink, ReceiverAddress]:
        """Connect to the receiver of a trail. Raises ConnectionLostError, ProcessError."""
        address = parse_receiver(target.receiver)
        host = self._host(target)
        proxy = _proxy_of_host(self._home, host) or proxy_of(self._home, self._options)
        settings = _manner(host)[0]._replace(proxy=proxy)
        link = dial(address, self._home, self._clock, self._access(), settings)
        LINKS.enter(link, _WatchedLink(link, address))
        return link, address

    def _host(self, target: WriteCheckpoint) -> RemoteHost | None:
        return self._hosts.get(TrailName.parse(target.trail, self._home.root))

    def _access(self) -> Access:
        return access_of(self._home, self._options)


def sender_of(home: Home, group: str, clock: Clock, access: Access) -> Sender:
    """Return what a group says about itself to other homes. Raises StoreError, DiskError.

    One that signs in as a user need not know which home it gives a proof to; a client certificate is proof enough."""
    key = home_key(home, clock) if access.certificate is None else None
    return Sender(ensure_identity(home.root).id, group, key, access.login is not None)


def access_of(home: Home, options: GroupOptions) -> Access:
    """Return the login of AUTHENTICATION USERIDALIAS, or the files of AUTHENTICATION CERTIFICATE.

    Raises StoreError, NotFoundError, UsageError."""
    if options.access_alias:
        domain = options.access_domain or DEFAULT_DOMAIN
        return Access(CredentialStore(home).resolve(options.access_alias, domain))
    if options.access_certificate:
        folder = home.root / "dirwlt"
        name = options.access_certificate
        if "/" in name:
            raise UsageError(f"{name} is not a valid name of a certificate", hint="use the name of dirwlt/NAME.crt")
        return Access(None, folder / f"{name}.crt", folder / f"{name}.key")
    return Access()


def proxy_of(home: Home, options: GroupOptions) -> Proxy | None:
    """Return the proxy of a path, None without one. Raises NotFoundError for an unknown alias, StoreError, UsageError."""
    found = options.path
    return _with_login(home, parse_proxy(found.proxy), found.proxy_alias, found.proxy_domain) if found.proxy else None


def _proxy_of_host(home: Home, host: RemoteHost | None) -> Proxy | None:
    """Return SOCKSPROXY of RMTHOST. Raises as ``proxy_of``."""
    if host is None or not host.socks.place:
        return None
    return _with_login(home, socks_proxy(host.socks.place), host.socks.alias, host.socks.domain)


def _with_login(home: Home, proxy: Proxy, alias: str, domain: str) -> Proxy:
    if not alias:
        return proxy
    return proxy._replace(login=CredentialStore(home).resolve(alias, domain or DEFAULT_DOMAIN))


def _manner(host: RemoteHost | None) -> tuple[SocketOptions, Pace]:
    """Return how RMTHOST says to send; without RMTHOST, how a path sends."""
    if host is None:
        return DEFAULT_SOCKET, FULL_PACE
    data = min(host.most_data, LONGEST_DATA) or LONGEST_DATA
    pace = Pace(WINDOW if host.streams else 0, data)
    return SocketOptions(host.send_buffer, host.silence or SILENCE_SECONDS, plain=True), pace


class _WatchedLink:
    """A connection to a receiver as the watch of the process sees it: a stop request ends a wait for acknowledgements."""

    canceled = False
    observable = True
    patience = STOP_PATIENCE

    def __init__(self, link: NetworkLink, address: ReceiverAddress) -> None:
        self._link = weakref.ref(link)
        self._address = address

    @property
    def waits(self) -> bool:
        link = self._link()
        return link is not None and link.is_waiting

    def address(self) -> str:
        return self._address.where

    def observe(self, links: Sequence[Link]) -> Mapping[Link, Seen]:
        """A receiver has no locks to report."""
        return {}

    def cancel(self) -> None:
        self.break_off()

    def break_off(self) -> None:
        link = self._link()
        if link is not None:
            link.interrupt()
