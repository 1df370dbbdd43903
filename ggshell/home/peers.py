"""The peers of a home: other homes that it exchanges trails with, each recognized by the fingerprint of its certificate.

A peer is to a home what a line of ``known_hosts`` is to ssh: one home, with one certificate, at one or more addresses. The file
is encrypted, so that a change by another program is recognized.
"""

from __future__ import annotations

import hmac
import re
from typing import Final, NamedTuple

from ggshell.errors import ConflictError, NotFoundError, UsageError
from ggshell.home.home import Home
from ggshell.home.sealed_file import SealedFile
from ggshell.hosts import host_and_port

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_ADDRESS: Final = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]{1,253}):(?P<port>\d{1,5})")
_DIGITS: Final = re.compile(r"[0-9A-F]{64}")
_PREFIX: Final = "SHA256:"

AUTHORITY: Final = "AUTHORITY"

StoredPeers = dict[str, dict[str, str]]


class Peer(NamedTuple):
    """Another home. ``address``: ``host:port`` of its service, several with commas; empty for a peer that only connects here.

    ``fingerprint``: that of the home, as ``home.certificate.fingerprint_of`` returns it. ``proxy``: the fingerprint of the
    reverse proxy that answers at the addresses, ``AUTHORITY`` if an authority verifies its certificate, empty for none.
    """

    name: str
    address: str
    fingerprint: str
    proxy: str = ""

    @property
    def addresses(self) -> tuple[str, ...]:
        return tuple(self.address.split(", ")) if self.address else ()


class Peers:
    """The peers of a home."""

    def __init__(self, home: Home) -> None:
        path, lock = home.root / "dirwlt" / "peers.ggs", home.lock_of_store("peers")
        self._file = SealedFile(path, b"GGSPEER1", "the file of peers", "add the first peer with ADD PEER", lock)

    def version(self) -> tuple[int, int, int]:
        """Return a value that changes with every change of the peers."""
        return self._file.version()

    def all(self) -> list[Peer]:
        """Return every peer, sorted by name. Raises StoreError."""
        return [Peer(name, **stored) for name, stored in sorted(self._load().items())]

    def by_fingerprint(self, text: str) -> Peer | None:
        """Return the first peer with a fingerprint, None if there is none. Raises UsageError, StoreError."""
        wanted = parse_fingerprint(text)
        return next((peer for peer in self.all() if hmac.compare_digest(peer.fingerprint, wanted)), None)

    def by_address(self, host: str, port: int) -> Peer | None:
        """Return the peer whose service has this host and port, None if there is none. Raises StoreError."""
        wanted = host_and_port(host.strip("[]"), port).lower()
        return next((peer for peer in self.all() if wanted in peer.addresses), None)

    def on_host(self, host: str) -> list[Peer]:
        """Return the peers with an address on a host, at any port. Raises StoreError."""
        wanted = host_and_port(host.strip("[]"), 0).lower().removesuffix("0")
        return [peer for peer in self.all() if any(each.startswith(wanted) for each in peer.addresses)]

    def add(self, name: str, address: str, fingerprint: str, proxy: str = "") -> Peer:
        """Add a peer; ``address`` may name several with commas.

        Raises UsageError, ConflictError for a name or an address that another peer has; StoreError."""
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"{name[:80]} is not a valid peer name", hint="use letters, digits and _ . -; at most 64 characters"
            )
        peer = Peer(name, parse_addresses(address), parse_fingerprint(fingerprint), parse_proxy(proxy))
        with self._file.changing():
            peers = self._load()
            if name in peers:
                raise ConflictError(f"peer {name} already exists", hint=f"use ALTER PEER {name}")
            self._save(peers, peer)
        return peer

    def alter(
        self, name: str, *, address: str | None = None, fingerprint: str | None = None, proxy: str | None = None
    ) -> Peer:
        """Change what is given; an empty address or proxy removes it.

        Raises NotFoundError, UsageError, ConflictError, StoreError."""
        with self._file.changing():
            peers = self._load()
            peer = Peer(name, **_required(peers, name))
            if address is not None:
                peer = peer._replace(address=parse_addresses(address))
            if fingerprint is not None:
                peer = peer._replace(fingerprint=parse_fingerprint(fingerprint))
            if proxy is not None:
                peer = peer._replace(proxy=parse_proxy(proxy))
            self._save(peers, peer)
        return peer

    def delete(self, name: str) -> None:
        """Delete a peer. Raises NotFoundError, StoreError."""
        with self._file.changing():
            peers = self._load()
            _required(peers, name)
            del peers[name]
            self._file.save(peers)

    def _save(self, peers: StoredPeers, peer: Peer) -> None:
        """Store a peer with the others. Raises ConflictError: which key to expect at an address must be certain."""
        for name, stored in peers.items():
            shared = set(Peer(name, **stored).addresses) & set(peer.addresses) if name != peer.name else set()
            if shared:
                raise ConflictError(
                    f"peer {name} already has the address {', '.join(sorted(shared))}", hint=f"use ALTER PEER {name}"
                )
        stored = {"address": peer.address, "fingerprint": peer.fingerprint, "proxy": peer.proxy}
        self._file.save({**peers, peer.name: stored})

    def _load(self) -> StoredPeers:
        peers: StoredPeers = self._file.load() if self._file.exists else {}
        return peers


def _required(peers: StoredPeers, name: str) -> dict[str, str]:
    if name not in peers:
        raise NotFoundError(f"peer {name} does not exist", hint="list the peers with INFO PEER")
    return peers[name]


def parse_fingerprint(text: str) -> str:
    """Return a SHA-256 fingerprint in pairs of hexadecimal digits.

    Upper and lower case, with or without colons and the prefix ``SHA256:``. Raises UsageError.
    """
    digits = text.upper().removeprefix(_PREFIX).replace(":", "")
    if not _DIGITS.fullmatch(digits):
        raise UsageError(
            f"{text[:100]} is not a valid fingerprint",
            hint="use the SHA-256 fingerprint that INFO PEER shows on the other home: 64 hexadecimal digits",
        )
    return ":".join(digits[place : place + 2] for place in range(0, len(digits), 2))


def parse_proxy(text: str) -> str:
    """Return the fingerprint of a reverse proxy, ``AUTHORITY``, or an empty text for an empty one. Raises UsageError."""
    return text.upper() if text.upper() in ("", AUTHORITY) else parse_fingerprint(text)


def parse_addresses(text: str) -> str:
    """Return addresses in lower case with commas, or an empty text for an empty one. Raises UsageError."""
    return ", ".join(dict.fromkeys(_address(each.strip()) for each in text.split(","))) if text else ""


def _address(text: str) -> str:
    found = _ADDRESS.fullmatch(text)
    if found is None or not 1 <= int(found["port"]) <= 65535:
        raise UsageError(f"{text[:100]} is not a valid address", hint="write host:port")
    return f"{found['host']}:{int(found['port'])}".lower()
