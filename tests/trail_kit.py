"""Shared by the trail tests: two tables, writing and reading trails, splitting files into records and resealing records."""

from __future__ import annotations

import contextlib
import struct
import zlib
from pathlib import Path

from batches import Row, Tx, make_batch, read_rows
from hypothesis import strategies as st

from ggshell.clock import FakeClock
from ggshell.record.change import ChangeBatch
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.operation import IoType
from ggshell.trail.fileheader import Producer, header_size
from ggshell.trail.name import TrailName
from ggshell.trail.reader import TrailReader
from ggshell.trail.writer import TrailWriter
from ggshell.types import TableName, TrailPosition

A = TableDefinition(TableName("hr", "a"), (Column("id", "integer", 23), Column("t", "text", 25)), (0,))
B = TableDefinition(TableName("hr", "b Ü"), (Column("id", "integer", 23, False),), ())
PRODUCER = Producer("EXT1", "Extract", "PostgreSQL", "north", "18.6")
OPERATIONS = [
    IoType.INSERT,
    IoType.DELETE,
    IoType.UPDATE,
    IoType.FIELD_COMP,
    IoType.KEY_FIELD_COMP,
    IoType.UNIFIED_UPDATE,
    IoType.UNIFIED_KEY_UPDATE,
    IoType.PURGE_DATA,
]
FIRST_TIME = 1_700_000_000_000_000


def open_writer(name: TrailName, max_bytes: int = 1 << 30) -> TrailWriter:
    return TrailWriter.open(name, clock=FakeClock(), producer=PRODUCER, max_bytes=max_bytes)


def read_all(name: TrailName, position: TrailPosition | None = None, size: int = 1 << 20) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    with contextlib.closing(TrailReader(name, position)) as reader:
        while (batch := reader.read(size)) is not None:
            rows += read_rows(batch)
    return rows


def small(csn: int, rows: int = 2, size: int = 9, *, begins: bool = True, ends: bool = True) -> ChangeBatch:
    """One transaction, or a piece of one: inserts into A of ``size`` bytes."""
    changes = [Row(A, IoType.INSERT, bytes([65 + csn % 26]) * size, csn * 100 + row) for row in range(rows)]
    return make_batch([Tx(csn, changes, begins, ends)])


def write_trail(name: TrailName, batches: list[ChangeBatch], max_bytes: int = 1 << 30) -> list[TrailPosition]:
    """Write and flush each batch; returns the durable end after opening and after each batch."""
    writer = open_writer(name, max_bytes)
    places = [writer.position]
    for batch in batches:
        writer.write(batch)
        places.append(writer.flush())
    writer.close()
    return places


def mark_file(name: TrailName) -> Path:
    return name.folder / f".{name.prefix}.durable"


def cut_records(content: bytes) -> list[tuple[int, bytes]]:
    """The records of a file after its header, each with its RBA."""
    place, records = header_size(content), []
    while place < len(content):
        total = int.from_bytes(content[place + 2 : place + 4], "little")
        records.append((place, content[place : place + total]))
        place += total
    return records


def seal(record: bytes, rba: int) -> bytes:
    """The record with corrected lengths and checksum, as if it had been written at this RBA."""
    total = struct.pack("<H", len(record))
    content = record[:2] + total + record[4:-12] + struct.pack("<I", rba)
    return content + struct.pack("<I", zlib.crc32(content)) + record[-4:-2] + total


def hand_made_rows() -> st.SearchStrategy[Row]:
    """Rows of every kind that a batch may hold: all operations, before images, with and without user tokens."""
    plain = st.builds(
        Row,
        st.sampled_from([A, B]),
        st.sampled_from(OPERATIONS),
        st.binary(max_size=60),
        st.integers(0, 2**64 - 1),
        before=st.just(value=False),
        user=st.just(b"") | st.binary(max_size=30),
    )
    before = st.builds(
        Row,
        st.sampled_from([A, B]),
        st.sampled_from([IoType.FIELD_COMP, IoType.UPDATE]),
        st.binary(max_size=60),
        st.integers(0, 2**64 - 1),
        before=st.just(value=True),
        user=st.just(b""),
    )
    return plain | before
