"""INFO, STATS and DELETE RECVPATH: the trails that arrive in this home."""

from __future__ import annotations

from ggshell.cli.groups import is_wildcard
from ggshell.cli.received_paths import received_paths, select_paths
from ggshell.cli.registry import command
from ggshell.cli.results import Message
from ggshell.cli.results.received import ReceivedPaths
from ggshell.cli.session import Session
from ggshell.errors import StateError
from ggshell.network.trail_owner import release


@command("INFO RECVPATH")
@command("INFO RECVPATH ALL")
def info_received(session: Session, *, trail: str = "*", detail: bool = False) -> ReceivedPaths:
    """List the trails that arrive, with their senders and connections; also while the service does not run."""
    found = received_paths(session.home) if trail == "*" else select_paths(session.home, trail)
    return ReceivedPaths(tuple(found))


@command("STATS RECVPATH")
def stats_received(session: Session, *, trail: str) -> ReceivedPaths:
    """Show what has arrived since the service started."""
    return ReceivedPaths(tuple(select_paths(session.home, trail)), counts=True)


@command("DELETE RECVPATH")
def delete_received(session: Session, *, trail: str, force: bool = False) -> Message:
    """Forget the senders of trails, which keep their files."""
    found = select_paths(session.home, trail)
    for each in found:
        if each.connected:
            raise StateError(
                f"RECVPATH {each.name} is connected: {each.sender.text} sends trail {each.trail}.",
                hint="stop the path in the sending home first",
            )
    if not force:
        what = f"{len(found)} trails" if is_wildcard(trail) else f"trail {found[0].trail}"
        session.confirm(f"Forget who sends {what}, so that no sender can continue it")
    for each in found:
        release(each.place)
    return Message(
        tuple(
            f"Deleted RECVPATH {each.name}. Trail {each.trail} is kept; its name is free when its files are removed."
            for each in found
        )
    )
