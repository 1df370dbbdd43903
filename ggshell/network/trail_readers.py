"""The homes that read a trail of this home: a small file next to the trail for each, with the first file that it still needs.

Purging respects these files like the checkpoints of the home's own groups. They stay while the reader is not connected.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ggshell.errors import ProcessError, StoreError
from ggshell.files import disk_errors, read_json, write_atomically
from ggshell.network.proven import UNKNOWN_SENDER
from ggshell.network.remote_group import RemoteGroup
from ggshell.trail.name import TrailName

_FILE = re.compile(r"\.(..)\.reader-[0-9a-f]{16}")


@dataclass(frozen=True)
class TrailReader(RemoteGroup):
    """A path that reads a trail, and the sequence number of the first file that it needs.

    ``updated``: microseconds since 1970."""

    seqno: int
    updated: int


def _path(name: TrailName, home: str, group: str) -> Path:
    key = hashlib.sha256(f"{home}\n{group.upper()}".encode()).hexdigest()[:16]
    return name.folder / f".{name.prefix}.reader-{key}"


def note_reader(name: TrailName, reader: TrailReader) -> None:
    """Record how far a reader is. Raises ProcessError (GGS-00951) if it is another one's note; StoreError, DiskError."""
    _require_same(name, reader)
    write_atomically(_path(name, reader.home, reader.group), json.dumps(asdict(reader)).encode(), mode=0o640)


def forget_reader_of(name: TrailName, asking: RemoteGroup) -> None:
    """Forget a reader that asks for it itself. Raises as ``note_reader`` does."""
    _require_same(name, asking)
    forget_reader(name, asking.home, asking.group)


def forget_reader(name: TrailName, home: str, group: str) -> None:
    """Forget a reader: its files may be purged. Raises DiskError."""
    path = _path(name, home, group)
    with disk_errors("remove", path):
        path.unlink(missing_ok=True)


def _require_same(name: TrailName, reader: RemoteGroup) -> None:
    path = _path(name, reader.home, reader.group)
    recorded = _read(path) if path.exists() else None
    if recorded is not None and not recorded.is_same(reader):
        raise ProcessError(
            f"{recorded.text} reads trail {name} as {recorded.proven.login}, not as {reader.proven.login}",
            code=UNKNOWN_SENDER,
            hint=f"if it is the same home, run DELETE RECVPATH {reader.group} in the source home, then START RECVPATH",
        )


def readers_of(name: TrailName) -> list[TrailReader]:
    """Return the readers of a trail. Raises StoreError for a file that cannot be read."""
    return [each for trail, each in readers_in(name.folder) if trail.prefix == name.prefix]


def readers_in(folder: Path) -> list[tuple[TrailName, TrailReader]]:
    """Return the readers of the trails of a folder. Raises StoreError."""
    if not folder.is_dir():
        return []
    found = ((path, _FILE.fullmatch(path.name)) for path in sorted(folder.iterdir()))
    return [(TrailName(folder, match[1]), _read(path)) for path, match in found if match]


def _read(path: Path) -> TrailReader:
    try:
        found = TrailReader(**read_json(path.read_bytes()))
        found = replace(found, seqno=int(found.seqno))
    except (OSError, ValueError, TypeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is damaged"
        raise StoreError(
            f"the file {path}, which records the position of another home that reads the trail, cannot be read: {reason}",
            hint="remove it: its reader writes it again when it connects",
        ) from error
    return found
