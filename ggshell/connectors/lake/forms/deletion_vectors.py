"""Delta's deletion vectors: the positions of deleted rows of a data file, as a Roaring bitmap.

A small one is part of the commit, as text in Z85; a large one is a file next to the data files
(https://github.com/delta-io/delta/blob/master/PROTOCOL.md#deletion-vectors).
"""

from __future__ import annotations

import struct
import uuid
import zlib
from typing import Any, Final

from pyroaring import BitMap, BitMap64

from ggshell.connectors.lake.store import LakeStore
from ggshell.errors import StoreError

INLINE_BYTES: Final = 1 << 10
"""The size up to which a vector is part of the commit."""
Descriptor = dict[str, Any]
"""A vector as a commit names it."""

_MAGIC: Final = 1681511377
_VERSION: Final = b"\x01"
_LETTERS: Final = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_DIGITS: Final = {letter: value for value, letter in enumerate(_LETTERS)}


def write_vector(store: LakeStore, rows: BitMap) -> Descriptor:
    """The descriptor of a vector; writes its file if it is large. Raises DiskError, ConnectionLostError."""
    data = struct.pack("<I", _MAGIC) + BitMap64(rows).serialize()
    said: Descriptor = {"sizeInBytes": len(data), "cardinality": len(rows)}
    if len(data) <= INLINE_BYTES:
        return {"storageType": "i", "pathOrInlineDv": to_z85(data), **said}
    name = uuid.uuid4()
    with store.writing(_file(name)) as sink:
        sink.write(_VERSION + struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data)))
    return {"storageType": "u", "pathOrInlineDv": to_z85(name.bytes), "offset": 1, **said}


def read_vector(store: LakeStore, said: Descriptor) -> BitMap:
    """The positions of a vector. Raises StoreError if it is damaged or missing."""
    text, size = str(said["pathOrInlineDv"]), int(said["sizeInBytes"])
    if said["storageType"] == "i":
        return _positions(from_z85(text)[:size], text)
    path = vector_file(said)
    if path is None:
        raise StoreError(f"deletion vector {text} of {store.location} is outside of the table")
    content, first = store.read(path), int(said.get("offset") or 0)
    if content is None:
        raise StoreError(f"deletion vector {path} of {store.location} does not exist")
    data = content[first + 4 : first + 4 + size]
    if zlib.crc32(data) != int.from_bytes(content[first + 4 + size : first + 8 + size], "big"):
        raise StoreError(f"deletion vector {path} of {store.location} is damaged")
    return _positions(data, path)


def vector_file(said: Descriptor) -> str | None:
    """The file of a vector, relative to the table; None if it is part of the commit, or elsewhere."""
    text = str(said["pathOrInlineDv"])
    if said["storageType"] != "u":
        return None
    prefix = text[:-20]
    return f"{prefix}{'/' if prefix else ''}{_file(uuid.UUID(bytes=from_z85(text[-20:])))}"


def _file(name: uuid.UUID) -> str:
    return f"deletion_vector_{name}.bin"


def _positions(data: bytes, what: str) -> BitMap:
    (magic,) = struct.unpack_from("<I", data)
    if magic != _MAGIC:
        raise StoreError(f"deletion vector {what} has a format that this version cannot read")
    return BitMap(BitMap64.deserialize(data[4:]))


def to_z85(data: bytes) -> str:
    """Bytes as text in Z85, filled to a multiple of four."""
    padded = data + bytes(-len(data) % 4)
    found = []
    for (number,) in struct.iter_unpack(">I", padded):
        for power in (85**4, 85**3, 85**2, 85, 1):
            found.append(_LETTERS[number // power % 85])
    return "".join(found)


def from_z85(text: str) -> bytes:
    """The bytes of a text in Z85."""
    found = bytearray()
    for first in range(0, len(text), 5):
        number = 0
        for letter in text[first : first + 5]:
            number = number * 85 + _DIGITS[letter]
        found += number.to_bytes(4, "big")
    return bytes(found)
