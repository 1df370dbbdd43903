"""What is on its way to the target: spans of batches, the groups they make up, and the checkpoints between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ggshell.apply.target import CheckpointRow, Split, TableMapping
from ggshell.record.change import ChangeBatch
from ggshell.record.transaction import TransactionPiece
from ggshell.types import TableName, TrailPosition

LARGE_BYTES = 4 << 20
"""A transaction without its end is held back up to this much; a larger one is applied while it comes, and alone."""

Counts = Counter[tuple[TableName, TableName, int]]
Mappings = dict[int, TableMapping]


class Span(NamedTuple):
    """Neighbouring pieces of one batch, and how its tables are mapped."""

    batch: ChangeBatch
    pieces: Sequence[TransactionPiece]
    mappings: Mappings

    @property
    def first(self) -> int:
        return self.pieces[0].first

    @property
    def last(self) -> int:
        """The row behind the last one."""
        return self.pieces[-1].first + self.pieces[-1].count

    @property
    def ends(self) -> bool:
        return self.pieces[-1].ends

    @property
    def size(self) -> int:
        """The bytes of its rows."""
        return int(self.batch.length[self.first : self.last].sum())


class Left(NamedTuple):
    """An operation that was passed over: its tables and type, and whether it went to the discard file."""

    source: TableName
    target: TableName
    io_type: int
    discarded: bool


@dataclass(slots=True)
class Group:
    """Spans that one target transaction takes (of a large one those since its last mark; ``latest`` stays); ``boundary`` is
    the checkpoint row that it was committed with."""

    spans: list[Span] = field(default_factory=list)
    latest: Span | None = None
    operations: int = 0
    size: int = 0
    counts: Counts = field(default_factory=Counter)
    boundary: CheckpointRow | None = None
    discards: list[tuple[TableName, TableName, int]] = field(default_factory=list)

    def leave_out(self, left: Iterable[Left]) -> None:
        """Do not count operations that were passed over; those in the discard file count as discards."""
        for source, target, io_type, discarded in left:
            self.counts[source, target, io_type] -= 1
            if discarded:
                self.discards.append((source, target, io_type))

    def add(self, span: Span) -> None:
        """Take a span in, and count its operations by source table, target table and type."""
        self.spans.append(span)
        self.latest = span
        self.operations += span.last - span.first
        self.size += span.size
        batch, first, last = span.batch, span.first, span.last
        if last - first == 1:
            found = [(int(batch.table[first]) << 8 | int(batch.io_type[first]), 1)]
        else:
            codes = batch.table[first:last].astype(np.int64) << 8 | batch.io_type[first:last]
            unique, numbers = np.unique(codes, return_counts=True)
            found = list(zip(unique.tolist(), numbers.tolist(), strict=True))
        for code, number in found:
            mapping = span.mappings.get(code >> 8)
            if mapping is not None:
                self.counts[mapping.source.name, mapping.target.name, code & 0xFF] += number

    @property
    def whole(self) -> bool:
        """Whether it has rows and ends with a source transaction."""
        return bool(self.spans) and self.spans[-1].ends


def contiguous(batch: ChangeBatch, pieces: Sequence[TransactionPiece], mappings: Mappings) -> Iterator[Span]:
    """Pieces as spans: one, unless some in between were left out."""
    first = 0
    for number in range(1, len(pieces) + 1):
        before = pieces[number - 1]
        if number == len(pieces) or pieces[number].first != before.first + before.count:
            yield Span(batch, pieces[first:number], mappings)
            first = number


def without_operations(batch: ChangeBatch, ignored: Sequence[frozenset[int]]) -> ChangeBatch:
    """The batch with before images, and each table's ignored operations, belonging to no table: nothing of them is mapped,
    and every place stays."""
    leaves = np.zeros(len(batch), dtype=np.bool_) if batch.befores is None else batch.befores.copy()
    for number, operations in enumerate(ignored):
        if operations:
            leaves |= (batch.table == number) & np.isin(batch.io_type, list(operations))
    if not leaves.any():
        return batch
    nowhere = np.uint16(len(batch.tables))
    return replace(batch, table=np.where(leaves, nowhere, batch.table).astype(np.uint16))


def transactions(spans: Iterable[Span]) -> Iterator[list[Span]]:
    """The spans cut into source transactions, one piece a span; the last one may lack its end."""
    current: list[Span] = []
    for span in spans:
        for piece in span.pieces:
            current.append(Span(span.batch, (piece,), span.mappings))
            if piece.ends:
                yield current
                current = []
    if current:
        yield current


def begin_of(batch: ChangeBatch, piece: TransactionPiece) -> TrailPosition:
    """Where a piece begins in the trail."""
    return TrailPosition(batch.seqno, int(batch.rba[piece.first]))


def boundary(spans: Sequence[Span], before: CheckpointRow | None) -> CheckpointRow:
    """The checkpoint behind spans that end with a transaction: where the next row begins, or the batch ends."""
    batch, piece = spans[-1].batch, spans[-1].pieces[-1]
    following, header = piece.first + piece.count, piece.header
    rba = int(batch.rba[following]) if following < len(batch) else batch.end_rba
    place = TrailPosition(batch.seqno, rba)
    return CheckpointRow(
        place, header.csn, header.xid, header.commit_time, header.restart, _same_csn(spans, piece, before)
    )


def _same_csn(spans: Sequence[Span], last: TransactionPiece, before: CheckpointRow | None) -> tuple[str, ...]:
    """The ids of all transactions with the last one's CSN."""
    found: dict[str, None] = {}
    for span in reversed(spans):
        for piece in reversed(span.pieces):
            if piece.header.csn != last.header.csn:
                return tuple(reversed(found))
            found[piece.header.xid] = None
    if before is not None and before.csn == last.header.csn:
        found.update(dict.fromkeys(reversed(before.same_csn)))
    return tuple(reversed(found))


def split_boundary(
    begin: TrailPosition, piece: TransactionPiece, operations: int, before: CheckpointRow | None
) -> CheckpointRow:
    """The checkpoint within a transaction: read from its begin, and leave out what is applied."""
    split = Split(piece.header.csn, piece.header.xid, operations)
    if before is None:
        return CheckpointRow(begin, None, split=split)
    return before._replace(position=begin, split=split)


def without(piece: TransactionPiece, operations: int) -> TransactionPiece:
    """A piece without its first rows."""
    if not operations:
        return piece
    return replace(piece, first=piece.first + operations, count=piece.count - operations, begins=False)


def head(piece: TransactionPiece, operations: int) -> TransactionPiece:
    """The first rows of a piece."""
    return replace(piece, count=operations, ends=False)
