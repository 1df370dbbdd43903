"""The checkpoint file of Bounded Recovery (``CP.<GROUP>.000000790``): what one checkpoint holds, and its bytes.

It is written last and names every persisted object's files with their sizes and checksums: a checkpoint without it never
was, one with it is whole.
"""

from __future__ import annotations

import json
import zlib
from typing import Any, NamedTuple

from ggshell.capture.decisions import Cursor
from ggshell.errors import CaptureError
from ggshell.types import LogPosition

VERSION = 1
_MAGIC = b"GGSBRCP"
_PLACES = ("position_place", "restart_place")
DAMAGED = "OGG-30355"


class Identity(NamedTuple):
    """Where a checkpoint is good: its files are the program's own and are not carried to another machine or version."""

    machine: str
    system: str
    version: str

    def difference(self, other: Identity) -> str:
        """What is not the same; empty when everything is."""
        names = ("machine", "operating system", "version of ggshell")
        found = [
            f"another {name} ({there}, here {here})"
            for name, there, here in zip(names, self, other, strict=True)
            if there != here
        ]
        return ", ".join(found)


class ObjectFile(NamedTuple):
    """One file of a persisted object."""

    name: str
    size: int
    checksum: int


class PersistedObject(NamedTuple):
    """An open transaction that stands in files.

    ``begin`` and ``begin_time`` (microseconds since 1970) as in the cache, ``begin_place`` the same as file and byte;
    the files hold what there was of it up to the cursor ``held``: so many ``messages``, ``state`` and ``data`` bytes;
    ``written`` is the number of the checkpoint that wrote the files: an earlier one than the manifest's for a transaction
    that nothing has changed since.
    """

    number: int
    xid: int
    name: str
    begin: int
    begin_time: int
    begin_place: LogPosition
    held: Cursor
    messages: int
    state: int
    data: int
    written: int
    files: tuple[ObjectFile, ...]


class BoundedCheckpoint(NamedTuple):
    """One checkpoint.

    ``time``: when it was made; ``position``: everything in the log before it had been seen, and every transaction that
    committed before it was durable in the trail; ``restart``: where a recovery from it begins to read; their times are the
    log's own, their places the same as file and byte.  ``fingerprint`` stands for what was captured,
    ``incarnation`` for the group's life since its start point was last set.
    Times in microseconds since 1970, ``interval`` in seconds.
    """

    group: str
    number: int
    time: int
    interval: int
    position: int
    position_time: int
    restart: int
    restart_time: int
    restart_name: str
    position_place: LogPosition
    restart_place: LogPosition
    identity: Identity
    fingerprint: str
    incarnation: int
    objects: tuple[PersistedObject, ...] = ()

    @property
    def state(self) -> int:
        """Bytes of state of all objects."""
        return sum(item.state for item in self.objects)

    @property
    def data(self) -> int:
        """Bytes of data of all objects."""
        return sum(item.data for item in self.objects)


def encode(checkpoint: BoundedCheckpoint) -> bytes:
    """The file's bytes."""
    fields: dict[str, Any] = checkpoint._asdict()
    fields["identity"] = checkpoint.identity._asdict()
    fields |= {name: list(fields[name]) for name in _PLACES}
    fields["objects"] = [
        {**item._asdict(), "files": [file._asdict() for file in item.files]} for item in checkpoint.objects
    ]
    body = json.dumps(fields, separators=(",", ":")).encode()
    return _MAGIC + b" %d %08x\n" % (VERSION, zlib.crc32(body)) + body


def decode(data: bytes, name: str) -> BoundedCheckpoint:
    """The checkpoint in a file's bytes.  Raises CaptureError for anything else."""
    head, _, body = data.partition(b"\n")
    words = head.split()
    if len(words) != 3 or words[0] != _MAGIC:
        raise _damaged(name, "it does not begin as one")
    if words[1] != b"%d" % VERSION:
        raise _damaged(name, f"it has version {words[1].decode(errors='replace')}, this program reads {VERSION}")
    if words[2] != b"%08x" % zlib.crc32(body):
        raise _damaged(name, "its checksum does not fit")
    try:
        fields = json.loads(body)
        identity = Identity(**fields.pop("identity"))
        fields |= {name: LogPosition(*fields[name]) for name in _PLACES}
        objects = tuple(_object(item) for item in fields.pop("objects"))
        return BoundedCheckpoint(identity=identity, objects=objects, **fields)
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(name, f"its content cannot be read ({error})") from error


def _object(fields: dict[str, Any]) -> PersistedObject:
    files = tuple(ObjectFile(**file) for file in fields.pop("files"))
    position, number = fields.pop("held")
    place = LogPosition(*fields.pop("begin_place"))
    return PersistedObject(files=files, held=(int(position), int(number)), begin_place=place, **fields)


def _damaged(name: str, why: str) -> CaptureError:
    return CaptureError(f"Bounded Recovery checkpoint {name} is damaged: {why}", code=DAMAGED)
