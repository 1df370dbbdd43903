"""Sample records of every kind, each in a small trail of its own, and all kinds of damage to one.

The trail of a sample contains a good transaction before and after the record, so that a test can check both what must be
delivered and where reading continues.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest
from batches import Row, Tx, make_batch
from trail_kit import PRODUCER, A, cut_records

from ggshell.cipher import Key
from ggshell.clock import FakeClock
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.image import encode_image, join_key_update
from ggshell.record.operation import IoType, TransInd
from ggshell.record.user_tokens import encode_user_tokens
from ggshell.trail.fileheader import header_size
from ggshell.trail.name import TrailName
from ggshell.trail.record import Record, decode_record
from ggshell.trail.sealing import Protection
from ggshell.trail.writer import TrailWriter, WriterOptions
from ggshell.types import TableName

WIDE = TableDefinition(
    TableName("hr", "wide"),
    tuple(
        Column(f"a column with a long name, number {number}", "character varying(200)", 1043) for number in range(900)
    ),
    (0,),
)
RENAMED = TableDefinition(A.name, (*A.columns, Column("v", "bytea", 17)), (0,))
_MANY = 3200
"""Of more positions than this, a sample of about 300 is taken."""
_LIMIT = 700
"""The file size at which a trail rolls over."""

KEY, WAS = encode_image([(0, b"7")]), encode_image([(0, b"6"), (1, b"was")])
IMAGE = encode_image([(0, b"7"), (1, "gr\u00fc\u00df".encode())])
TOKENS = encode_user_tokens([("TK-HOST", b"north"), ("TK-EMPTY", b""), ("TK-\u00dc", b"\0\xff")])


@dataclass(frozen=True, slots=True)
class RecordKind:
    """The rows of the middle transaction, and which record of the trail is the sample; None: the file header."""

    rows: Sequence[Row]
    pick: Callable[[Record], bool] | None
    pieces: int = 1
    """The number of batches of the transaction; a file may end between them."""
    seqno: int = 0
    max_bytes: int = 1 << 30
    again: bool = False
    """Another writer continues after the middle transaction."""
    sealed: bool = False
    """Rows are encrypted."""


def _row(io_type: IoType, data: bytes, *, before: bool = False, user: bytes = b"") -> Row:
    return Row(A, io_type, data, 0x0102030405060708, before, user)


def _of(io_type: IoType, place: TransInd = TransInd.SOLE, count: int = 1) -> Callable[[Record], bool]:
    return lambda record: (
        (record.io_type, record.trans_ind, record.rec_count) == (io_type, place, count)
        and (io_type == IoType.METADATA or record.place != 0)
        and (record.audit_pos > 1000 or io_type in (IoType.METADATA, IoType.RESTART_OK, IoType.RECORD_FRAGMENT))
    )


def _metadata(index: int, count: int = 1) -> Callable[[Record], bool]:
    return lambda record: not record.partition and (record.audit_rba >> 16, record.rec_count) == (index, count)


INSERT = _row(IoType.INSERT, IMAGE)
THREE = [INSERT, _row(IoType.FIELD_COMP, IMAGE), _row(IoType.DELETE, KEY)]
LARGE = [_row(IoType.INSERT, encode_image([(0, b"8"), (1, "\u00fcber ".encode() * 21_000)]), user=TOKENS)]
KINDS: dict[str, RecordKind] = {
    "file header": RecordKind([INSERT], None),
    "header of a file within a transaction": RecordKind([INSERT] * 24, None, pieces=8, seqno=1, max_bytes=_LIMIT),
    "header of a later file": RecordKind([INSERT] * 6, None, seqno=1, max_bytes=_LIMIT),
    "metadata": RecordKind([INSERT], _metadata(1)),
    "metadata of a changed table": RecordKind([Row(RENAMED, IoType.INSERT, IMAGE, 5000)], _metadata(2)),
    "metadata, first piece": RecordKind([Row(WIDE, IoType.INSERT, KEY, 5000)], _metadata(2)),
    "metadata, last piece": RecordKind([Row(WIDE, IoType.INSERT, KEY, 5000)], _metadata(2, 2)),
    "restart": RecordKind([INSERT], lambda record: record.io_type == IoType.RESTART_OK, again=True),
    "insert, sole": RecordKind([INSERT], _of(IoType.INSERT)),
    "insert, begin": RecordKind(THREE, _of(IoType.INSERT, TransInd.BEGIN)),
    "compressed update, middle": RecordKind(THREE, _of(IoType.FIELD_COMP, TransInd.MIDDLE)),
    "delete, end": RecordKind(THREE, _of(IoType.DELETE, TransInd.END)),
    "compressed update": RecordKind([_row(IoType.FIELD_COMP, IMAGE)], _of(IoType.FIELD_COMP)),
    "full update": RecordKind([_row(IoType.UPDATE, IMAGE)], _of(IoType.UPDATE)),
    "delete": RecordKind([_row(IoType.DELETE, KEY)], _of(IoType.DELETE)),
    "delete of a whole row": RecordKind([_row(IoType.DELETE, IMAGE)], _of(IoType.DELETE)),
    "before image": RecordKind(
        [_row(IoType.FIELD_COMP, WAS, before=True), _row(IoType.FIELD_COMP, IMAGE)],
        _of(IoType.FIELD_COMP, TransInd.BEGIN),
    ),
    "key update": RecordKind([_row(IoType.KEY_FIELD_COMP, join_key_update(KEY, IMAGE))], _of(IoType.KEY_FIELD_COMP)),
    "unified update": RecordKind(
        [_row(IoType.UNIFIED_UPDATE, join_key_update(WAS, IMAGE))], _of(IoType.UNIFIED_UPDATE)
    ),
    "unified key update": RecordKind(
        [_row(IoType.UNIFIED_KEY_UPDATE, join_key_update(WAS, IMAGE), user=TOKENS)], _of(IoType.UNIFIED_KEY_UPDATE)
    ),
    "truncate": RecordKind([_row(IoType.PURGE_DATA, b"")], _of(IoType.PURGE_DATA)),
    "DDL statement": RecordKind([_row(IoType.DDL, b",TAG='ALTER TABLE',,TEXT='alter table a',")], _of(IoType.DDL)),
    "NULLs": RecordKind([_row(IoType.INSERT, encode_image([(0, None), (1, None)]))], _of(IoType.INSERT)),
    "empty values": RecordKind([_row(IoType.INSERT, encode_image([(0, b""), (1, b"")]))], _of(IoType.INSERT)),
    "user tokens": RecordKind([_row(IoType.INSERT, IMAGE, user=TOKENS)], _of(IoType.INSERT)),
    "encrypted insert": RecordKind([_row(IoType.INSERT, IMAGE, user=TOKENS)], _of(IoType.INSERT), sealed=True),
    "header of an encrypted file": RecordKind([INSERT], None, sealed=True),
    "encrypted fragment": RecordKind(LARGE, _of(IoType.RECORD_FRAGMENT, TransInd.END, 3), sealed=True),
    "long value, first piece": RecordKind(LARGE, _of(IoType.INSERT, TransInd.BEGIN)),
    "fragment, middle": RecordKind(LARGE, _of(IoType.RECORD_FRAGMENT, TransInd.MIDDLE, 2)),
    "fragment, last": RecordKind(LARGE, _of(IoType.RECORD_FRAGMENT, TransInd.END, 3)),
}


class SampleRecord(NamedTuple):
    """A sample record: its file, the undamaged content of that file, and the record's RBA and size."""

    name: TrailName
    seqno: int
    content: bytes
    rba: int
    size: int

    @property
    def path(self) -> Path:
        return self.name.file(self.seqno)

    @property
    def record(self) -> bytes:
        return self.content[self.rba : self.rba + self.size]

    @property
    def following(self) -> int | None:
        """The RBA of the next record in the file."""
        return next((rba for rba, _ in cut_records(self.content) if rba > self.rba), None)

    def put(self, content: bytes) -> None:
        """Replace the content of the file; readers opened afterwards see it."""
        self.path.write_bytes(content)


def keys(name: str, version: int) -> list[Key]:
    """The wallet of encrypted samples."""
    return [Key(f"{name} {version}".encode().ljust(32, b"."))]


def _open(name: TrailName, kind: RecordKind) -> TrailWriter:
    protection = Protection("AES256", "MASTER", 1) if kind.sealed else None
    return TrailWriter.open(
        name,
        clock=FakeClock(),
        producer=PRODUCER,
        max_bytes=kind.max_bytes,
        options=WriterOptions(protection=protection, keys=keys),
    )


def sample_record(folder: Path, kind: RecordKind) -> SampleRecord:
    """Write the trail of a kind and find its record."""
    name = TrailName(folder, "ea")
    writer = _open(name, kind)
    first = Row(A, IoType.INSERT, encode_image([(0, b"1"), (1, b"first")]), 1)
    writer.write(make_batch([Tx(1, [first, first])]))
    writer.flush()
    step = -(-len(kind.rows) // kind.pieces)
    for at in range(0, len(kind.rows), step):
        tx = Tx(2, kind.rows[at : at + step], begins=at == 0, ends=at + step >= len(kind.rows))
        writer.write(make_batch([tx]))
        writer.flush()
    if kind.again:
        writer.close()
        writer = _open(name, kind)
    for csn in (3, 4):
        writer.write(make_batch([Tx(csn, [Row(A, IoType.INSERT, encode_image([(0, b"%d" % csn)]), csn)])]))
        writer.flush()
    writer.close()
    content = name.file(kind.seqno).read_bytes()
    if kind.pick is None:
        return SampleRecord(name, kind.seqno, content, 0, header_size(content))
    rba, record = next((at, data) for at, data in cut_records(content) if kind.pick(decode_record(data)))
    return SampleRecord(name, kind.seqno, content, rba, len(record))


def _some(every: Sequence[int], rng: random.Random, share: float) -> Sequence[int]:
    """All positions; of very many a sample that includes both ends; of these a share."""
    if len(every) > _MANY:
        edge = _MANY // 32
        every = [*every[:edge], *rng.sample(every[edge:-edge], 6 * edge), *every[-edge:]]
    return every if share >= 1 else rng.sample(every, max(1, round(len(every) * share)))


def rounds_of(request: pytest.FixtureRequest) -> float:
    """The share of all cases to run: a tenth by default, less with ``--quick``, all with ``--rounds 1``."""
    return float(request.config.getoption("--rounds")) or (0.04 if request.config.getoption("--quick") else 0.1)


def cuts(shown: SampleRecord, rng: random.Random, share: float = 1) -> Iterator[bytes]:
    """The file cut at every length within the record, or at a share of them."""
    for place in _some(range(shown.rba, shown.rba + shown.size), rng, share):
        yield shown.content[:place]


def flips(shown: SampleRecord, rng: random.Random, share: float = 1) -> Iterator[bytes]:
    """Every single bit of the record flipped, or a share of them."""
    for bit in _some(range(shown.rba * 8, (shown.rba + shown.size) * 8), rng, share):
        changed = bytearray(shown.content)
        changed[bit >> 3] ^= 1 << (bit & 7)
        yield bytes(changed)


def splices(shown: SampleRecord, rng: random.Random, count: int) -> Iterator[bytes]:
    """Bytes of the record removed, inserted, doubled, reversed, zeroed, or overwritten with others of the file.

    There is at least one.
    """
    content, count = shown.content, max(1, count)
    while count:
        first = shown.rba + rng.randrange(shown.size)
        last = min(shown.rba + shown.size, first + rng.choice([1, 2, 4, 8, 50, shown.size]))
        other = rng.randrange(len(content))
        piece = content[other : other + rng.choice([1, 4, 40, 400])]
        part = content[first:last]
        middle = {
            0: b"",
            1: piece + part,
            2: part + part,
            3: bytes(len(part)),
            4: rng.randbytes(len(part)),
            5: (piece * len(part))[: len(part)],
            6: part[::-1],
        }[rng.randrange(7)]
        changed = content[:first] + middle + content[last:]
        if changed != content:
            count -= 1
            yield changed
