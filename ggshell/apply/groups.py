"""What is on its way to the target: spans of batches, and the groups they make up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ggshell.apply.target import CheckpointRow, Split
from ggshell.record import ChangeBatch, TransactionPiece
from ggshell.types import TableName, TrailPosition

Counts = Counter[tuple[TableName, TableName, int]]


class Span(NamedTuple):
    """Neighbouring pieces of one batch."""

    batch: ChangeBatch
    pieces: tuple[TransactionPiece, ...]

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


@dataclass(slots=True)
class Group:
    """Spans that one target transaction takes.  ``boundary`` is set with the commit."""

    spans: list[Span] = field(default_factory=list)
    operations: int = 0
    size: int = 0
    counts: Counts = field(default_factory=Counter)
    boundary: CheckpointRow | None = None

    def add(self, span: Span) -> None:
        first, last = span.first, span.last
        self.spans.append(span)
        self.operations += last - first
        self.size += int(span.batch.length[first:last].sum())


def transactions(spans: Iterable[Span]) -> Iterator[list[Span]]:
    """The spans cut into source transactions, one piece a span; the last one may lack its end."""
    current: list[Span] = []
    for span in spans:
        for piece in span.pieces:
            current.append(Span(span.batch, (piece,)))
            if piece.ends:
                yield current
                current = []
    if current:
        yield current


def begin_of(batch: ChangeBatch, piece: TransactionPiece) -> TrailPosition:
    """Where a piece begins in the trail."""
    return TrailPosition(batch.seqno, int(batch.rba[piece.first]))


def boundary(batch: ChangeBatch, piece: TransactionPiece, before: CheckpointRow | None) -> CheckpointRow:
    """The checkpoint behind a transaction's last piece: where the next row begins, or the batch ends."""
    following = piece.first + piece.count
    rba = int(batch.rba[following]) if following < len(batch) else batch.end_rba
    header = piece.header
    shared = before.same_csn if before is not None and before.csn == header.csn else ()
    return CheckpointRow(
        TrailPosition(batch.seqno, rba),
        header.csn,
        header.xid,
        header.commit_time,
        header.restart,
        (*shared, header.xid),
    )


def split_boundary(
    begin: TrailPosition, piece: TransactionPiece, operations: int, before: CheckpointRow | None
) -> CheckpointRow:
    """The checkpoint within a transaction: read from its begin, and leave out what is applied."""
    split = Split(piece.header.csn, piece.header.xid, operations)
    if before is None:
        return CheckpointRow(begin, None, split=split)
    return before._replace(position=begin, split=split)


def known(piece: TransactionPiece, mark: CheckpointRow | None) -> bool:
    """Whether a transaction was applied as far as the mark says."""
    if mark is None or mark.csn is None or piece.header.csn > mark.csn:
        return False
    return piece.header.csn < mark.csn or not mark.same_csn or piece.header.xid in mark.same_csn


def without(piece: TransactionPiece, operations: int) -> TransactionPiece:
    """A piece without its first rows."""
    return replace(piece, first=piece.first + operations, count=piece.count - operations, begins=False)


def cut(piece: TransactionPiece, operations: int) -> tuple[TransactionPiece, TransactionPiece]:
    """A piece in two."""
    return replace(piece, count=operations, ends=False), without(piece, operations)
