"""The trails that arrive in this home from others: senders, from the files next to the trails, and the service's figures."""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, NamedTuple

from ggshell.cli.sender_files import sent_trails
from ggshell.errors import GgsError, NotFoundError
from ggshell.groups.process_request import request
from ggshell.home import checkpoint as checkpoints
from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessState, state_of
from ggshell.network.trail_owner import TrailOwner, owner_of
from ggshell.parameters.trail_statements import task_trail
from ggshell.trail.name import TrailName
from ggshell.trail.reach import TrailExtent
from ggshell.types import TrailPosition

RECEIVERS: Final = "RECEIVERS"
"""The request to the service for the figures of trails that arrive."""
_ASK_SECONDS: Final = 5.0
NOTHING: Final = TrailPosition(0, 0)


class ReceivedPath(NamedTuple):
    """A trail that another home sends.

    ``trail``: its name in statements. ``name``: that of the path or group that sends it, with the trail's if several have it.
    ``known``: the service answered; otherwise nothing is known of connections. ``since``: when the connection was made.
    ``completed``: it is the load of a task (RMTTASK) that arrived completely: its Replicat was started for it.
    ``position``: the durable end of the trail. ``bytes``, ``messages``, ``syncs``, ``connections``: since the service started;
    ``last``: when data arrived last. Times are in microseconds since 1970.
    """

    name: str
    trail: str
    place: TrailName
    sender: TrailOwner
    known: bool = False
    connected: bool = False
    address: str = ""
    since: int = 0
    position: TrailPosition = NOTHING
    bytes: int = 0
    messages: int = 0
    syncs: int = 0
    connections: int = 0
    last: int = 0
    completed: bool = False

    @property
    def status(self) -> str:
        if self.completed and not self.connected:
            return "COMPLETED"
        if not self.known:
            return "SERVICE STOPPED"
        return "CONNECTED" if self.connected else "NOT CONNECTED"


def received_paths(home: Home, *, deleted: bool = False) -> list[ReceivedPath]:
    """Return every trail that arrives in a home. ``deleted``: also those whose sender DELETE RECVPATH has deleted.

    Raises StoreError for a file that cannot be read, DiskError."""
    found_owners = ((place, owner_of(place)) for place in sent_trails(home.root.resolve()))
    owners = [
        (place, owner)
        for place, owner in found_owners
        if owner is not None and owner.home and (deleted or not owner.deleted)
    ]
    answer = _asked(home)
    figures = {each["trail"]: each for each in answer or ()}
    found = [_path(home, place, owner, figures, known=answer is not None) for place, owner in owners]
    names = [each.name for each in found]
    unique = [
        each._replace(name=f"{each.name}_{each.place.prefix}") if names.count(each.name) > 1 else each for each in found
    ]
    return sorted(unique, key=lambda each: (each.name, each.trail))


def select_paths(home: Home, wanted: str, *, deleted: bool = False) -> list[ReceivedPath]:
    """Return the paths whose name, sender or trail matches a name or a wildcard. Raises NotFoundError, StoreError."""
    found = [each for each in received_paths(home, deleted=deleted) if _matches(home, each, wanted)]
    if not found:
        raise NotFoundError(
            f"receiver path {wanted[:80]} does not exist.", hint="list the trails with INFO RECVPATH ALL"
        )
    return found


def _matches(home: Home, path: ReceivedPath, wanted: str) -> bool:
    names = (path.name.upper(), path.sender.group.upper())
    texts = (path.trail, path.place.prefix)
    return (
        any(fnmatchcase(name, wanted.upper()) for name in names)
        or any(fnmatchcase(text, wanted) for text in texts)
        or home.resolve(wanted).parent.resolve() / home.resolve(wanted).name == path.place.folder / path.place.prefix
    )


def _path(
    home: Home, place: TrailName, owner: TrailOwner, answers: dict[str, dict[str, Any]], *, known: bool
) -> ReceivedPath:
    """``place``: as the home names it; ``answers``: of the service, by the trail without links."""
    relative = os.path.relpath(place.folder, home.root.resolve())
    place = place.real
    trail = f"./{place.prefix}" if relative == "." else f"./{relative}/{place.prefix}"
    end, completed = TrailExtent.of(place).mark or NOTHING, _is_completed(home, trail, owner)
    found = ReceivedPath(owner.group.upper(), trail, place, owner, known, position=end, completed=completed)
    figures = answers.get(str(place))
    if figures is None:
        return found
    names = ("connected", "address", "since", "bytes", "messages", "syncs", "connections", "last")
    given = {name: figures[name] for name in names if name in figures}
    if figures.get("position"):
        given["position"] = TrailPosition(*figures["position"])
    return found._replace(**given)


def _is_completed(home: Home, trail: str, owner: TrailOwner) -> bool:
    """Whether a trail is the load of a task whose Replicat was started after the load began to arrive."""
    group = Path(trail).parent.name.removeprefix("task-")
    path = home.checkpoint(group, GroupKind.REPLICAT)
    if trail != task_trail(group) or not path.exists():
        return False
    try:
        return checkpoints.load(path).started >= owner.since
    except GgsError:  # INFO REPLICAT reports it
        return False


def _asked(home: Home) -> list[dict[str, Any]] | None:
    """Return what the running service answers; None if it does not run or does not answer."""
    state, entry = state_of(home.service)
    if state is not ProcessState.RUNNING or entry is None:
        return None
    try:
        return list(request(entry.socket, RECEIVERS, timeout=_ASK_SECONDS)["trails"])
    except GgsError:
        return None
