"""Coordinated delivery: each thread applies its tables in order; a transaction of several threads is a barrier for all.

Each thread has its own row of the checkpoint table.  The group's row follows when all threads rest, so everything up to it
is applied, and of what lies above it each thread knows by its own row.  Which thread applies a transaction depends on the
transaction alone (its tables, its size), never on how it was read, so that a restart asks the same thread again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from queue import SimpleQueue
from typing import Final

from ggshell.apply import groups
from ggshell.apply.known import Known
from ggshell.apply.lane import Answer, Failed, Job, Lane, Rested
from ggshell.apply.mapping import Mapper
from ggshell.apply.target import CheckpointRow
from ggshell.apply.threads import ALL, Router
from ggshell.apply.watermarks import Marks
from ggshell.record.change import ChangeBatch
from ggshell.record.transaction import TransactionPiece

SAVE_TRANSACTIONS: Final = 5_000
LARGE_THREAD: Final = 0
"""A transaction from ``groups.LARGE_BYTES`` on is applied by a thread of its own, whatever its tables are."""


class CoordinatedDelivery:
    """Applies batches on the lanes of threads, by number."""

    def __init__(
        self,
        lanes: Mapping[int, Lane],
        answers: SimpleQueue[Answer],
        mapper: Mapper,
        router: Router,
        start: CheckpointRow,
        save: Callable[[Marks], None],
    ) -> None:
        self._lanes = lanes
        self._numbers = {thread: number for number, thread in enumerate(lanes)}
        self._threads = list(lanes)
        self._answers = answers
        self._mapper = mapper
        self._router = router
        self._save = save
        self._known = Known(start)
        self._sent = dict.fromkeys(lanes, 0)
        self._rested = dict.fromkeys(lanes, 0)
        self._held: list[ChangeBatch] = []
        self._large = False
        self._unsaved = 0
        self._last = start
        self.applied: CheckpointRow | None = start

    @property
    def pending(self) -> bool:
        return self._sent != self._rested or bool(self._held) or self._large or self.applied is not self._last

    @property
    def large(self) -> bool:
        return self._large

    def feed(self, batch: ChangeBatch) -> None:
        """Apply a batch, sooner or later.  Raises what a lane raised."""
        self._listen(wait=False)
        pieces = self._known.fresh(batch.pieces)
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

    def flush(self) -> None:
        """Wait until all threads rest, and move the group's row."""
        if self._large:
            return
        self._rest()
        if self.applied is not self._last:
            row = self._last
            self._save(Marks(row, (row.csn, row.xid), row.same_csn, ()))
            self.applied, self._unsaved = row, 0

    def abandon(self) -> None:
        """Nothing is undone here: a lane that ends leaves what it has not committed to the target to undo."""

    def end(self) -> None:
        for lane in self._lanes.values():
            lane.end()

    def _whole(self, batch: ChangeBatch, pieces: Sequence[TransactionPiece]) -> None:
        mine: dict[int, list[TransactionPiece]] = {}
        for piece, threads in zip(pieces, self._router.route(batch, pieces), strict=True):
            size = int(batch.length[piece.first : piece.first + piece.count].sum())
            if len(threads) == 1 and ALL not in threads and size < groups.LARGE_BYTES:
                mine.setdefault(threads.pop(), []).append(piece)
            elif threads:
                self._send(batch, mine)
                mine = {}
                self._alone(_owner(threads, size), [replace(batch, pieces=(piece,))])
            self._passed(batch, piece)
        self._send(batch, mine)

    def _send(self, batch: ChangeBatch, mine: Mapping[int, Sequence[TransactionPiece]]) -> None:
        for thread, pieces in mine.items():
            self._put(thread, [replace(batch, pieces=tuple(pieces))])

    def _put(self, thread: int, batches: Sequence[ChangeBatch]) -> None:
        self._sent[thread] += 1
        self._lanes[thread].put(Job(batches))

    def _alone(self, thread: int, batches: Sequence[ChangeBatch]) -> None:
        self._rest()
        self._put(thread, batches)
        self._rest()

    def _passed(self, batch: ChangeBatch, piece: TransactionPiece) -> None:
        """The row that will be right once all threads rest."""
        self._last = groups.boundary([groups.Span(batch, (piece,), {})], self._last)
        self._unsaved += 1

    def _continue(self, part: ChangeBatch) -> None:
        """A transaction that comes in pieces: held back until its end or its size says whose it is."""
        piece = part.pieces[0]
        self._held.append(part)
        if not self._large:
            size = sum(int(each.length[p.first : p.first + p.count].sum()) for each in self._held for p in each.pieces)
            if size >= groups.LARGE_BYTES:
                self._rest()
                self._large = True
            elif piece.ends:
                held, self._held = self._held, []
                threads = set().union(*(self._router.route(each, each.pieces)[0] for each in held))
                if threads:
                    self._alone(_owner(threads, size), held)
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
                self._rested[self._threads[answer.lane]] = answer.jobs
            wait = False


def _owner(threads: set[int], size: int) -> int:
    """Who applies a transaction that all wait for: it must not depend on anything else."""
    if size >= groups.LARGE_BYTES:
        return LARGE_THREAD
    return min((thread for thread in threads if thread > 0), default=1)
