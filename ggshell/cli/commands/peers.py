"""ADD, ALTER, DELETE and INFO PEER: the homes that this home exchanges trails with, and how they recognize this one."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from ggshell.cli.banner import short_host
from ggshell.cli.registry import command
from ggshell.cli.results import Listing, Message
from ggshell.cli.service_facts import place_of
from ggshell.cli.session import Session
from ggshell.errors import NotFoundError
from ggshell.home.peers import Peer, Peers
from ggshell.parameters.loading import load_service
from ggshell.parameters.service_parameters import ServiceParameters


@command("ADD PEER")
def add_peer(
    session: Session, *, peer_name: str, fingerprint: str, address: tuple[str, ...] = (), proxy: str = ""
) -> Message:
    """Add a peer."""
    session.home.ensure()
    peer = Peers(session.home).add(peer_name, ", ".join(address), fingerprint, proxy)
    return Message((f"Peer {peer.name} added.",), apart=True)


@command("ALTER PEER")
def alter_peer(
    session: Session,
    *,
    peer_name: str,
    address: tuple[str, ...] | None = None,
    fingerprint: str | None = None,
    proxy: str | None = None,
) -> Message:
    """Change the addresses, the fingerprint or the proxy of a peer; ``""`` removes addresses and proxy."""
    addresses = None if address is None else ", ".join(address)
    peer = Peers(session.home).alter(peer_name, address=addresses, fingerprint=fingerprint, proxy=proxy)
    return Message((f"Peer {peer.name} altered.",), apart=True)


@command("DELETE PEER")
def delete_peer(session: Session, *, peer_name: str) -> Message:
    """Delete a peer."""
    Peers(session.home).delete(peer_name)
    return Message((f"Peer {peer_name} deleted.",), apart=True)


@command("INFO PEER")
@command("INFO PEERS")
def info_peer(session: Session, *, peer_name: str = "*") -> Listing:
    """List the peers, after this home itself. Raises NotFoundError, ParameterError, StoreError, DiskError."""
    peers = [peer for peer in Peers(session.home).all() if fnmatchcase(peer.name, peer_name)]
    if not peers and not set(peer_name) & set("*?"):
        raise NotFoundError(f"peer {peer_name} does not exist", hint="list the peers with INFO PEER")
    settings = load_service(session.home.parameters("service"))
    own = Peer(_own_name(), place_of(settings), _own_fingerprint(session, settings))
    rows: list[tuple[object, ...]] = [(*own[:3], _addition(own), None)]
    rows += [(*peer[:3], None, peer.proxy or None) for peer in peers]
    return Listing(("peer", "address", "fingerprint", "statement", "proxy"), rows, _layout(own, settings, peers))


def _addition(peer: Peer) -> str:
    """Return the statement that adds a peer."""
    return f"ADD PEER {peer.name}, ADDRESS {peer.address}, FINGERPRINT {peer.fingerprint}"


def _own_name() -> str:
    """Return a peer name for this home: that of its machine."""
    return re.sub(r"[^A-Za-z0-9-]", "-", short_host()).strip("-")[:64] or "home"


def _own_fingerprint(session: Session, settings: ServiceParameters) -> str:
    """Return the fingerprint of this home's certificate; make it if there is none. Raises StoreError, DiskError."""
    from ggshell.home.certificate import ensure_certificate, read_certificate

    home = session.home
    if settings.certificate:
        return read_certificate(home.resolve(settings.certificate)).fingerprint
    home.ensure()
    return read_certificate(ensure_certificate(home, session.clock)[0]).fingerprint


def _layout(own: Peer, settings: ServiceParameters, peers: list[Peer]) -> str:
    lines = ["", f"The fingerprint of this home is {own.fingerprint}.", "To add it as a peer, run on the other home:"]
    lines += ["", f"  {_addition(own)}", ""]
    if settings.is_local:
        lines += [
            "The service of this home listens on this machine only. ADDRESS in dirprm/service.prm changes this.",
            "",
        ]
    if not peers:
        return "\n".join([*lines, "No peers. ADD PEER adds the first one.", ""])
    width = max(9, *(len(peer.name) + 2 for peer in peers))
    second = max(9, *(len(peer.address) + 2 for peer in peers))
    table = [Peer("Peer", "Address", "Fingerprint"), *peers]
    for each in table:
        lines.append(f"{each.name:<{width}}{each.address:<{second}}{each.fingerprint}")
        lines += [f"{'':<{width}}{'':<{second}}proxy {each.proxy}"] if each.proxy else []
    return "\n".join([*lines, ""])
