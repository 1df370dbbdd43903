"""Finds the rows of keys in a lake's data files: a small index for each file, in the home.

A data file never changes, so neither does its index: the 128-bit hashes of its keys in order, each with the position of
its row. It is memory-mapped. Hashes are spread evenly, so their first bits number buckets of 2 to 4 of them: finding K keys
in F files reads K × F buckets, regardless of the size of the files. An index is only a cache: one that is missing, torn or of
another file is rebuilt from the column ``_key`` of the data file.

    <magic 8><rows u64><CRC-32 of the rest u32><zeros 4><BLAKE2b-128 of the data file's name 16>
    <upper halves of the hashes, ascending, u64 each><lower halves, u64 each><row positions, u32 each>
    <the first hash of each bucket, u32 each><rows u32>
"""

from __future__ import annotations

import hashlib
import mmap
import os
import struct
import zlib
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ggshell.errors import DiskError
from ggshell.files import remedy

MAGIC = b"GGSKEY02"
_HEADER = struct.Struct("<8sQI4x16s")
_ROW_BYTES = 20
SUFFIX = ".keys"

ReadKeys = Callable[[str], Iterable[pa.Array]]
"""Reads the column ``_key`` of a data file, in parts, in the order of its rows."""


class KeyHashes(NamedTuple):
    """The hashes of keys in ascending order; ``order``: which of the keys each one is."""

    upper: NDArray[np.uint64]
    lower: NDArray[np.uint64]
    order: NDArray[np.int64]


class Hits(NamedTuple):
    """Rows of one data file: which of the keys that were looked up, and at which position of the file."""

    keys: NDArray[np.int64]
    positions: NDArray[np.int64]


def hash_keys(parts: Iterable[pa.Array]) -> KeyHashes:
    """Hash keys by BLAKE2b: two different keys of a table never have the same hash in practice."""
    digest = hashlib.blake2b
    found = [
        np.frombuffer(b"".join([digest(key.encode(), digest_size=16).digest() for key in part.to_pylist()]), "<u8")
        for part in parts
    ]
    halves = (np.concatenate(found) if found else np.empty(0, "<u8")).reshape(-1, 2)
    order = np.argsort(halves[:, 0])
    return KeyHashes(halves[order, 0], halves[order, 1], order)


def _bucket_bits(rows: int) -> int:
    """How many of the first bits of a hash number its bucket."""
    return max(1, rows.bit_length() - 2)


def bucket_starts(upper: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """Where each bucket of hashes begins, and where the last one ends."""
    bits = _bucket_bits(len(upper))
    edges = np.arange(1 << bits, dtype=np.uint64) << np.uint64(64 - bits)
    return np.append(np.searchsorted(upper, edges), len(upper)).astype("<u4")


class KeyIndex:
    """The index of one data file. ``starts``: those of its buckets."""

    def __init__(
        self,
        upper: NDArray[np.uint64],
        lower: NDArray[np.uint64],
        positions: NDArray[np.uint32],
        starts: NDArray[np.uint32],
    ) -> None:
        self._upper, self._lower, self._positions, self._starts = upper, lower, positions, starts
        self._shift = np.uint64(64 - _bucket_bits(len(upper)))

    @property
    def rows(self) -> int:
        return len(self._upper)

    def find(self, keys: KeyHashes) -> Hits:
        """The rows with these keys."""
        bucket = keys.upper >> self._shift
        first = self._starts[bucket].astype(np.int64)
        counts = self._starts[bucket + np.uint64(1)] - first
        key = np.repeat(np.arange(len(bucket)), counts)
        place = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(len(key))
        near = np.flatnonzero(self._upper[place] == keys.upper[key])
        key, place = key[near], place[near]
        same = self._lower[place] == keys.lower[key]
        return Hits(keys.order[key[same]], self._positions[place[same]].astype(np.int64))


class KeyIndexes:
    """The indexes of the data files of one table, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._opened: dict[str, KeyIndex] = {}
        self._retained: frozenset[str] | None = None
        """The live files at the last call of ``retain``; None: files of earlier processes may be there."""

    def find(self, keys: pa.Array, files: Collection[str], read_keys: ReadKeys) -> dict[str, Hits]:
        """The rows with these keys, by data file; files without any are left out. Raises DiskError."""
        if not files or not len(keys):
            return {}
        hashes = hash_keys([keys])
        found = {file: self._index(file, read_keys).find(hashes) for file in files}
        return {file: hits for file, hits in found.items() if len(hits.keys)}

    def retain(self, files: Collection[str]) -> None:
        """Remove the indexes of data files that are not among these live ones."""
        if self._retained is None:
            names = {_file_name(file) for file in files}
            for path in self._folder.iterdir() if self._folder.is_dir() else ():
                if path.name not in names:
                    path.unlink(missing_ok=True)
        else:
            for file in self._retained.difference(files):
                self._opened.pop(file, None)
                (self._folder / _file_name(file)).unlink(missing_ok=True)
        self._retained = frozenset(files)

    def _index(self, file: str, read_keys: ReadKeys) -> KeyIndex:
        if file not in self._opened:
            path = self._folder / _file_name(file)
            self._opened[file] = read_index(path, file) or _make(path, file, read_keys)
        return self._opened[file]


def _make(path: Path, file: str, read_keys: ReadKeys) -> KeyIndex:
    write_index(path, file, hash_keys(read_keys(file)))
    made = read_index(path, file)
    if made is None:
        raise DiskError(f"cannot read {path} after writing it", hint=remedy(path))
    return made


def write_index(path: Path, file: str, keys: KeyHashes) -> None:
    """Write the index of a data file, whose rows have these keys. Raises DiskError.

    It is not synced: a crash may leave a torn index, which ``read_index`` refuses.
    """
    arrays = keys.upper, keys.lower, keys.order.astype("<u4"), bucket_starts(keys.upper)
    parts = [each.tobytes() for each in arrays]
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as out:
            out.write(_HEADER.pack(MAGIC, len(keys.upper), checksum, _name_hash(file)))
            for part in parts:
                out.write(part)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise DiskError(f"cannot write {path}: {error.strerror}", hint=remedy(path)) from error


def read_index(path: Path, file: str) -> KeyIndex | None:
    """Map the index of a data file; None if it is missing, torn, damaged or of another file."""
    try:
        with path.open("rb") as opened:
            size = os.fstat(opened.fileno()).st_size
            if size < _HEADER.size:
                return None
            view = memoryview(mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ))
    except OSError:
        return None
    magic, rows, checksum, name = _HEADER.unpack_from(view)
    starts, buckets = _HEADER.size + rows * _ROW_BYTES, (1 << _bucket_bits(rows)) + 1
    if (magic, name, size) != (MAGIC, _name_hash(file), starts + 4 * buckets):
        return None
    if zlib.crc32(view[_HEADER.size :]) != checksum:
        return None
    lower, positions = _HEADER.size + 8 * rows, _HEADER.size + 16 * rows
    return KeyIndex(
        np.frombuffer(view, "<u8", rows, _HEADER.size),
        np.frombuffer(view, "<u8", rows, lower),
        np.frombuffer(view, "<u4", rows, positions),
        np.frombuffer(view, "<u4", buckets, starts),
    )


def _file_name(file: str) -> str:
    return f"{_name_hash(file).hex()}{SUFFIX}"


def _name_hash(file: str) -> bytes:
    return hashlib.blake2b(file.encode(), digest_size=16).digest()
