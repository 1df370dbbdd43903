"""Delivery: source transactions, grouped, into a target; each group in one transaction with its checkpoint row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from ggshell.apply.discard import DiscardFile
from ggshell.apply.mapping import Mapper
from ggshell.apply.target import CheckpointRow, TableMapping, Target
from ggshell.errors import ApplyError, RowError
from ggshell.record import ChangeBatch, IoType, TransactionPiece
from ggshell.record.image import decode_image, split_key_update
from ggshell.types import TableName, TrailPosition

REPLAY_ROWS = 100_000
"""A group up to this size is kept until its commit, so that an error in it can be traced to its row."""

Counted = Callable[[TableName, TableName, int, int], None]


class _Span(NamedTuple):
    """Rows of one batch within the group, and the pieces they belong to."""

    batch: ChangeBatch
    pieces: tuple[TransactionPiece, ...]


class Delivery:
    """Applies batches in order.

    Guards against double and skipped work, each tested by its number:

    1. a transaction whose CSN is not above the checkpoint row's was applied: it is skipped whole;
    2. a group is committed only behind the end of a source transaction;
    3. the checkpoint row is written in the same target transaction as the rows, and says the place behind the last of them;
    4. after an error nothing of the group stays; its source transactions are applied again one by one, so those before the
       failing one are committed, and the failing one leaves nothing;
    5. what was never committed is never reported as applied.
    """

    def __init__(
        self,
        target: Target,
        mapper: Mapper,
        *,
        group_operations: int = 1000,
        max_operations: int | None = None,
        counted: Counted | None = None,
        discard: DiscardFile | None = None,
    ) -> None:
        self._target = target
        self._mapper = mapper
        self._group_operations = group_operations
        self._max_operations = max_operations
        self._counted = counted
        self._discard = discard
        self._spans: list[_Span] = []
        self._rows = 0
        self._replayable = True
        self._boundary: tuple[ChangeBatch, int] | None = None
        self._open = False
        self._counts: Counter[tuple[TableName, TableName, int]] = Counter()
        self.applied: CheckpointRow | None = None

    def start(self) -> CheckpointRow | None:
        """Read the checkpoint row: where the target really stands; it wins over any file."""
        self.applied = self._target.checkpoint()
        return self.applied

    @property
    def pending(self) -> bool:
        """Whether rows were applied that are not committed."""
        return self._open

    def feed(self, batch: ChangeBatch) -> None:
        """Apply a batch; commits whenever a group is full.  Raises ApplyError, ConnectionLostError."""
        mappings = self._mappings(batch)
        pieces: list[TransactionPiece] = []
        mark = self.applied.csn if self.applied is not None else None
        most = (
            self._group_operations
            if self._max_operations is None
            else min(self._group_operations, self._max_operations)
        )
        for number, piece in enumerate(batch.pieces):
            if mark is not None and piece.header.csn <= mark:
                self._apply(batch, pieces, mappings)
                pieces = []
                continue
            pieces.append(piece)
            self._rows += piece.count
            if piece.ends:
                self._boundary = (batch, number)
            if piece.ends and self._rows >= most:
                self._apply(batch, pieces, mappings)
                pieces = []
                self._commit()
        self._apply(batch, pieces, mappings)

    def flush(self) -> None:
        """Commit what is applied, if a source transaction ends there.  Raises ApplyError, ConnectionLostError."""
        if self._open and self._spans and self._spans[-1].pieces[-1].ends:
            self._commit()

    def abandon(self) -> None:
        """Forget the open group: its connection is gone, or the process stops within a transaction."""
        self._spans = []
        self._counts.clear()
        self._rows, self._open, self._replayable, self._boundary = 0, False, True, None

    def _mappings(self, batch: ChangeBatch) -> dict[int, TableMapping]:
        found = {number: self._mapper.resolve(table) for number, table in enumerate(batch.tables)}
        return {number: mapping for number, mapping in found.items() if mapping is not None}

    def _apply(self, batch: ChangeBatch, pieces: list[TransactionPiece], mappings: dict[int, TableMapping]) -> None:
        if not pieces:
            return
        self._open = True
        self._replayable = self._replayable and self._rows <= REPLAY_ROWS
        span = _Span(batch, tuple(pieces))
        if self._replayable:
            self._spans.append(span)
        else:
            self._spans = [span]
        self._count(span)
        first, last = pieces[0].first, pieces[-1].first + pieces[-1].count
        try:
            self._target.apply(batch, first, last, mappings)
        except RowError as error:
            self._trace(error)

    def _commit(self) -> None:
        if self._boundary is None:
            return
        batch, number = self._boundary
        boundary = _row(batch, number, batch.pieces[number])
        try:
            self._target.commit(boundary)
        except RowError as error:
            self._trace(error)
            return
        self._committed(boundary)

    def _committed(self, boundary: CheckpointRow) -> None:
        self.applied = boundary
        if self._counted is not None:
            for (source, target, io_type), number in self._counts.items():
                self._counted(source, target, io_type, number)
        self.abandon()

    def _count(self, span: _Span) -> None:
        """Remember what a span did, for STATS; told when it is committed."""
        if self._counted is None:
            return
        first, last = span.pieces[0].first, span.pieces[-1].first + span.pieces[-1].count
        codes = span.batch.table[first:last].astype(np.int64) << 8 | span.batch.io_type[first:last]
        for code, number in zip(*(array.tolist() for array in np.unique(codes, return_counts=True)), strict=True):
            mapping = self._mapper.resolve(span.batch.tables[code >> 8])
            if mapping is not None:
                self._counts[mapping.source.name, mapping.target.name, code & 0xFF] += number

    def _trace(self, error: RowError) -> None:
        """Apply the group's source transactions one at a time; the one that fails again is the end."""
        self._target.rollback()
        spans, replayable = self._spans, self._replayable
        self.abandon()
        if not replayable:
            raise ApplyError(f"the target refuses a transaction of more than {REPLAY_ROWS} rows: {error}") from error
        for transaction in _transactions(spans):
            self._apply_transaction(transaction)

    def _apply_transaction(self, spans: list[_Span]) -> None:
        last = spans[-1]
        piece = last.pieces[-1]
        try:
            for span in spans:
                first = span.pieces[0].first
                self._target.apply(span.batch, first, first + span.pieces[0].count, self._mappings(span.batch))
            if not piece.ends:
                # The group broke off within a transaction: the rest of it is still to come.
                self._spans, self._open = list(spans), True
                for span in spans:
                    self._count(span)
                self._rows = sum(span.pieces[0].count for span in spans)
                return
            boundary = _row(last.batch, last.batch.pieces.index(piece), piece)
            self._target.commit(boundary)
        except RowError as error:
            self._target.rollback()
            self._name(spans, error)
        for span in spans:
            self._count(span)
        self._committed(boundary)

    def _name(self, spans: list[_Span], error: RowError) -> None:
        """Find the failing row of a transaction that failed, and say which it is.  Always raises ApplyError."""
        try:
            for span in spans:
                mappings = self._mappings(span.batch)
                piece = span.pieces[0]
                for row in range(piece.first, piece.first + piece.count):
                    mapping = mappings.get(int(span.batch.table[row]))
                    if mapping is not None:
                        try:
                            self._target.apply_one(span.batch, row, mapping)
                        except RowError as found:
                            raise self._described(span.batch, row, mapping, found) from found
        finally:
            self._target.rollback()
        raise ApplyError(f"the target refuses transaction {spans[0].pieces[0].header.xid}: {error}") from error

    def _described(self, batch: ChangeBatch, row: int, mapping: TableMapping, error: RowError) -> ApplyError:
        io_type = IoType(int(batch.io_type[row]))
        place = TrailPosition(batch.seqno, int(batch.rba[row]))
        values = row_values(batch, row, mapping)
        key = ", ".join(f"{name} = {value}" for name, value in values if name in key_names(mapping)) or "no key"
        if self._discard is not None:
            self._discard.write(mapping, io_type, place, values, str(error))
        where = f"trail file {place.seqno}, RBA {place.rba}"
        hint = "mend the target's row or the mapping, then START REPLICAT: it goes on with this transaction"
        if self._discard is not None:
            hint += f"; the row is in {self._discard.path}"
        return ApplyError(
            f"{operation_word(io_type)} on {mapping.target.name} ({key}) failed: {error}",
            code="OGG-01403" if error.missing else "OGG-01296",
            where=where,
            hint=hint,
        )


def _row(batch: ChangeBatch, number: int, piece: TransactionPiece) -> CheckpointRow:
    """The checkpoint behind a piece: where the next one begins, or the batch ends."""
    following = batch.pieces[number + 1].first if number + 1 < len(batch.pieces) else None
    rba = batch.end_rba if following is None else int(batch.rba[following])
    header = piece.header
    return CheckpointRow(TrailPosition(batch.seqno, rba), header.csn, header.xid, header.commit_time, header.restart)


def _transactions(spans: list[_Span]) -> Iterator[list[_Span]]:
    """The spans cut into source transactions, one piece a span."""
    current: list[_Span] = []
    for span in spans:
        for piece in span.pieces:
            current.append(_Span(span.batch, (piece,)))
            if piece.ends:
                yield current
                current = []
    if current:
        yield current


def operation_word(io_type: IoType) -> str:
    words = {IoType.INSERT: "insert", IoType.DELETE: "delete", IoType.PURGE_DATA: "truncate"}
    return words.get(io_type, "update")


def key_names(mapping: TableMapping) -> set[str]:
    return {mapping.source.columns[index].name for index in mapping.key}


def row_values(batch: ChangeBatch, row: int, mapping: TableMapping) -> list[tuple[str, str]]:
    """The row's columns by name, as text, for messages and the discard file."""
    start = int(batch.start[row])
    data: bytes | memoryview = memoryview(batch.buffer)[start : start + int(batch.length[row])]
    if batch.io_type[row] == IoType.KEY_FIELD_COMP:
        data = split_key_update(data)[1]
    columns = mapping.source.columns
    return [
        (columns[index].name, "NULL" if value is None else value.decode(errors="replace"))
        for index, value in decode_image(data)
    ]
