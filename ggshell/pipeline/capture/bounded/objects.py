"""Persisted objects: writes an open transaction to files, and reads it back.

A file begins with ``GGSBRPO1``, followed by frames: kind (1 byte), length (8 bytes, little-endian), content. ``S`` is
the state (JSON: transaction, object and part number). ``C`` begins a chunk (flags, id offset, definitions in the source's
own form). ``M`` contains messages (their number, the edges of each as 8 bytes, their bytes). ``A`` contains the ids
of undone messages. A large transaction continues in further files; a frame is never split. The size and checksum of
every file are in the manifest.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from ggshell.errors import CaptureError
from ggshell.files import read_json
from ggshell.pipeline.capture.bounded.manifest import DAMAGED, ObjectFile, PersistedObject
from ggshell.pipeline.capture.cache import OpenTransaction
from ggshell.pipeline.capture.messages import Messages

MAGIC = b"GGSBRPO1"
PART_BYTES = 64 << 20
"""Approximate maximum size of a file in bytes (a single run may be larger). A restore reads one file at a time."""
_FRAME = struct.Struct("<cQ")
_CHUNK = struct.Struct("<BI")
_COUNT = struct.Struct("<I")
_STREAMED, _READY = 1, 2
_MARK = 4


class DefinitionCodec(Protocol):
    """Converts a chunk's definitions to bytes and back. Only the source knows what they are."""

    def dump_definitions(self, definitions: Any) -> bytes: ...

    def load_definitions(self, data: bytes) -> Any: ...


class ObjectPart(NamedTuple):
    """The contents of one file, and how many of its bytes are state and data."""

    blocks: tuple[bytes, ...]
    state: int
    data: int

    @property
    def size(self) -> int:
        return sum(len(block) for block in self.blocks)

    @property
    def checksum(self) -> int:
        found = 0
        for block in self.blocks:
            found = zlib.crc32(block, found)
        return found


def dump(
    transaction: OpenTransaction, number: int, definitions: DefinitionCodec, most: int = PART_BYTES
) -> Iterator[ObjectPart]:
    """Write a transaction as the contents of one or more files."""
    part = 0
    blocks, state, data = _begin(transaction, number, part)
    present, head = None, b""
    for chunk, run in transaction.runs(1, whole=True):
        if chunk is not present:
            present = chunk
            flags = _STREAMED * chunk.streamed | _READY * chunk.ready
            head = _frame(b"C", _CHUNK.pack(flags, chunk.id_offset) + definitions.dump_definitions(chunk.definitions))
            blocks.append(head)
            state += len(head)
        for messages in run:
            body = _messages(messages)
            if data and data + len(messages.data) > most:
                yield ObjectPart(tuple(blocks), state, data)
                part += 1
                blocks, state, data = _begin(transaction, number, part)
                blocks.append(head)
                state += len(head)
            blocks += body
            state += sum(map(len, body[:-1]))
            data += len(body[-1])
    if transaction.aborted:
        taken_back = _frame(b"A", b"".join(sorted(transaction.aborted)))
        blocks.append(taken_back)
        state += len(taken_back)
    yield ObjectPart(tuple(blocks), state, data)


def _begin(transaction: OpenTransaction, number: int, part: int) -> tuple[list[bytes], int, int]:
    fields = {"object": number, "part": part, "xid": transaction.xid, "begin": transaction.begin}
    head = MAGIC + _frame(b"S", json.dumps(fields).encode())
    return [head], len(head), 0


def _frame(kind: bytes, content: bytes) -> bytes:
    return _FRAME.pack(kind, len(content)) + content


def _messages(messages: Messages) -> list[bytes]:
    """Encode a run of messages as a frame. The message bytes come last and are not copied."""
    edges = messages.edges.astype("<i8").tobytes()
    size = _COUNT.size + len(edges) + len(messages.data)
    return [_FRAME.pack(b"M", size), _COUNT.pack(len(messages)), edges, bytes(messages.data)]


class LoadedMessages(NamedTuple):
    """A run of messages of an object, and the properties of its chunk."""

    definitions: Any
    streamed: bool
    id_offset: int
    ready: bool
    begins: bool
    messages: Messages
    aborted: frozenset[bytes] = frozenset()


def load(
    item: PersistedObject, part: int, file: ObjectFile, content: bytes, definitions: DefinitionCodec
) -> Iterator[LoadedMessages]:
    """Read the messages in one file of an object. Raises CaptureError when the file differs from the manifest."""
    if len(content) != file.size:
        raise _damaged(file.name, f"it has {len(content)} bytes instead of {file.size}")
    if zlib.crc32(content) != file.checksum:
        raise _damaged(file.name, "its checksum does not match")
    try:
        yield from _load(item, part, content, file.name, definitions)
    except (struct.error, ValueError, KeyError) as error:
        raise _damaged(file.name, f"its content cannot be read ({error})") from error


def _load(
    item: PersistedObject, part: int, content: bytes, name: str, definitions: DefinitionCodec
) -> Iterator[LoadedMessages]:
    if not content.startswith(MAGIC):
        raise _damaged(name, "it does not have the format of one")
    place = len(MAGIC)
    explained: Any = None
    flags = id_offset = 0
    begins = False
    while place < len(content):
        kind, size = _FRAME.unpack_from(content, place)
        place += _FRAME.size
        if place + size > len(content):
            raise _damaged(name, "a frame extends past its end")
        if kind == b"S":
            found = read_json(content[place : place + size])
            if (found["object"], found["part"], found["xid"]) != (item.number, part, item.xid):
                raise _damaged(name, "it contains another object")
        elif kind == b"C":
            flags, id_offset = _CHUNK.unpack_from(content, place)
            explained = definitions.load_definitions(content[place + _CHUNK.size : place + size])
            begins = True
        elif kind == b"A":
            ids = content[place : place + size]
            aborted = frozenset(ids[at : at + _MARK] for at in range(0, size, _MARK))
            yield LoadedMessages(explained, False, id_offset, False, False, Messages.pack([]), aborted)
        else:
            count = _COUNT.unpack_from(content, place)[0]
            first = place + _COUNT.size
            edges = np.frombuffer(content, dtype="<i8", count=count + 1, offset=first).astype(np.int64)
            data = content[first + edges.nbytes : place + size]
            yield LoadedMessages(
                explained, bool(flags & _STREAMED), id_offset, bool(flags & _READY), begins, Messages(data, edges)
            )
            begins = False
        place += size


def _damaged(name: str, why: str) -> CaptureError:
    return CaptureError(f"persisted object file {name} is damaged: {why}", code=DAMAGED)
