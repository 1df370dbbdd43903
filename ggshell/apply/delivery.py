"""Delivery: source transactions, grouped, into a target; each group in one transaction with its checkpoint row."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

import numpy as np

from ggshell.apply import groups
from ggshell.apply.blame import Blame
from ggshell.apply.discard import DiscardFile
from ggshell.apply.groups import Group, Span
from ggshell.apply.mapping import Mapper
from ggshell.apply.target import CheckpointRow, Refusal, TableMapping, Target
from ggshell.errors import ConnectionLostError
from ggshell.record import ChangeBatch, TransactionPiece
from ggshell.types import TableName, TrailPosition

GROUP_BYTES = 32 << 20
"""A group is committed when its rows hold this much, however few they are: it stays in memory until then."""

LARGE_BYTES = 4 << 20
"""A transaction without its end is held back up to this much; a larger one is applied while it comes."""

MARK_BYTES = 8 << 20
"""How much of a large transaction is kept, so that a refused row in it can be found."""

ATTEMPTS = 4
"""How often a transaction is tried that the target broke off (deadlock, serialization failure, lock time-out)."""

Counted = Callable[[TableName, TableName, int, int], None]


class Delivery:
    """Applies batches in order.

    Guards against double and skipped work, each tested by its number:

    1. a transaction that the checkpoint row (or this process since) counts as applied is skipped whole, in whatever pieces
       it comes; transactions that share a CSN are told apart by their ids;
    2. a group is committed only behind the end of a source transaction; only ``max_operations`` may split one, and then the
       checkpoint row says how much of it is applied, and that much is left out after a restart;
    3. the checkpoint row is written in the same target transaction as the rows, and says the place behind the last of them;
    4. after a refusal nothing of the group stays; its source transactions are applied again one at a time, so those before
       the failing one are committed, and the failing one leaves nothing;
    5. ``applied`` moves, and statistics count, only when the target has confirmed the commit;
    6. after a lost connection everything unconfirmed is forgotten: ``restart`` asks the checkpoint row, which alone knows
       whether the last commit succeeded, and reading goes on where it says.

    The last commit may be on its way when ``feed`` returns; ``flush`` waits for it.
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
        position: CheckpointRow | None = None,
    ) -> None:
        self._target = target
        self._mapper = mapper
        self._group_operations = max(1, group_operations)
        self._max_operations = max_operations
        self._counted = counted
        self._blame = Blame(target, mapper, discard)
        self._clear()
        self.applied = position
        self._mark = position

    def _clear(self) -> None:
        self._group = Group()
        self._flying: deque[Group] = deque()
        self._held: list[Span] = []
        self._held_bytes = 0
        self._large = False
        self._begin: TrailPosition | None = None
        self._done = 0
        self._confirmed = self._target.confirmed

    def start(self) -> CheckpointRow | None:
        """Read the checkpoint row: where the target really stands.  It wins over any file; without one the position given
        stands."""
        self.applied = self._mark = self._target.checkpoint() or self.applied
        return self.applied

    def restart(self) -> CheckpointRow | None:
        """Go on over a new connection after ConnectionLostError; the trail must be read from the position returned."""
        self._target.reconnect()
        self._mapper.forget()
        self._clear()
        return self.start()

    @property
    def pending(self) -> bool:
        """Whether there are rows that no confirmed commit holds."""
        return bool(self._group.spans or self._flying or self._held)

    @property
    def large(self) -> bool:
        """Whether a large source transaction is being applied whose end has not come."""
        return self._large

    def feed(self, batch: ChangeBatch) -> None:
        """Apply a batch; commits whenever a group is full.  Raises ApplyError, ConnectionLostError."""
        mappings = self._mappings(batch)
        run: list[TransactionPiece] = []
        room = self._room()
        for piece in self._wanted(batch):
            if run and run[-1].first + run[-1].count != piece.first:
                self._take(Span(batch, tuple(run)), mappings)
                run = []
            if self._held or not piece.ends and self._max_operations is None:
                self._take(Span(batch, tuple(run)), mappings)
                self._hold(Span(batch, (piece,)), mappings)
                run, room = [], self._room()
                continue
            run.append(piece)
            room -= piece.count
            if room <= 0 and (piece.ends or self._max_operations is not None):
                self._take(Span(batch, tuple(run)), mappings)
                self._commit()
                run, room = [], self._room()
        self._take(Span(batch, tuple(run)), mappings)
        if self._group.size >= GROUP_BYTES and self._group.spans[-1].ends:
            self._commit()

    def flush(self) -> None:
        """Commit what is applied, if a source transaction ends there, and wait until it is certain."""
        if self._group.spans and not self._large and self._group.spans[-1].ends:
            self._commit()
        self._settle()

    def abandon(self) -> None:
        """Forget everything that is not committed: the process stops within a transaction."""
        self._target.rollback()
        self._clear()
        self._mark = self.applied

    def _room(self) -> int:
        """How many operations the open group may still take."""
        limit = self._group_operations
        if self._max_operations is not None:
            limit = min(limit, self._max_operations)
        return limit - self._group.operations

    def _wanted(self, batch: ChangeBatch) -> Iterator[TransactionPiece]:
        """Pieces that are not applied yet (guards 1 and 2), cut where ``max_operations`` says."""
        for piece in batch.pieces:
            if groups.known(piece, self._mark):
                continue
            if piece.begins:
                self._begin, self._done = groups.begin_of(batch, piece), 0
            rest = self._unapplied(piece)
            while rest is not None and self._max_operations is not None and rest.count > self._max_operations:
                part, rest = groups.cut(rest, self._max_operations)
                yield self._passed(batch, part)
            if rest is not None:
                yield self._passed(batch, rest)

    def _unapplied(self, piece: TransactionPiece) -> TransactionPiece | None:
        """A piece without the operations that a split left applied."""
        split = self._mark.split if self._mark is not None else None
        if split is None or (split.csn, split.xid) != (piece.header.csn, piece.header.xid):
            return piece
        skipped = min(piece.count, max(0, split.operations - self._done))
        self._done += skipped
        if skipped < piece.count:
            return groups.without(piece, skipped) if skipped else piece
        return None

    def _passed(self, batch: ChangeBatch, piece: TransactionPiece) -> TransactionPiece:
        self._done += piece.count
        if piece.ends:
            self._mark = groups.boundary(batch, piece, self._mark)
        return piece

    def _mappings(self, batch: ChangeBatch) -> dict[int, TableMapping]:
        if not all(self._mapper.knows(table) for table in batch.tables):
            self._settle()
        found = {number: self._mapper.resolve(table) for number, table in enumerate(batch.tables)}
        return {number: mapping for number, mapping in found.items() if mapping is not None}

    def _take(self, span: Span, mappings: dict[int, TableMapping]) -> None:
        """Apply a span as part of the open group."""
        if not span.pieces:
            return
        self._group.add(span)
        self._count(span, mappings)
        refusal = self._target.apply(span.batch, span.first, span.last, mappings)
        self._look()
        if refusal is not None:
            self._refused(refusal)

    def _hold(self, span: Span, mappings: dict[int, TableMapping]) -> None:
        """Keep pieces of a transaction until its end; a large one is applied as it comes."""
        self._held.append(span)
        self._held_bytes += int(span.batch.length[span.first : span.last].sum())
        if not span.ends and self._held_bytes < LARGE_BYTES:
            return
        if not span.ends and not self._large:
            self.flush()
            self._large = True
        held, self._held = self._held, []
        for kept in held:
            if self._large:
                self._set_mark()
            self._take(kept, mappings if kept is span else self._mappings(kept.batch))
        if not span.ends:
            self._held, self._held_bytes = [], LARGE_BYTES
            return
        self._held_bytes = 0
        if self._large:
            self._commit()
            self._settle()
