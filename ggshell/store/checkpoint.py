"""Checkpoint files: what a group is, how far it has read and written, and when it last said so.

One file a group (``dirchk/<GROUP>.cpe`` or ``.cpr``), one writer: the running process, or a command while it does not run.
Replaced atomically, with a checksum and the previous one kept.  INFO reads these files, so it works while everything
runs or nothing does.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from ggshell.errors import StoreError
from ggshell.files import write_atomically
from ggshell.types import LogPosition, TrailPosition

VERSION = 1
DAMAGED = "GGS-00302"
_AGAIN = {
    ".cpr": "; or ADD REPLICAT again, which takes its row of the checkpoint table",
    ".cpe": "; or ADD EXTRACT … LSN (its slot's confirmed_flush_lsn) and ADD EXTTRAIL again: all before is in the trail",
}
"""Another way out, by the kind of group."""


class GroupType(StrEnum):
    """What kind of process a group is."""

    EXTRACT = "EXTRACT"
    REPLICAT = "REPLICAT"
    PATH = "DISTPATH"


class SourceType(StrEnum):
    """What a group reads."""

    LOG = "TRANLOG"
    TRAIL = "EXTTRAIL"
    TABLE = "SOURCEISTABLE"


class StopStatus(StrEnum):
    """How the last run ended (INFO … SHOWCH): abended or still running, gracefully, forced."""

    ABENDED = "A"
    GRACEFUL = "G"
    FORCED = "F"


class ReadCheckpoint(NamedTuple):
    """How far the source was read.  Positions are LogPosition (``log``) or TrailPosition (``trail``); times in
    microseconds since 1970, 0 where not available.

    ``startup`` where the last run began; ``recovery`` where reading must begin to rebuild the oldest transaction that was
    open; ``current`` after the last record read.
    """

    source: SourceType
    trail: str = ""
    startup: LogPosition | TrailPosition = LogPosition(0, 0, 0)
    startup_time: int = 0
    recovery: LogPosition | TrailPosition = LogPosition(0, 0, 0)
    recovery_time: int = 0
    current: LogPosition | TrailPosition = LogPosition(0, 0, 0)
    current_time: int = 0

    def reached(self, place: TrailPosition, time: int, *, recovery_time: int | None = None) -> ReadCheckpoint:
        """All before a place in a trail is done, the last of it of this time; where no run began yet, this one began there."""
        return self._replace(
            startup=self.startup if isinstance(self.startup, TrailPosition) else place,
            recovery=place,
            recovery_time=self.recovery_time if recovery_time is None else recovery_time,
            current=place,
            current_time=time,
        )


LAKE = "SPARK"
"""The kind (``options``) of a Replicat that delivers to a lake."""


class WriteCheckpoint(NamedTuple):
    """How far one output trail was written, durably; ``release``: FORMAT RELEASE, empty for the newest."""

    trail: str
    remote: bool = False
    megabytes: int = 500
    current: TrailPosition = TrailPosition(0, 0)
    current_time: int = 0
    release: str = ""


class Checkpoint(NamedTuple):
    """Everything a group knows of itself.

    ``begin`` is where it was told to start (text as typed, ``NOW`` resolved in ``begin_csn``/``begin_time``);
    ``record_time`` the commit time of the last record processed; ``caught_up`` the last moment at which no input was left
    (0: never); ``latest_csn``/``latest_xid`` the last transaction finished; ``options`` further facts by name (slot,
    checkpoint table, path target …).
    """

    group: str
    type: GroupType
    read: ReadCheckpoint
    write: tuple[WriteCheckpoint, ...] = ()
    description: str = ""
    created: int = 0
    begin: str = "NOW"
    begin_csn: str = ""
    begin_time: int = 0
    started: int = 0
    updated: int = 0
    stop: StopStatus = StopStatus.ABENDED
    result: int = 0
    record_time: int = 0
    caught_up: int = 0
    latest_csn: str = ""
    latest_xid: str = ""
    options: Mapping[str, Any] = MappingProxyType({})


def save(path: Path, checkpoint: Checkpoint) -> None:
    """Replace a checkpoint file.  Raises DiskError; the old checkpoint then stands."""
    body = json.dumps(_plain(checkpoint), separators=(",", ":")).encode()
    write_atomically(path, b"GGSCHK %d %08x\n" % (VERSION, zlib.crc32(body)) + body, keep_previous=True)


def previous(path: Path) -> Path:
    """Where the checkpoint before the one in a file is kept."""
    return path.with_name(path.name + ".previous")


def load(path: Path) -> Checkpoint:
    """Read a checkpoint file.

    Raises StoreError naming the file and the way out when it is missing or damaged (the previous one is kept beside it:
    ``<file>.previous``).
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise StoreError(f"checkpoint file {path} does not exist", hint="add the group again") from None
    except OSError as error:
        raise StoreError(f"cannot read checkpoint file {path}: {error.strerror}") from error
    return decode(data, path)


def decode(data: bytes, path: Path) -> Checkpoint:
    """The checkpoint in a file's bytes.  Raises StoreError when they are damaged or of a newer version."""
    head, _, body = data.partition(b"\n")
    fields = head.split()
    if len(fields) != 3 or fields[0] != b"GGSCHK":
        raise _damaged(path, "it does not begin as one")
    if fields[1] != b"%d" % VERSION:
        raise _damaged(path, f"it has version {fields[1].decode(errors='replace')}, this program reads {VERSION}")
    if fields[2] != b"%08x" % zlib.crc32(body):
        raise _damaged(path, "its checksum does not fit")
    try:
        return _checkpoint(json.loads(body))
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(path, f"its content cannot be read ({error})") from error


def set_aside(path: Path) -> Path | None:
    """Move a damaged file out of the way; its new name, None when there is no file or it is whole.  Raises StoreError."""
    if not path.exists():
        return None
    try:
        load(path)
    except StoreError as error:
        if error.code != DAMAGED:
            raise
    else:
        return None
    aside = path.with_name(path.name + ".damaged")
    path.replace(aside)
    return aside


def _damaged(path: Path, why: str) -> StoreError:
    again = _AGAIN.get(path.suffix, "")
    return StoreError(
        f"checkpoint file {path} is damaged: {why}",
        code=DAMAGED,
        hint=f"the one before it is {previous(path).name}: copy it over {path.name} and start the group again{again}",
    )


def _plain(value: Any) -> Any:
    """NamedTuples become objects, so that a file can be read by a person and survives new fields."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: _plain(field) for name, field in value._asdict().items()}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value


def _position(fields: dict[str, int]) -> LogPosition | TrailPosition:
    return TrailPosition(**fields) if "seqno" in fields else LogPosition(**fields)


def _read(fields: dict[str, Any]) -> ReadCheckpoint:
    places: dict[str, Any] = {name: _position(fields.pop(name)) for name in ("startup", "recovery", "current")}
    return ReadCheckpoint(source=SourceType(fields.pop("source")), **places, **fields)


def _checkpoint(fields: dict[str, Any]) -> Checkpoint:
    read = _read(fields.pop("read"))
    write = tuple(WriteCheckpoint(current=TrailPosition(**item.pop("current")), **item) for item in fields.pop("write"))
    kind, stop = GroupType(fields.pop("type")), StopStatus(fields.pop("stop"))
    return Checkpoint(type=kind, read=read, write=write, stop=stop, **fields)
