"""Who writes a trail that arrives from another home: a small file next to the trail.

A trail always has the same writer. Two paths into one trail, or a path into the trail of an Extract, would mix
transactions that the readers cannot tell apart. A sender that was deleted here (DELETE RECVPATH) stays recorded while the trail
has files: only it can continue them.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ggshell.errors import ConflictError, StoreError
from ggshell.files import read_json, write_atomically
from ggshell.home.home import Home
from ggshell.network.local_writers import local_writer
from ggshell.network.remote_group import RemoteGroup
from ggshell.trail.name import TrailName
from ggshell.trail.removing import remove_held, trail_lock

OTHER_WRITER = "GGS-00954"


@dataclass(frozen=True)
class TrailOwner(RemoteGroup):
    """The group that writes a trail. ``since``: microseconds since 1970. ``deleted``: it was deleted by DELETE RECVPATH."""

    since: int = 0
    deleted: bool = False


def owner_path(name: TrailName) -> Path:
    """Return the path of the file that names a trail's owner."""
    return name.folder / f".{name.prefix}.sender"


def owner_of(name: TrailName) -> TrailOwner | None:
    """Return the owner of a trail that arrives from another home; None for any other trail. Raises StoreError.

    A deleted owner of a trail without files no longer counts.
    """
    path = owner_path(name)
    try:
        found = TrailOwner(**read_json(path.read_bytes()))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is damaged"
        raise StoreError(
            f"the file {path}, which names the sender of trail {name}, cannot be read: {reason}",
            hint="restore it from a backup; if the trail has no other writer, remove it and its sender is recorded again",
        ) from error
    return None if found.deleted and not name.sequences() else found


def claim(name: TrailName, sender: TrailOwner) -> TrailOwner | None:
    """Record the sender of a trail, or check that it is the trail's own sender; return the owner before.

    The caller holds the trail's lock. Raises ConflictError (GGS-00954) if something else writes the trail, StoreError,
    DiskError.
    """
    owner = owner_of(name)
    if owner is not None:
        _require(name, owner, sender)
    elif name.sequences():
        raise _refused(name, "it has files that did not arrive from another home")
    if owner is None or owner.deleted or owner.proven != sender.proven:
        _save(name, sender)
    return owner


def require_no_local_writer(home: Home, name: TrailName) -> None:
    """Raise ConflictError (GGS-00954) if a group of a home is to write a trail that has no sender yet; StoreError."""
    writer = local_writer(home, name) if owner_of(name) is None else ""
    if writer:
        raise _refused(name, f"{writer} of this home writes it")


def require_sender(name: TrailName, sender: TrailOwner) -> None:
    """Raise ConflictError (GGS-00954) if another sender writes a trail; StoreError."""
    owner = owner_of(name)
    if owner is not None:
        _require(name, owner, sender)


def require_no_sender(name: TrailName) -> None:
    """Raise ConflictError (GGS-00954) if a trail of this machine arrives from another home; StoreError."""
    owner = owner_of(name)
    if owner is not None:
        raise ConflictError(
            f"trail {name} belongs to its sender: {owner.text} {'wrote' if owner.deleted else 'writes'} it",
            code=OTHER_WRITER,
            hint="use another trail name; if its sender no longer exists, use DELETE RECVPATH … PURGE",
        )


def delete_owner(name: TrailName, *, purge: bool = False) -> None:
    """Delete the sender of a trail, which keeps its files, or remove the files too; under the trail's lock.

    Raises ConflictError while a sender is connected, StoreError, DiskError, OSError.
    """
    with trail_lock(name):
        if purge:
            remove_held(name, 0)
        owner = owner_of(name)
        if owner is None or not name.sequences():
            owner_path(name).unlink(missing_ok=True)
        else:
            _save(name, replace(owner, deleted=True))


def _save(name: TrailName, owner: TrailOwner) -> None:
    write_atomically(owner_path(name), json.dumps(asdict(owner)).encode(), mode=0o640)


def _require(name: TrailName, owner: TrailOwner, sender: TrailOwner) -> None:
    if not owner.is_same(sender):
        other = f" as {owner.proven.login}, not as {sender.proven.login}" if owner.has_name_of(sender) else ""
        raise _refused(name, f"{owner.text} {'wrote' if owner.deleted else 'writes'} it{other}")


def _refused(name: TrailName, why: str) -> ConflictError:
    return ConflictError(
        f"trail {name} cannot be written by another sender: {why}",
        code=OTHER_WRITER,
        hint="use another trail name in the target",
    )
