"""Deliver source transactions to a target in groups; each group is one target transaction with its checkpoint row."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from ggshell.pipeline.apply import groups
from ggshell.pipeline.apply.counters import NO_COUNTERS, OperationCounters
from ggshell.pipeline.apply.ddl_choices import ALL_AS_THEY_ARE, DdlChoices
from ggshell.pipeline.apply.ddl_delivery import DdlDelivery
from ggshell.pipeline.apply.ddl_parts import is_ddl
from ggshell.pipeline.apply.deduplication import AcceptedTransactions
from ggshell.pipeline.apply.discard import DiscardFile
from ggshell.pipeline.apply.groups import AnsweredOperation, BatchSpan, Mappings, TransactionGroup
from ggshell.pipeline.apply.mapping import Mapper
from ggshell.pipeline.apply.refusal_isolation import IsolationScope, RefusalIsolation
from ggshell.pipeline.apply.responses import Responses
from ggshell.pipeline.apply.split_transactions import SplitTransaction
from ggshell.pipeline.apply.target import CheckpointRow, Refusal, Target
from ggshell.record.change import ChangeBatch
from ggshell.record.operation import NO_OPERATIONS, TRUNCATES
from ggshell.record.transaction import TransactionPiece

GROUP_BYTES = 32 << 20
"""A group is committed when its rows reach this size in bytes, however few they are, because it is kept in memory."""

MARK_BYTES = 8 << 20
"""How many bytes of a large transaction are kept in memory, to find a refused row in it."""

ATTEMPTS = 4
"""How often a transaction is tried that the target aborts (deadlock, serialization failure, lock timeout)."""


class Delivery:
    """Applies batches in order.

    Guards against applying work twice or skipping it, each tested by its number:

    1. a transaction that the checkpoint row (or this process since then) counts as applied is skipped as a whole,
    regardless of the pieces in which it arrives; transactions that share a CSN are distinguished by their ids; 2. a
    group is committed only after the end of a source transaction; only ``max_operations`` may split a transaction, and
    then the checkpoint row records how much of it is applied, and that much is skipped after a restart; 3. the
    checkpoint row is written in the same target transaction as the rows, and holds the place after the last of them; 4.
    after a refusal the whole group is rolled back; its source transactions are applied again, one first and then in
    growing parts, so those before the failing one are committed, and nothing of the failing one remains; 5. ``applied``
    moves, and statistics count, only after the target has confirmed the commit; 6. after a lost connection everything
    unconfirmed is dropped: ``restart`` reads the checkpoint row, which alone shows whether the last commit succeeded,
    and reading continues at its position.

    A DDL statement arrives as a batch of its own (``ddl_parts``). Its transaction is applied as a large one: alone, with a
    savepoint before and after each statement.

    The last commit may still be pending when ``feed`` returns; ``flush`` waits for it.
    """

    def __init__(
        self,
        target: Target,
        mapper: Mapper,
        *,
        group_operations: int = 1000,
        max_operations: int | None = None,
        discard: DiscardFile | None = None,
        position: CheckpointRow | None = None,
        truncates: bool = True,
        responses: Responses | None = None,
        counters: OperationCounters = NO_COUNTERS,
        applier: bool = False,
        ddl: DdlChoices = ALL_AS_THEY_ARE,
    ) -> None:
        """Prepare delivery.

        ``position``: where to start if the target has no checkpoint row; ``truncates``: False for IGNORETRUNCATES;
        ``applier``: the delivery of an applier, which gets transactions in any order and whose target records the id of
        each."""
        self._target = target
        self._mapper = mapper
        self._group_operations = max(1, group_operations)
        self._max_operations = max_operations
        self._counters = counters
        self._ignored = NO_OPERATIONS if truncates else TRUNCATES
        self._applier = applier
        self._isolation = RefusalIsolation(target, discard, responses or Responses())
        self._ddl = DdlDelivery(target, mapper, discard, self._isolation.responses, ddl)
        self.applied = position
        self.operations = 0
        """How many operations are in confirmed commits, since the process started."""
        self._reset()

    def start(self) -> CheckpointRow | None:
        """Read the checkpoint row, the actual position of the target, and return it.

        It takes precedence over any file; without a row the initial ``position`` applies."""
        self.applied = self._target.checkpoint() or self.applied
        self._reset()
        return self.applied

    def restart(self) -> CheckpointRow | None:
        """Continue over a new connection after ConnectionLostError; read the trail from the returned position."""
        self._target.reconnect()
        self._mapper.forget()
        return self.start()

    @property
    def pending(self) -> bool:
        """Whether there are rows that are not in a confirmed commit."""
        return bool(self._group.spans or self._unconfirmed or self._held)

    @property
    def large(self) -> bool:
        """Whether a large source transaction is being applied whose end has not arrived."""
        return self._large

    @property
    def threads(self) -> None:
        """No threads: one connection applies everything."""
        return None

    def feed(self, batch: ChangeBatch) -> None:
        """Apply a batch, and commit whenever a group is full. Raises ApplyError, ConnectionLostError."""
        pieces = self._accepted.fresh(batch.pieces)
        if not pieces:
            return
        if is_ddl(batch):
            self._feed_ddl(BatchSpan(batch, pieces, {}))
            return
        self._nothing_fed = False
        batch = groups.without_operations(
            batch, [self._mapper.ignored(table) | self._ignored for table in batch.tables]
        )
        mappings = self._mappings(batch)
        if self._max_operations is not None:
            self._feed_split(batch, pieces, mappings, self._max_operations)
            return
        if self._held or self._large:
            self._continue(BatchSpan(batch, pieces[:1], mappings))
            pieces = pieces[1:]
        tail = pieces.pop() if pieces and not pieces[-1].ends else None
        self._feed_whole(batch, pieces, mappings)
        if tail is not None:
            self._continue(BatchSpan(batch, [tail], mappings))

    @property
    def oldest(self) -> int:
        """The commit time of the oldest transaction that is not in a confirmed commit; 0 if there is none."""
        spans = [span for group in (*self._unconfirmed, self._group) for span in group.spans] or self._held
        return spans[0].pieces[0].header.commit_time if spans and self.pending else 0

    def advance(self) -> None:
        """Same as ``flush``: a single connection does one thing at a time."""
        self.flush()

    def wake(self) -> list[int]:
        """Return no descriptors: nothing is pending after ``advance``."""
        return []

    def flush(self) -> None:
        """Commit what is applied, if it ends with a source transaction, and wait for the confirmation."""
        if self._group.whole and not self._large:
            self._commit()
        self._await_answers()

    def save(self) -> None:
        """Do nothing: each commit contains the group's row."""

    def note(self) -> bool:
        """Record the commits that the target has confirmed, also if the last call raised an error."""
        self._read_answers()
        return True

    def abandon(self) -> None:
        """Roll back everything that is not committed, because the process stops inside a transaction."""
        self._target.rollback()
        self._read_answers()
        self._reset()

    def activity(self) -> dict[str, Any]:
        return {}

    def end(self) -> None:
        """Do nothing: the target is closed by its owner."""

    def _reset(self) -> None:
        self._group = TransactionGroup()
        self._unconfirmed: deque[TransactionGroup] = deque()
        self._held: list[BatchSpan] = []
        self._large = False
        self._split = SplitTransaction()
        self._nothing_fed = True
        self._last = self.applied
        self._accepted: AcceptedTransactions = AcceptedTransactions(
            None if self._applier else self.applied, forgetful=self._applier
        )
        self._confirmed = self._target.confirmed

    def _mappings(self, batch: ChangeBatch) -> Mappings:
        if not all(self._mapper.knows(table) for table in batch.tables):
            self._await_answers()
        found = {number: self._mapper.resolve(table) for number, table in enumerate(batch.tables)}
        return {number: mapping for number, mapping in found.items() if mapping is not None}

    def _feed_whole(self, batch: ChangeBatch, pieces: Sequence[TransactionPiece], mappings: Mappings) -> None:
        """Apply whole transactions, split into groups."""
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

    def _continue(self, span: BatchSpan) -> None:
        """Continue a transaction that arrives in pieces: hold it back until its end, or apply it piece by piece if large."""
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
            self._open_alone()
        self._apply_large(span.ends)

    def _open_alone(self) -> None:
        """Commit what came before, and open a target transaction for one source transaction."""
        self.flush()
        self._large = True
        self._set_savepoint()

    def _apply_large(self, ends: bool) -> None:
        held, self._held = self._held, []
        for kept in held:
            if self._group.size >= MARK_BYTES:
                self._set_savepoint()
            verdict = self._isolation.responses.whole.verdict(kept.pieces[0].header)
            if verdict is None:
                self._apply(kept)
            else:
                self._group.add(kept)
                self._group.leave_out(self._isolation.pass_over([kept], verdict))
        if ends:
            self._end_alone()

    def _end_alone(self) -> None:
        self._await_answers()  # a refusal can be answered while the savepoint exists, not after the commit is sent
        self._commit()
        self._await_answers()
        self._large = False

    def _feed_ddl(self, span: BatchSpan) -> None:
        """Execute a DDL statement in its place; the rows before it in its transaction are held or applied."""
        is_first, self._nothing_fed = self._nothing_fed, False
        if self._ddl.outside(span):
            self.flush()
            self._close_ddl(span, self._ddl.execute_outside(span, again=is_first))
            self._commit()
            self._await_answers()
            return
        if self._max_operations is not None:
            self._split.enter(span.batch, span.pieces[0], self._last)
            self._commit()
            self._await_answers()
            self._split.add(1)
        if not self._large:
            self._open_alone()
        self._apply_large(ends=False)
        self._set_savepoint()
        verdict = self._isolation.responses.whole.verdict(span.pieces[0].header)
        answered = self._ddl.execute(span) if verdict is None else self._ddl.pass_over(span, verdict.refusal)
        self._set_savepoint()
        self._close_ddl(span, answered)
        if span.ends or self._max_operations is not None:
            self._end_alone()

    def _close_ddl(self, span: BatchSpan, answered: AnsweredOperation | None) -> None:
        self._group.add(span)
        if answered is not None:
            self._group.counts[answered.source, answered.target, answered.io_type] += 1
            self._group.leave_out([answered])

    def _set_savepoint(self) -> None:
        """Set a savepoint in a large transaction to roll back to after a refusal; rows before it need not be kept in memory."""
        refusal = self._target.set_savepoint()
        if refusal is not None:
            self._refused(refusal)
            refusal = self._target.set_savepoint()
            if refusal is not None:
                raise refusal.aborted()
        self._group.spans.clear()
        self._group.size = 0

    def _feed_split(
        self, batch: ChangeBatch, pieces: Sequence[TransactionPiece], mappings: Mappings, limit: int
    ) -> None:
        """Apply transactions with a limit on operations per target transaction; longer ones are split (guarantee 2)."""
        for whole in pieces:
            self._split.enter(batch, whole, self._last)
            rest = whole
            while True:
                room = limit - self._group.operations
                part = rest if rest.count <= room else groups.head(rest, room)
                self._split.add(part.count)
                self._take(batch, (part,), mappings)
                if self._group.operations >= (min(limit, self._group_operations) if part.ends else limit):
                    self._commit()
                if part is rest:
                    break
                rest = groups.without(rest, part.count)

    def _take(self, batch: ChangeBatch, pieces: Sequence[TransactionPiece], mappings: Mappings) -> None:
        for span in groups.contiguous(batch, pieces, mappings):
            self._apply(span)

    def _apply(self, span: BatchSpan) -> None:
        """Apply a span as part of the open group."""
        self._group.add(span)
        refusal = self._target.apply(span.batch, span.first, span.last, span.mappings)
        self._read_answers()
        if refusal is not None:
            self._refused(refusal)

    def _commit(self) -> None:
        """Send the commit of the open group; ``_read_answers`` or ``_await_answers`` takes the answer."""
        latest = self._group.latest
        if latest is None:
            return
        group, self._group = self._group, TransactionGroup()
        group.boundary = self._last = self._split.boundary(group.spans or [latest], self._last)
        self._unconfirmed.append(group)
        refusal = self._target.commit(group.boundary, self._ids(group.spans or [latest]))
        self._read_answers()
        if refusal is not None:
            self._refused(refusal)

    def _ids(self, spans: Sequence[BatchSpan]) -> tuple[str, ...]:
        """Return the ids of the transactions that end in the spans, for a target that records them."""
        if not self._applier:
            return ()
        return tuple(piece.header.xid for span in spans for piece in span.pieces if piece.ends)

    def _await_answers(self) -> None:
        """Wait for all answers."""
        refusal = self._target.await_answers()
        self._read_answers()
        if refusal is not None:
            self._refused(refusal)

    def _read_answers(self) -> None:
        """Record the commits that the target has confirmed (guarantee 5)."""
        while self._unconfirmed and self._confirmed < self._target.confirmed:
            self._confirmed += 1
            group = self._unconfirmed.popleft()
            self.applied = group.boundary
            self.operations += group.operations
            self._counters.add(group)

    def _refused(self, refusal: Refusal) -> None:
        """Find the refused operation among everything sent since the last answer (guarantee 4)."""
        spans = [span for group in (*self._unconfirmed, self._group) for span in group.spans]
        if self._large:
            self._refused_large(spans, refusal)
            return
        self._target.rollback()
        self._unconfirmed.clear()
        self._group, self._last = TransactionGroup(), self.applied
        self._confirmed = self._target.confirmed
        self._apply_again(list(groups.transactions(spans)))

    def _apply_again(self, transactions: Sequence[Sequence[BatchSpan]]) -> None:
        """Apply transactions again: one, then twice as many each time, and from one again after a refusal.

        With few refusals this costs little, and with many not much more than one transaction at a time."""
        place, size = 0, 1
        while place < len(transactions):
            part = transactions[place : place + size]
            if len(part) == 1:
                self._apply_alone(part[0])
            elif self._try([span for transaction in part for span in transaction]) is not None:
                self._target.rollback()
                size = 1
                continue
            place += len(part)
            size *= 2

    def _refused_large(self, spans: Sequence[BatchSpan], refusal: Refusal) -> None:
        """Go back to the last savepoint of a large transaction and continue from there row by row."""
        committing, self._large = bool(self._unconfirmed), False
        passed_over = self._isolation.responses.whole.verdict(spans[-1].pieces[0].header) is not None
        broken_off = refusal.transient and not self._isolation.aborts(refusal, spans)
        if passed_over or broken_off or not self._target.rollback_to_savepoint():
            self._isolation.at_commit(spans, refusal, IsolationScope.LARGE)
        answered = self._isolation.find(spans, IsolationScope.LARGE)
        self._large = True
        self._group.leave_out(answered)
        if self._isolation.responses.active and not committing:
            self._set_savepoint()
        if committing:
            row = self._unconfirmed[-1].boundary or groups.boundary(spans, self._last)
            again = self._target.commit(row, self._ids(spans))
            again = again or self._target.await_answers()
            if again is not None:
                self._isolation.at_commit(spans, again, IsolationScope.LARGE)
            self._read_answers()

    def _apply_alone(self, transaction: Sequence[BatchSpan]) -> None:
        """Apply one transaction, or the last part of a split one, in a separate target transaction."""
        scope = (
            IsolationScope.WHOLE if transaction[0].pieces[0].begins and transaction[-1].ends else IsolationScope.PART
        )
        refusal: Refusal | None = None
        for _ in range(ATTEMPTS):
            refusal = self._try(transaction)
            if refusal is None:
                return
            self._target.rollback()
            if not refusal.transient or self._isolation.aborts(refusal, transaction):
                break
        if refusal is not None and refusal.transient and not self._isolation.aborts(refusal, transaction):
            raise refusal.aborted(ATTEMPTS)
        answered = self._isolation.find(transaction, scope)
        # No single row is refused without an answer; a refusal now concerns rows together, or comes from the commit.
        refusal = self._finish(transaction, answered)
        if refusal is not None:
            answered = self._isolation.at_commit(transaction, refusal, scope)
            refusal = self._finish(transaction, answered)
        if refusal is not None:
            self._isolation.at_commit(transaction, refusal, IsolationScope.PART)

    def _try(self, transaction: Sequence[BatchSpan]) -> Refusal | None:
        for span in transaction:
            refusal = self._target.apply(span.batch, span.first, span.last, span.mappings)
            if refusal is not None:
                return refusal
        return self._finish(transaction)

    def _finish(self, transaction: Sequence[BatchSpan], answered: Sequence[AnsweredOperation] = ()) -> Refusal | None:
        """Commit a single transaction, without counting the operations that were skipped, and wait for the answer."""
        group = TransactionGroup()
        for span in transaction:
            group.add(span)
        group.leave_out(answered)
        group.boundary = self._split.boundary(transaction, self._last)
        refusal = self._target.commit(group.boundary, self._ids(transaction)) or self._target.await_answers()
        if refusal is None:
            self._unconfirmed.append(group)
            self._last = group.boundary
            self._read_answers()
        return refusal
