"""Coordinated delivery: each thread applies its tables in order; a transaction of several threads is a barrier for all.

Each thread has its own row in the checkpoint table. The group's row moves when all threads are idle, so everything up to it
is applied; for what follows, each thread knows from its own row what it has applied. The thread of a transaction depends
only on the transaction (its tables, its size), never on how it was read, so a restart chooses the same thread again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ggshell.pipeline.apply import groups
from ggshell.pipeline.apply.applier import Answers, Applier, ApplierJob, Failed, Rested
from ggshell.pipeline.apply.ddl_barrier import DdlBarrier
from ggshell.pipeline.apply.ddl_parts import is_ddl
from ggshell.pipeline.apply.deduplication import AcceptedTransactions
from ggshell.pipeline.apply.mapping import Mapper
from ggshell.pipeline.apply.target import CheckpointRow
from ggshell.pipeline.apply.threads import ALL, Router
from ggshell.pipeline.apply.watermarks import WatermarkState
from ggshell.record.change import ChangeBatch
from ggshell.record.transaction import TransactionPiece

SAVE_TRANSACTIONS: Final = 5_000
LARGE_THREAD: Final = 0
"""The thread for transactions of at least ``groups.LARGE_BYTES``, regardless of their tables."""


class CoordinatedDelivery:
    """Applies batches on the appliers of the threads; ``appliers`` by thread number."""

    def __init__(
        self,
        appliers: Mapping[int, Applier],
        answers: Answers,
        mapper: Mapper,
        router: Router,
        start: CheckpointRow,
        barrier: DdlBarrier,
        save: Callable[[WatermarkState], None],
    ) -> None:
        self._appliers = appliers
        self._numbers = {thread: number for number, thread in enumerate(appliers)}
        self._threads = list(appliers)
        self._answers = answers
        self._mapper = mapper
        self._router = router
        self._barrier = barrier
        self._save = save
        self._accepted = AcceptedTransactions(start)
        self._sent = dict.fromkeys(appliers, 0)
        self._rested = dict.fromkeys(appliers, 0)
        self._held: list[ChangeBatch] = []
        self._large = False
        self._unsaved = 0
        self._last = start
        self._oldest = 0
        self.applied: CheckpointRow | None = start

    @property
    def threads(self) -> list[int]:
        """The thread numbers."""
        return self._threads

    @property
    def pending(self) -> bool:
        waits = bool(self._held) or self._large or self._barrier.open
        return waits or self._sent != self._rested or self.applied is not self._last

    def activity(self) -> dict[str, Any]:
        """Return what the threads do, for STATUS: the jobs that each had, and those that are not confirmed as done."""
        return {
            "threads": [
                {"thread": each, "jobs": sent, "open_jobs": sent - self._rested[each]}
                for each, sent in self._sent.items()
            ]
        }

    def feed(self, batch: ChangeBatch) -> None:
        """Hand a batch to the threads; it may be applied later. Raises the error of a failed applier."""
        self._listen(wait=False)
        pieces = self._accepted.fresh(batch.pieces)
        if not pieces:
            return
        if is_ddl(batch):
            self._begin_barrier(pieces[0])
        if self._barrier.open:
            self._feed_barrier(replace(batch, pieces=(pieces.pop(0),)))
            if not pieces:
                return
        for table in batch.tables:
            self._mapper.resolve(table)
        if self._held or self._large:
            self._continue(replace(batch, pieces=(pieces.pop(0),)))
        tail = pieces.pop() if pieces and not pieces[-1].ends else None
        self._whole(batch, pieces)
        if tail is not None:
            self._continue(replace(batch, pieces=(tail,)))
        if self._unsaved >= SAVE_TRANSACTIONS:
            self.flush()

    @property
    def oldest(self) -> int:
        """The commit time of the oldest transaction that the group's row does not cover; 0 if there is none."""
        return self._oldest or self._barrier.oldest if self.pending else 0

    def advance(self) -> None:
        """Move the group's row if all threads are idle, without waiting for them."""
        self._listen(wait=False)
        if self._sent == self._rested:
            self.flush()

    def wake(self) -> list[int]:
        """Return the descriptor that becomes readable when a thread has answered."""
        if self._sent == self._rested:
            return []
        self._answers.arm()
        return [self._answers.fileno()]

    def flush(self) -> None:
        """Wait until all threads are idle, and move the group's row."""
        if self._barrier.open:
            self._barrier.flush()
        if self._large or self._barrier.open:
            return
        self._rest()
        if self.applied is not self._last:
            row = self._last
            self._save(WatermarkState(row, (row.csn, row.xid), row.same_csn, ()))
            self.applied, self._unsaved = row, 0
            self._oldest = 0

    def save(self) -> None:
        """Do nothing: ``flush`` saves the group's row when it moves."""

    def note(self) -> bool:
        return False

    def abandon(self) -> None:
        """Roll back a transaction with DDL; when an applier ends, the target rolls back what it has not committed."""
        self._barrier.abandon()

    def end(self) -> None:
        for applier in self._appliers.values():
            applier.end()
        self._answers.close()

    def _whole(self, batch: ChangeBatch, pieces: Sequence[TransactionPiece]) -> None:
        mine: dict[int, list[TransactionPiece]] = {}
        for piece, threads in zip(pieces, self._router.route(batch, pieces), strict=True):
            size = int(batch.length[piece.first : piece.first + piece.count].sum())
            if len(threads) == 1 and ALL not in threads and size < groups.LARGE_BYTES:
                mine.setdefault(threads.pop(), []).append(piece)
            elif threads:
                self._send(batch, mine)
                mine = {}
                self._apply_alone(_owner(threads, size), [replace(batch, pieces=(piece,))])
            self._passed(batch, piece)
        self._send(batch, mine)

    def _send(self, batch: ChangeBatch, mine: Mapping[int, Sequence[TransactionPiece]]) -> None:
        for thread, pieces in mine.items():
            self._put(thread, [replace(batch, pieces=tuple(pieces))])

    def _put(self, thread: int, batches: Sequence[ChangeBatch]) -> None:
        self._sent[thread] += 1
        self._appliers[thread].put(ApplierJob(batches))

    def _apply_alone(self, thread: int, batches: Sequence[ChangeBatch]) -> None:
        self._rest()
        self._put(thread, batches)
        self._rest()

    def _passed(self, batch: ChangeBatch, piece: TransactionPiece) -> None:
        """Record the row that applies once all threads are idle."""
        self._last = groups.boundary([groups.BatchSpan(batch, (piece,), {})], self._last)
        self._oldest = self._oldest or piece.header.commit_time
        self._unsaved += 1

    def _begin_barrier(self, piece: TransactionPiece) -> None:
        """Wait until everything before a transaction with DDL is applied."""
        if self._barrier.open:
            return
        if self._large:
            self._barrier.start_again(piece.header)
        self.flush()
        held, self._held = self._held, []
        self._barrier.begin(held)

    def _feed_barrier(self, part: ChangeBatch) -> None:
        row = self._barrier.feed(part)
        if row is not None:
            self._last = self.applied = row

    def _continue(self, part: ChangeBatch) -> None:
        """Continue a transaction that arrives in pieces: hold it back until its end or its size determines its thread."""
        piece = part.pieces[0]
        self._held.append(part)
        if not self._large:
            size = sum(int(each.length[p.first : p.first + p.count].sum()) for each in self._held for p in each.pieces)
            if size >= groups.LARGE_BYTES and self._barrier.known(piece.header):
                self._held.pop()
                self._begin_barrier(piece)
                self._feed_barrier(part)
                return
            if size >= groups.LARGE_BYTES:
                self._rest()
                self._large = True
            elif piece.ends:
                held, self._held = self._held, []
                threads = set().union(*(self._router.route(each, each.pieces)[0] for each in held))
                if threads:
                    self._apply_alone(_owner(threads, size), held)
                self._passed(part, piece)
                return
            else:
                return
        held, self._held = self._held, []
        self._put(LARGE_THREAD, held)
        if piece.ends:
            self._large = False
            self._rest()
            self._passed(part, piece)

    def _rest(self) -> None:
        while self._sent != self._rested:
            self._listen(wait=True)

    def _listen(self, *, wait: bool) -> None:
        while wait or not self._answers.empty():
            answer = self._answers.get()
            if isinstance(answer, Failed):
                raise answer.error
            if isinstance(answer, Rested):
                self._rested[self._threads[answer.applier]] = answer.jobs
            wait = False


def _owner(threads: set[int], size: int) -> int:
    """Return the thread that applies a barrier transaction; it depends on the transaction alone."""
    if size >= groups.LARGE_BYTES:
        return LARGE_THREAD
    return min((thread for thread in threads if thread > 0), default=1)
