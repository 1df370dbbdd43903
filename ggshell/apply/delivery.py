"""Delivery: source transactions, grouped, into a target; each group in one transaction with its checkpoint row."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from ggshell.apply import groups
from ggshell.apply.blame import Blame, Scope
from ggshell.apply.discard import DiscardFile
from ggshell.apply.groups import Group, Left, Mappings, Span
from ggshell.apply.known import Known
from ggshell.apply.mapping import Mapper
from ggshell.apply.responses import Responses
from ggshell.apply.target import CheckpointRow, Refusal, Target
from ggshell.errors import ConnectionLostError
from ggshell.record.change import ChangeBatch
from ggshell.record.operation import NO_OPERATIONS, IoType
from ggshell.record.transaction import TransactionPiece
from ggshell.types import TableName, TrailPosition

GROUP_BYTES = 32 << 20
"""A group is committed when its rows hold this much, however few they are: it stays in memory until then."""

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
    4. after a refusal nothing of the group stays; its source transactions are applied again, in ever larger parts down to
       one, so those before the failing one are committed, and the failing one leaves nothing;
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
        truncates: bool = True,
        responses: Responses | None = None,
        discarded: Counted | None = None,
        lane: bool = False,
    ) -> None:
        """``position``: where to stand when the target has no checkpoint row; ``truncates``: false for
        IGNORETRUNCATES; ``lane``: it applies what it is given in any order, and its target names each transaction."""
        self._target = target
        self._mapper = mapper
        self._group_operations = max(1, group_operations)
        self._max_operations = max_operations
        self._counted = counted
        self._ignored = NO_OPERATIONS if truncates else frozenset({int(IoType.PURGE_DATA)})
        self._discards = discarded
        self._lane = lane
        self._blame = Blame(target, discard, responses or Responses())
        self.applied = position
        self._reset()

    def start(self) -> CheckpointRow | None:
        """Read the checkpoint row: where the target really stands.  It wins over any file; without one the ``position``
        given at the beginning stands."""
        self.applied = self._target.checkpoint() or self.applied
        self._reset()
        return self.applied

    def restart(self) -> CheckpointRow | None:
        """Go on over a new connection after ConnectionLostError; the trail must be read from the position returned."""
        self._target.reconnect()
        self._mapper.forget()
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
        pieces = self._known.fresh(batch.pieces)
        if not pieces:
            return
        batch = groups.without_operations(
            batch, [self._mapper.ignored(table) | self._ignored for table in batch.tables]
        )
        mappings = self._mappings(batch)
        if self._max_operations is not None:
            self._feed_split(batch, pieces, mappings, self._max_operations)
            return
        if self._held or self._large:
            self._continue(Span(batch, pieces[:1], mappings))
            pieces = pieces[1:]
        tail = pieces.pop() if pieces and not pieces[-1].ends else None
        self._feed_whole(batch, pieces, mappings)
        if tail is not None:
            self._continue(Span(batch, [tail], mappings))

    def flush(self) -> None:
        """Commit what is applied, if a source transaction ends there, and wait until it is certain."""
        if self._group.whole and not self._large:
            self._commit()
        self._settle()

    def abandon(self) -> None:
        """Undo everything that is not committed: the process stops within a transaction."""
        self._target.rollback()
        self._reset()

    def _reset(self) -> None:
        self._group = Group()
        self._flying: deque[Group] = deque()
        self._held: list[Span] = []
        self._large = False
        self._begin: TrailPosition | None = None
        self._done = 0
        self._last = self.applied
        self._known = Known(None if self._lane else self.applied, forgetful=self._lane)
        self._confirmed = self._target.confirmed

    def _mappings(self, batch: ChangeBatch) -> Mappings:
        if not all(self._mapper.knows(table) for table in batch.tables):
            self._settle()
        found = {number: self._mapper.resolve(table) for number, table in enumerate(batch.tables)}
        return {number: mapping for number, mapping in found.items() if mapping is not None}

    def _feed_whole(self, batch: ChangeBatch, pieces: Sequence[TransactionPiece], mappings: Mappings) -> None:
        """Whole transactions, cut into groups."""
        first, room = 0, self._group_operations - self._group.operations
        for number, piece in enumerate(pieces, 1):
            room -= piece.count
            if room <= 0:
                self._take(batch, pieces[first:number], mappings)
                self._commit()
                first, room = number, self._group_operations
        self._take(batch, pieces[first:], mappings)
        if self._group.size >= GROUP_BYTES:
            self._commit()

    def _continue(self, span: Span) -> None:
        """A transaction that comes in pieces: held back until its end, or applied as it comes when it is large."""
        self._held.append(span)
        if not self._large:
            if span.ends:
                held, self._held = self._held, []
                for kept in held:
                    self._apply(kept)
                if self._group.operations >= self._group_operations or self._group.size >= GROUP_BYTES:
                    self._commit()
                return
            if sum(kept.size for kept in self._held) < groups.LARGE_BYTES:
                return
            self.flush()
            self._large = True
            self._mark()
        self._apply_large(span.ends)

    def _apply_large(self, ends: bool) -> None:
        held, self._held = self._held, []
        for kept in held:
            if self._group.size >= MARK_BYTES:
                self._mark()
            verdict = self._blame.responses.whole.verdict(kept.pieces[0].header)
            if verdict is None:
                self._apply(kept)
            else:
                self._group.add(kept)
                self._group.leave_out(self._blame.pass_over([kept], verdict))
        if ends:
            if self._blame.responses.active:
                self._settle()  # a refusal can be answered while the mark stands, not when the commit has gone out
            self._commit()
            self._settle()
            self._large = False

    def _mark(self) -> None:
        """A place within a large transaction that a refusal can go back to; what lies before need not be kept."""
        refusal = self._target.mark()
        if refusal is not None:
            self._refused(refusal)
            refusal = self._target.mark()
            if refusal is not None:
                raise ConnectionLostError(f"the target broke a transaction off: {refusal.text}")
        self._group.spans.clear()
        self._group.size = 0

    def _feed_split(
        self, batch: ChangeBatch, pieces: Sequence[TransactionPiece], mappings: Mappings, limit: int
    ) -> None:
        """Transactions with a limit to what one target transaction may hold: a longer one is split (guard 2)."""
        for whole in pieces:
            if whole.begins:
                self._begin, self._done = groups.begin_of(batch, whole), 0
            elif self._begin is None:
                # The begin was applied before a restart, and the row says where it is.
                self._begin = self._last.position if self._last is not None else groups.begin_of(batch, whole)
                split = self._last.split if self._last is not None else None
                self._done = split.operations if split is not None else 0
            rest = whole
            while True:
                room = limit - self._group.operations
                part = rest if rest.count <= room else groups.head(rest, room)
                self._done += part.count
                self._take(batch, (part,), mappings)
                if self._group.operations >= (min(limit, self._group_operations) if part.ends else limit):
                    self._commit()
                if part is rest:
                    break
                rest = groups.without(rest, part.count)

    def _take(self, batch: ChangeBatch, pieces: Sequence[TransactionPiece], mappings: Mappings) -> None:
        for span in groups.contiguous(batch, pieces, mappings):
            self._apply(span)

    def _apply(self, span: Span) -> None:
        """Apply a span as part of the open group."""
        self._group.add(span)
        refusal = self._target.apply(span.batch, span.first, span.last, span.mappings)
        self._look()
        if refusal is not None:
            self._refused(refusal)

    def _commit(self) -> None:
        """Send the commit of the open group; the next look or settle finds its answer."""
        latest = self._group.latest
        if latest is None:
            return
        group, self._group = self._group, Group()
        group.boundary = self._last = self._boundary(group.spans or [latest])
        self._flying.append(group)
        refusal = self._target.commit(group.boundary, self._ids(group.spans or [latest]))
        self._look()
        if refusal is not None:
            self._refused(refusal)

    def _boundary(self, spans: Sequence[Span]) -> CheckpointRow:
        last = spans[-1]
        if last.ends or self._begin is None:
            return groups.boundary(spans, self._last)
        whole = [span for span in groups.transactions(spans) if span[-1].ends]
        before = groups.boundary([part for parts in whole for part in parts], self._last) if whole else self._last
        return groups.split_boundary(self._begin, last.pieces[-1], self._done, before)

    def _ids(self, spans: Sequence[Span]) -> tuple[str, ...]:
        """The transactions that end in spans, for a target that names them."""
        if not self._lane:
            return ()
        return tuple(piece.header.xid for span in spans for piece in span.pieces if piece.ends)

    def _settle(self) -> None:
        """Wait for every answer."""
        refusal = self._target.settle()
        self._look()
        if refusal is not None:
            self._refused(refusal)

    def _look(self) -> None:
        """Take note of the commits that the target has confirmed (guard 5)."""
        while self._flying and self._confirmed < self._target.confirmed:
            self._confirmed += 1
            group = self._flying.popleft()
            self.applied = group.boundary
            if self._counted is not None:
                for (source, target, io_type), number in group.counts.items():
                    self._counted(source, target, io_type, number)
            if self._discards is not None:
                for source, target, io_type in group.discards:
                    self._discards(source, target, io_type, 1)

    def _refused(self, refusal: Refusal) -> None:
        """Something sent since the last settling was refused: find out what (guard 4)."""
        spans = [span for group in (*self._flying, self._group) for span in group.spans]
        if self._large:
            self._refused_large(spans, refusal)
            return
        self._target.rollback()
        self._flying.clear()
        self._group, self._last = Group(), self.applied
        self._confirmed = self._target.confirmed
        self._anew(list(groups.transactions(spans)))

    def _anew(self, transactions: Sequence[Sequence[Span]]) -> None:
        """One transaction, then twice as many while all goes well, from one again where something is refused: few of many
        cost little, and many not much more than one at a time."""
        place, size = 0, 1
        while place < len(transactions):
            part = transactions[place : place + size]
            if len(part) == 1:
                self._alone(part[0])
            elif self._try([span for transaction in part for span in transaction]) is not None:
                self._target.rollback()
                size = 1
                continue
            place += len(part)
            size *= 2

    def _refused_large(self, spans: Sequence[Span], refusal: Refusal) -> None:
        """Go back to the last mark of a large transaction, and on from there row by row."""
        committing, self._large = bool(self._flying), False
        passed_over = self._blame.responses.whole.verdict(spans[-1].pieces[0].header) is not None
        broken_off = refusal.transient and not self._blame.aborts(refusal, spans)
        if passed_over or broken_off or not self._target.back_to_mark():
            self._blame.at_commit(spans, refusal, Scope.LARGE)
        left = self._blame.find(spans, Scope.LARGE)
        self._large = True
        self._group.leave_out(left)
        if self._blame.responses.active and not committing:
            self._mark()
        if committing:
            row = self._flying[-1].boundary or groups.boundary(spans, self._last)
            again = self._target.commit(row, self._ids(spans))
            again = again or self._target.settle()
            if again is not None:
                self._blame.at_commit(spans, again, Scope.LARGE)
            self._look()

    def _alone(self, transaction: Sequence[Span]) -> None:
        """Apply one transaction (or, at the end, the part of one that was split) in a target transaction of its own."""
        scope = Scope.WHOLE if transaction[0].pieces[0].begins and transaction[-1].ends else Scope.PART
        refusal: Refusal | None = None
        for _ in range(ATTEMPTS):
            refusal = self._try(transaction)
            if refusal is None:
                return
            self._target.rollback()
            if not refusal.transient or self._blame.aborts(refusal, transaction):
                break
        if refusal is not None and refusal.transient and not self._blame.aborts(refusal, transaction):
            raise ConnectionLostError(f"the target broke a transaction off {ATTEMPTS} times: {refusal.text}")
        left = self._blame.find(transaction, scope)
        # No row is refused alone that no rule answers: only together, or by a trigger at the commit.
        refusal = self._finish(transaction, left)
        if refusal is not None:
            left = self._blame.at_commit(transaction, refusal, scope)
            refusal = self._finish(transaction, left)
        if refusal is not None:
            self._blame.at_commit(transaction, refusal, Scope.PART)

    def _try(self, transaction: Sequence[Span]) -> Refusal | None:
        for span in transaction:
            refusal = self._target.apply(span.batch, span.first, span.last, span.mappings)
            if refusal is not None:
                return refusal
        return self._finish(transaction)

    def _finish(self, transaction: Sequence[Span], left: Sequence[Left] = ()) -> Refusal | None:
        """Commit a transaction on its own, less the operations that were passed over, and wait for it."""
        group = Group()
        for span in transaction:
            group.add(span)
        group.leave_out(left)
        group.boundary = self._boundary(transaction)
        refusal = self._target.commit(group.boundary, self._ids(transaction)) or self._target.settle()
        if refusal is None:
            self._flying.append(group)
            self._last = group.boundary
            self._look()
        return refusal
