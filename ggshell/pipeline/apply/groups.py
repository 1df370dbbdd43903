"""Rows that are being applied: spans of batches, the groups that they form, and the checkpoints between groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ggshell.pipeline.apply.target import CheckpointRow, Split, TableMapping
from ggshell.record.change import ChangeBatch
from ggshell.record.transaction import TransactionPiece
from ggshell.types import TableName, TrailPosition

LARGE_BYTES = 4 << 20
"""An incomplete transaction is held back up to this size in bytes; a larger one is applied piece by piece, and alone."""

Counts = Counter[tuple[TableName, TableName, int]]
Mappings = dict[int, TableMapping]


class BatchSpan(NamedTuple):
    """Consecutive pieces of one batch, and the mappings of its tables."""

    batch: ChangeBatch
    pieces: Sequence[TransactionPiece]
    mappings: Mappings

    @property
    def first(self) -> int:
        return self.pieces[0].first

    @property
    def last(self) -> int:
        """The row after the last one."""
        return self.pieces[-1].first + self.pieces[-1].count

    @property
    def ends(self) -> bool:
        return self.pieces[-1].ends

    @property
    def size(self) -> int:
        """The size of its rows in bytes."""
        return self.batch.size(self.first, self.last)


class AnsweredOperation(NamedTuple):
    """An operation that was not applied as it is: its tables and type.

    ``discarded``: it was written to the discard file; ``applied``: it was applied in another form; ``conflict`` and
    ``resolved``: the conflict that was the reason, and whether it was resolved; ``ignored``: REPERROR ignores it."""

    source: TableName
    target: TableName
    io_type: int
    discarded: bool
    applied: bool = False
    conflict: str | None = None
    resolved: bool = False
    ignored: bool = False


@dataclass(slots=True)
class TransactionGroup:
    """The spans of one target transaction; for a large one, those since its last savepoint.

    ``latest``: the last span, also after a savepoint; ``boundary``: the checkpoint row that is committed with the group."""

    spans: list[BatchSpan] = field(default_factory=list)
    latest: BatchSpan | None = None
    operations: int = 0
    size: int = 0
    counts: Counts = field(default_factory=Counter)
    boundary: CheckpointRow | None = None
    answered: list[AnsweredOperation] = field(default_factory=list)

    def leave_out(self, answered: Iterable[AnsweredOperation]) -> None:
        """Exclude skipped operations from the counts, and keep them to count discards and conflicts."""
        for each in answered:
            if not each.applied:
                self.counts[each.source, each.target, each.io_type] -= 1
            self.answered.append(each)

    def add(self, span: BatchSpan) -> None:
        """Add a span, and count its operations by source table, target table and type."""
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
        """Whether the group has rows and ends at the end of a source transaction."""
        return bool(self.spans) and self.spans[-1].ends


def contiguous(batch: ChangeBatch, pieces: Sequence[TransactionPiece], mappings: Mappings) -> Iterator[BatchSpan]:
    """Return pieces as spans: one span, or several if pieces between them were left out."""
    first = 0
    for number in range(1, len(pieces) + 1):
        before = pieces[number - 1]
        if number == len(pieces) or pieces[number].first != before.first + before.count:
            yield BatchSpan(batch, pieces[first:number], mappings)
            first = number


def without_operations(batch: ChangeBatch, ignored: Sequence[frozenset[int]]) -> ChangeBatch:
    """Return the batch with before images and each table's ignored operations assigned to no table.

    They are then not mapped, and all row numbers stay the same."""
    leaves = np.zeros(len(batch), dtype=np.bool_) if batch.befores is None else batch.befores.copy()
    for number, operations in enumerate(ignored):
        if operations:
            leaves |= (batch.table == number) & batch.of_types(operations)
    if not leaves.any():
        return batch
    nowhere = np.uint16(len(batch.tables))
    return replace(batch, table=np.where(leaves, nowhere, batch.table).astype(np.uint16))


def transactions(spans: Iterable[BatchSpan]) -> Iterator[list[BatchSpan]]:
    """Split spans into source transactions, with one piece per span; the last transaction may be incomplete."""
    current: list[BatchSpan] = []
    for span in spans:
        for piece in span.pieces:
            current.append(BatchSpan(span.batch, (piece,), span.mappings))
            if piece.ends:
                yield current
                current = []
    if current:
        yield current


def begin_of(batch: ChangeBatch, piece: TransactionPiece) -> TrailPosition:
    """Return the trail position where a piece begins."""
    return TrailPosition(batch.seqno, int(batch.rba[piece.first]))


def boundary(spans: Sequence[BatchSpan], before: CheckpointRow | None) -> CheckpointRow:
    """Return the checkpoint after spans that end with a transaction: where the next row begins or the batch ends."""
    batch, piece = spans[-1].batch, spans[-1].pieces[-1]
    following, header = piece.first + piece.count, piece.header
    rba = int(batch.rba[following]) if following < len(batch) else batch.end_rba
    place = TrailPosition(batch.seqno, rba)
    return CheckpointRow(
        place, header.csn, header.xid, header.commit_time, header.restart, _same_csn(spans, piece, before)
    )


def _same_csn(spans: Sequence[BatchSpan], last: TransactionPiece, before: CheckpointRow | None) -> tuple[str, ...]:
    """Return the ids of all transactions with the last one's CSN."""
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
    """Return the checkpoint inside a split transaction: read from its beginning, and skip what is applied."""
    split = Split(piece.header.csn, piece.header.xid, operations)
    if before is None:
        return CheckpointRow(begin, None, split=split)
    return before._replace(position=begin, split=split)


def without(piece: TransactionPiece, operations: int) -> TransactionPiece:
    """Return a piece without its first rows."""
    if not operations:
        return piece
    return replace(piece, first=piece.first + operations, count=piece.count - operations, begins=False)


def head(piece: TransactionPiece, operations: int) -> TransactionPiece:
    """Return the first rows of a piece."""
    return replace(piece, count=operations, ends=False)
