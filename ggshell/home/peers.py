"""The peers of a home: other homes that it exchanges trails with, each recognized by the fingerprint of its certificate.

A peer is to a home what a line of ``known_hosts`` is to ssh. The file is encrypted, so that a change by another program is
recognized.
"""

from __future__ import annotations

import hmac
import re
from typing import Final, NamedTuple

from ggshell.errors import ConflictError, NotFoundError, UsageError
from ggshell.home.home import Home
from ggshell.home.sealed_file import SealedFile

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_ADDRESS: Final = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]{1,253}):(?P<port>\d{1,5})")
_DIGITS: Final = re.compile(r"[0-9A-F]{64}")
_PREFIX: Final = "SHA256:"

StoredPeers = dict[str, dict[str, str]]


class Peer(NamedTuple):
    """Another home. ``address``: ``host:port`` of its service, empty for a peer that only connects to this home.

    ``fingerprint``: as ``home.certificate.fingerprint_of`` returns it.
    """

    name: str
    address: str
    fingerprint: str


class Peers:
    """The peers of a home."""

    def __init__(self, home: Home) -> None:
        path, lock = home.root / "dirwlt" / "peers.ggs", home.lock_of_store("peers")
        self._file = SealedFile(path, b"GGSPEER1", "the file of peers", "add the first peer with ADD PEER", lock)

    def all(self) -> list[Peer]:
        """Return every peer, sorted by name. Raises StoreError."""
        return [Peer(name, **stored) for name, stored in sorted(self._load().items())]

    def by_fingerprint(self, text: str) -> Peer | None:
        """Return the first peer with a fingerprint, None if there is none. Raises UsageError, StoreError."""
        wanted = parse_fingerprint(text)
        return next((peer for peer in self.all() if hmac.compare_digest(peer.fingerprint, wanted)), None)

    def by_address(self, host: str, port: int) -> Peer | None:
        """Return the peer whose service has this host and port, None if there is none. Raises StoreError."""
        wanted = f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"
        return next((peer for peer in self.all() if peer.address == wanted.lower()), None)

    def add(self, name: str, address: str, fingerprint: str) -> Peer:
        """Add a peer. Raises UsageError, ConflictError for a name or an address that another peer has; StoreError."""
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"{name[:80]} is not a valid peer name", hint="use letters, digits and _ . -; at most 64 characters"
            )
        peer = Peer(name, parse_address(address), parse_fingerprint(fingerprint))
        with self._file.changing():
            peers = self._load()
            if name in peers:
                raise ConflictError(f"peer {name} already exists", hint=f"use ALTER PEER {name}")
            self._save(peers, peer)
        return peer

    def alter(self, name: str, *, address: str | None = None, fingerprint: str | None = None) -> Peer:
        """Change what is given; an empty address removes it. Raises NotFoundError, UsageError, ConflictError, StoreError."""
        with self._file.changing():
            peers = self._load()
            peer = Peer(name, **_required(peers, name))
            if address is not None:
                peer = peer._replace(address=parse_address(address))
            if fingerprint is not None:
                peer = peer._replace(fingerprint=parse_fingerprint(fingerprint))
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
            if peer.address and stored["address"] == peer.address and name != peer.name:
                raise ConflictError(
                    f"peer {name} already has the address {peer.address}", hint=f"use ALTER PEER {name}"
                )
        self._file.save({**peers, peer.name: {"address": peer.address, "fingerprint": peer.fingerprint}})

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


def parse_address(text: str) -> str:
    """Return ``host:port`` in lower case, or an empty text for an empty one. Raises UsageError."""
    found = _ADDRESS.fullmatch(text)
    if text and (found is None or not 1 <= int(found["port"]) <= 65535):
        raise UsageError(f"{text[:100]} is not a valid address", hint="write host:port")
    return f"{found['host']}:{int(found['port'])}".lower() if found is not None else ""
