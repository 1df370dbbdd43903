"""Who writes a trail that arrives from another home: a small file beside the trail.

A trail has one writer for its whole life. Two paths into one trail, or a path into the trail of an Extract, would mix
transactions that the readers cannot tell apart.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from ggshell.errors import ConflictError, StoreError
from ggshell.files import read_json, write_atomically
from ggshell.trail.name import TrailName

OTHER_WRITER = "GGS-00954"


class TrailOwner(NamedTuple):
    """The home (its id), its machine, and the group or path there that writes a trail. ``since``: microseconds since 1970."""

    home: str
    host: str
    group: str
    since: int = 0

    @property
    def text(self) -> str:
        return f"{self.group} of home {self.home} on {self.host}"


def owner_path(name: TrailName) -> Path:
    """Return the path of the file that names a trail's owner."""
    return name.folder / f".{name.prefix}.sender"


def owner_of(name: TrailName) -> TrailOwner | None:
    """Return the owner of a trail that arrives from another home; None for any other trail. Raises StoreError."""
    path = owner_path(name)
    try:
        return TrailOwner(**read_json(path.read_bytes()))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is damaged"
        raise StoreError(
            f"the file {path}, which names the sender of trail {name}, cannot be read: {reason}",
            hint="restore it from a backup; if the trail has no other writer, remove it and its sender is recorded again",
        ) from error


def claim(name: TrailName, sender: TrailOwner) -> None:
    """Record the sender of a new trail, or check that it is the trail's own sender.

    The caller holds the trail's lock. Raises ConflictError (GGS-00954) if something else writes the trail, StoreError,
    DiskError.
    """
    require_sender(name, sender)
    if owner_of(name) is None:
        if name.sequences():
            raise _refused(name, "it has files that did not arrive from another home")
        write_atomically(owner_path(name), json.dumps(sender._asdict()).encode(), mode=0o640)


def require_sender(name: TrailName, sender: TrailOwner) -> None:
    """Raise ConflictError (GGS-00954) if another sender writes a trail; StoreError."""
    owner = owner_of(name)
    if owner is not None and (owner.home, owner.group.upper()) != (sender.home, sender.group.upper()):
        raise _refused(name, f"{owner.text} writes it")


def require_no_sender(name: TrailName) -> None:
    """Raise ConflictError (GGS-00954) if a trail of this machine arrives from another home; StoreError."""
    owner = owner_of(name)
    if owner is not None:
        raise ConflictError(
            f"trail {name} belongs to its sender: {owner.text} writes it",
            code=OTHER_WRITER,
            hint="use another trail name; if its sender is gone, use DELETE RECVPATH",
        )


def release(name: TrailName) -> None:
    """Forget the sender of a trail."""
    owner_path(name).unlink(missing_ok=True)


def _refused(name: TrailName, why: str) -> ConflictError:
    return ConflictError(
        f"trail {name} cannot be written by another sender: {why}",
        code=OTHER_WRITER,
        hint="use another trail name in the target",
    )
