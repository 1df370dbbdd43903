"""The checkpoint file of Bounded Recovery (``CP.<GROUP>.000000790``): the contents of a checkpoint, and its encoding.

It is written last, and lists the files of every persisted object with their sizes and checksums. A checkpoint without
this file does not exist; a checkpoint with it is complete.
"""

from __future__ import annotations

import json
import zlib
from typing import Any, NamedTuple

from ggshell.errors import CaptureError
from ggshell.files import read_json
from ggshell.pipeline.capture.decisions import Cursor
from ggshell.types import LogPosition

VERSION = 1
_MAGIC = b"GGSBRCP"
_PLACES = ("position_place", "restart_place")
DAMAGED = "OGG-30355"


class MachineIdentity(NamedTuple):
    """Where a checkpoint is valid: its internal format must not be used on another machine or version."""

    machine: str
    system: str
    version: str

    def difference(self, other: MachineIdentity) -> str:
        """The differences between two identities; empty when there are none."""
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
    """An open transaction that is stored in files.

    ``begin`` and ``begin_time`` (microseconds since 1970) are those of the cache; ``begin_place`` is the same position
    as file and byte. The files contain the transaction up to the cursor ``held``, with so many ``messages`` and bytes
    of ``state`` and ``data``. ``written`` is the number of the checkpoint that wrote the files. It is lower than the
    manifest's number if the transaction has not changed since.
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


class RecoveryManifest(NamedTuple):
    """One checkpoint.

    ``time`` is when it was made. Before ``position``, the whole log was read, and every commit was durable in the
    trail. ``restart`` is where a recovery from this checkpoint begins to read. The times of both positions are the
    log's own, and their places are the same positions as file and byte. ``fingerprint`` identifies what was captured.
    ``incarnation`` changes when the start point of the group is set. Times are in microseconds since 1970, ``interval``
    is in seconds.
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
    identity: MachineIdentity
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


def encode(checkpoint: RecoveryManifest) -> bytes:
    """Encode a checkpoint as the contents of its file."""
    fields: dict[str, Any] = checkpoint._asdict()
    fields["identity"] = checkpoint.identity._asdict()
    fields |= {name: list(fields[name]) for name in _PLACES}
    fields["objects"] = [
        {**item._asdict(), "files": [file._asdict() for file in item.files]} for item in checkpoint.objects
    ]
    body = json.dumps(fields, separators=(",", ":")).encode()
    return _MAGIC + b" %d %08x\n" % (VERSION, zlib.crc32(body)) + body


def decode(data: bytes, name: str) -> RecoveryManifest:
    """Decode a checkpoint from the contents of its file. Raises CaptureError if they are not valid."""
    head, _, body = data.partition(b"\n")
    words = head.split()
    if len(words) != 3 or words[0] != _MAGIC:
        raise _damaged(name, "it does not have the format of one")
    if words[1] != b"%d" % VERSION:
        raise _damaged(name, f"it has version {words[1].decode(errors='replace')}, this program reads {VERSION}")
    if words[2] != b"%08x" % zlib.crc32(body):
        raise _damaged(name, "its checksum does not match")
    try:
        fields = read_json(body)
        identity = MachineIdentity(**fields.pop("identity"))
        fields |= {name: LogPosition(*fields[name]) for name in _PLACES}
        objects = tuple(_object(item) for item in fields.pop("objects"))
        return RecoveryManifest(identity=identity, objects=objects, **fields)
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(name, f"its content cannot be read ({error})") from error


def _object(fields: dict[str, Any]) -> PersistedObject:
    files = tuple(ObjectFile(**file) for file in fields.pop("files"))
    position, number = fields.pop("held")
    place = LogPosition(*fields.pop("begin_place"))
    return PersistedObject(files=files, held=(int(position), int(number)), begin_place=place, **fields)


def _damaged(name: str, why: str) -> CaptureError:
    return CaptureError(f"Bounded Recovery checkpoint {name} is damaged: {why}", code=DAMAGED)
