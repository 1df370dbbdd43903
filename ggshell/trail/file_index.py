"""The index of a closed trail file: where readers may start, which transaction is open there, and where tables are defined.

With it, parallel readers divide a file, also inside a long transaction, without reading it. It is a hidden file next to
the trail file (``.ea000000003.index``; FORMAT.md has its bytes). Nothing depends on it: a file without one, or with one
that is torn, out of date or another file's, is probed or scanned instead, and the scan writes the index again.
"""

from __future__ import annotations

import contextlib
import os
import struct
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ggshell.checksum import crc32
from ggshell.errors import TrailError
from ggshell.record.operation import IoType, TransInd
from ggshell.store_paths import StorePath
from ggshell.trail import layout
from ggshell.trail.context import FIELDS, records_of
from ggshell.trail.fileheader import LONGEST, header_size
from ggshell.trail.markers import table_index
from ggshell.trail.name import index_path
from ggshell.trail.opened import OpenedFile

SPACING: Final = 1 << 20
"""Bytes between two points of an index, about."""
BETWEEN: Final = 0
"""No transaction is open. RBA 0 is that of the header, so it never begins one."""
CONTINUED: Final = 1
"""The transaction that the file begins in is open; the header of the file has its facts."""
_MAGIC: Final = b"GSTI\x01\0\0\0"
_HEAD: Final = struct.Struct("<8sIQII")
_CHECKSUM: Final = struct.Struct("<I")
_CHUNK: Final = 4 << 20
_POINT = np.dtype([("place", "<u8"), ("opened", "<u8")])
_TABLE = np.dtype([("index", "<u4"), ("place", "<u8")])


class FileIdentity(NamedTuple):
    """Which file an index describes: the CRC-32 of its header record, and its size."""

    header: int
    size: int


class FileIndex(NamedTuple):
    """Points of a file, ascending: record places, and for each what is open before it.

    ``opened``: BETWEEN, CONTINUED, or the RBA of the first record of the open transaction. ``tables``: the RBA of the Metadata
    record of each table index.
    """

    identity: FileIdentity
    places: NDArray[np.int64]
    opened: NDArray[np.int64]
    tables: dict[int, int]

    def point_after(self, place: int) -> tuple[int, int] | None:
        """Return the first point at or after a place, with what is open there; None if there is none."""
        number = int(np.searchsorted(self.places, place))
        return (int(self.places[number]), int(self.opened[number])) if number < len(self.places) else None

    def point_before(self, place: int) -> tuple[int, int] | None:
        """Return the last point at or before a place, with what is open there; None if there is none."""
        number = int(np.searchsorted(self.places, place, "right")) - 1
        return (int(self.places[number]), int(self.opened[number])) if number >= 0 else None

    def boundary_after(self, place: int) -> int | None:
        """Return a place at or after this one where no transaction is open, near the first one; None if there is none.

        A point between transactions is one, and so is the first record of a transaction that is open at a later point.
        """
        number = int(np.searchsorted(self.places, place))
        found = np.where(self.opened[number:] == BETWEEN, self.places[number:], self.opened[number:])
        good = np.flatnonzero(found >= max(place, CONTINUED + 1))
        return int(found[good[0]]) if len(good) else None

    def encode(self) -> bytes:
        points, tables = np.zeros(len(self.places), _POINT), np.zeros(len(self.tables), _TABLE)
        points["place"], points["opened"] = self.places, self.opened
        tables["index"], tables["place"] = list(self.tables), list(self.tables.values())
        body = _HEAD.pack(_MAGIC, *self.identity, len(points), len(tables)) + points.tobytes() + tables.tobytes()
        return body + _CHECKSUM.pack(crc32(body))


def decode_index(data: bytes) -> FileIndex:
    """Decode an index. Raises ValueError if it is torn, damaged or of a later version."""
    if len(data) < _HEAD.size + _CHECKSUM.size:
        raise ValueError("a complete index")
    magic, header, size, points, tables = _HEAD.unpack_from(data)
    ends = _HEAD.size + points * _POINT.itemsize, len(data) - _CHECKSUM.size
    if magic != _MAGIC or ends[0] + tables * _TABLE.itemsize != ends[1]:
        raise ValueError("an index of this version")
    if _CHECKSUM.unpack_from(data, ends[1])[0] != crc32(data[: ends[1]]):
        raise ValueError("an index that matches its checksum")
    point = np.frombuffer(data, _POINT, points, _HEAD.size)
    table = np.frombuffer(data, _TABLE, tables, ends[0])
    return FileIndex(
        FileIdentity(header, size),
        point["place"].astype(np.int64),
        point["opened"].astype(np.int64),
        dict(zip(table["index"].tolist(), table["place"].tolist(), strict=True)),
    )


class IndexBuilder:
    """Collects the points of a file while it is written."""

    def __init__(self, opened: int = BETWEEN) -> None:
        """``opened``: what is open at the beginning of the file."""
        self.opened = opened
        self._next = 0
        self._places: list[int] = []
        self._opened: list[int] = []
        self._tables: dict[int, int] = {}

    def reach(self, place: int) -> None:
        """Note a place at which a record begins that is not a fragment; ``opened`` is what is open there."""
        if place >= self._next:
            self._places.append(place)
            self._opened.append(self.opened)
            self._next = (place // SPACING + 1) * SPACING

    def define(self, index: int, place: int) -> None:
        """Note the place of a Metadata record."""
        self._tables[index] = place

    def finish(self, header: bytes, size: int) -> FileIndex:
        """Return the index of the file with this header record, which has its final size."""
        places, opened = np.array(self._places, np.int64), np.array(self._opened, np.int64)
        return FileIndex(FileIdentity(crc32(header), size), places, opened, self._tables)


def identity_of(file: Path) -> FileIdentity:
    """Return the identity of a file as it is now. Raises OSError."""
    with file.open("rb") as opened:
        data = opened.read(LONGEST)
        return FileIdentity(crc32(data[: header_size(data)]), opened.seek(0, os.SEEK_END))


def find_index(file: Path) -> FileIndex | None:
    """Return the index of a file; None if there is none that fits the file as it is now. Raises OSError for the file."""
    try:
        found = decode_index(index_path(file).read_bytes())
    except (OSError, ValueError):
        return None
    return found if found.identity == identity_of(file) else None


def keep_index(file: Path, data: bytes) -> None:
    """Write an index next to its file.

    An index that cannot be written, or is torn by a crash, only costs a later scan, so errors are ignored and nothing is
    synced. In an object store nothing is written: readers may have no right to.
    """
    if isinstance(file, StorePath):
        return
    path = index_path(file)
    hidden = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with contextlib.suppress(OSError):
        hidden.write_bytes(data)
        hidden.replace(path)


def make_index(file: OpenedFile) -> FileIndex | None:
    """Make the index of a closed file by stepping through its records; None if it has damage.

    Checksums are not computed: what an index points at is checked when it is read.
    """
    size, place = file.size(), file.first
    builder = IndexBuilder(BETWEEN if file.header.inside is None else CONTINUED)
    try:
        while place < size:
            chunk = file.read(min(_CHUNK, size - place), place)
            starts, end = records_of(chunk, file, place, size)
            _take_in(builder, np.frombuffer(chunk, dtype=np.uint8), starts, place)
            place += end
    except TrailError:
        return None
    return builder.finish(file.read(file.first, 0), size)


def _take_in(builder: IndexBuilder, raw: NDArray[np.uint8], starts: NDArray[np.int64], base: int) -> None:
    """Add the points and table definitions of a chunk."""
    is_row = (raw[starts + FIELDS.partition] & layout.INDEXED) != 0
    kind = raw[starts + FIELDS.io_type]
    whole = kind != IoType.RECORD_FRAGMENT
    inds = np.where(is_row, raw[starts + FIELDS.trans_ind], TransInd.MIDDLE)
    begins = np.flatnonzero(is_row & whole & (inds == TransInd.BEGIN))
    ends = np.flatnonzero(is_row & (inds >= TransInd.END))
    wanted = np.flatnonzero(whole)
    marks = np.arange(base - base % SPACING, base + len(raw), SPACING)
    chosen = np.unique(np.searchsorted(starts[wanted] + base, marks))
    before = builder.opened
    for number in wanted[chosen[chosen < len(wanted)]].tolist():
        builder.opened = _open_before(number, begins, ends, starts, base, before)
        builder.reach(base + int(starts[number]))
    builder.opened = _open_before(len(starts), begins, ends, starts, base, before)
    for number in np.flatnonzero(~is_row & whole & (kind == IoType.METADATA)).tolist():
        at = int(starts[number]) + FIELDS.audit_rba
        builder.define(table_index(int.from_bytes(raw[at : at + 4].tobytes(), "little")), base + int(starts[number]))


def _open_before(
    number: int, begins: NDArray[np.int64], ends: NDArray[np.int64], starts: NDArray[np.int64], base: int, before: int
) -> int:
    """Return what is open before a record of a chunk; ``before``: what was open before the chunk."""
    begun, ended = int(np.searchsorted(begins, number)), int(np.searchsorted(ends, number))
    if ended and (not begun or ends[ended - 1] > begins[begun - 1]):
        return BETWEEN
    return base + int(starts[begins[begun - 1]]) if begun else before
