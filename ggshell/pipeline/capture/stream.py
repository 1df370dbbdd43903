"""Capture: the committed transactions of a log as batches, in commit order."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from dataclasses import replace

from ggshell.errors import CaptureError
from ggshell.pipeline.capture.cache import Committed, OpenTransaction, TransactionCache
from ggshell.pipeline.capture.source import LogSource, LogState, MessageRun
from ggshell.record.change import ChangeBatch
from ggshell.record.transaction import Completed, TransactionHeader
from ggshell.types import Csn

BATCH_MESSAGES = 800
"""Large enough for a small cost per batch, small enough that the source does not wait during the encoding."""

PIECE_MESSAGES = 4_000
"""A large transaction is complete before it is encoded, so nothing waits while a piece of it is encoded."""


class Capture:
    """Connects a log with the cache of open transactions.

    Each of these guarantees is tested by its number:

    1. A transaction that ``after`` holds was written before; it is dropped completely.
    2. A batch holds at most about ``BATCH_MESSAGES`` rows. A larger transaction is split into pieces, and only the last
       piece ends it.
    3. ``safe`` is never inside a transaction of which some rows were not handed out yet.
    4. A forced transaction (FORCETRANS) is handed out once reading has reached the position at which it was forced, and
       before any later commit.
    5. At the first transaction that committed at ``until`` or later, capture has ``ended``. Neither that transaction
       nor any after it is handed out, and ``safe`` stays before them.
    6. When a transaction cannot be encoded, everything that committed before it is handed out first, complete. Every
       later read fails, and ``safe`` stays before that transaction.
    """

    def __init__(self, source: LogSource, cache: TransactionCache, after: Completed, until: int | None = None) -> None:
        """``until``: a time in microseconds since 1970."""
        self._source = source
        self._until = until
        self.ended = False
        self._cache = cache
        self._after = after
        self._latest = after.csn
        self._item: Committed | None = None
        self._new = False
        self._ready: deque[Committed] = deque()
        self._pieces: Iterator[ChangeBatch] | None = None
        self._failure: CaptureError | None = None
        self._safe = source.state.safe
        self.last_commit_time = 0
        self.drained = False

    @property
    def state(self) -> LogState:
        """How far the log was read; ``safe`` counts only what was handed out."""
        state = self._source.state
        if self.handed_out:
            self._safe = max(self._safe, state.safe)
        return state._replace(safe=self._safe)

    @property
    def quiet(self) -> bool:
        """Whether everything available has been handed out, so a batch need not wait for more rows."""
        return self._source.quiet and self.handed_out

    @property
    def handed_out(self) -> bool:
        """Whether every commit that was read has been handed out."""
        return not self._ready and self._pieces is None

    @property
    def latest(self) -> Csn:
        """The highest CSN of the commits read, of transactions still to be forced, and of what was written before."""
        return max([self._latest, *(item.csn for item in self._cache.undone())])

    @property
    def past_written(self) -> bool:
        """Whether reading has passed everything written before, so that transactions open now are not in the trail."""
        return self._new

    def restart(self) -> OpenTransaction | None:
        """The oldest transaction that a restart from here would have to read again. None: restart at ``state.safe``."""
        waiting = [item.transaction for item in self._ready]
        if self._pieces is not None and self._item is not None:
            waiting.append(self._item.transaction)
        return min([*self._cache.unfinished(), *waiting], key=lambda item: item.begin, default=None)

    @property
    def cache(self) -> TransactionCache:
        return self._cache

    def fileno(self) -> int:
        return self._source.fileno()

    def read(self, timeout: float = 0) -> ChangeBatch | None:
        """The next rows, or None when nothing committed within the timeout (in seconds).

        Raises CaptureError where continuing would lose changes, after handing out everything that committed before.
        """
        batch = self._next()
        if batch is None and self.drained and timeout > 0 and self._source.wait(timeout):
            batch = self._next()
        return batch

    def confirm(self, position: int) -> None:
        self._source.confirm(position)

    def close(self) -> None:
        self._cache.clear()
        self._source.close()

    def _next(self) -> ChangeBatch | None:
        if self._failure is not None:
            raise self._failure
        if self._pieces is not None:
            batch = self._next_piece(self._pieces)
            if batch is not None:
                return batch
            self._pieces = None
        if self.ended:
            return None
        if not self._ready:
            committed = self._source.feed(self._cache, BATCH_MESSAGES)
            self.drained = not committed and not self._source.more
            self._new |= self.drained
            self._ready.extend(self._with_forced(list(committed)) if self._cache.decided else committed)
            if self._ready:
                self._latest = max(self._latest, self._ready[-1].header.csn)
        runs: list[MessageRun] = []
        count = 0
        while self._ready and count < BATCH_MESSAGES:
            item = self._ready[0]
            new = not self._after.holds(item.header)
            if new and self._until is not None and item.header.commit_time >= self._until:
                self.ended = True
                break
            self._new |= new
            if new and item.transaction.count > BATCH_MESSAGES:
                if runs:
                    break
                self._ready.popleft()
                self._note(item)
                self._item = item
                self._pieces = self._large(item)
                return self._next_piece(self._pieces)
            self._ready.popleft()
            self._note(item)
            if new:
                runs += whole_runs(item)
                count += item.transaction.count
            item.transaction.close()
        return self._encoded(runs) if runs else None

    def _encoded(self, runs: list[MessageRun]) -> ChangeBatch | None:
        """Guarantee 6: encode the transactions together, or one by one up to the one that cannot be encoded."""
        try:
            return self._source.encode(runs)
        except CaptureError:
            self._pieces = self._one_by_one(runs)
            return self._next_piece(self._pieces)

    def _one_by_one(self, runs: list[MessageRun]) -> Iterator[ChangeBatch]:
        for _, group in itertools.groupby(runs, key=lambda run: id(run.header)):
            batch = self._source.encode(list(group))
            if batch is not None:
                yield batch

    def _next_piece(self, pieces: Iterator[ChangeBatch]) -> ChangeBatch | None:
        try:
            return next(pieces, None)
        except CaptureError as error:
            self._failure = error
            raise

    def _with_forced(self, committed: list[Committed]) -> list[Committed]:
        """Guarantee 4: insert forced transactions in commit order."""
        for decision in self._cache.undone():
            if self._source.cursor < decision.until:
                continue
            content = self._cache.take_forced(decision)
            if content is not None:
                header = TransactionHeader(decision.name, decision.csn, decision.time, decision.begin)
                behind = (number for number, item in enumerate(committed) if item.header.csn > decision.csn)
                committed.insert(next(behind, len(committed)), Committed(header, content))
        return committed

    def _note(self, item: Committed) -> None:
        self.last_commit_time = item.header.commit_time

    def _large(self, item: Committed) -> Iterator[ChangeBatch]:
        """Split a large transaction into pieces. One is held back, as the last piece with rows must end it."""
        held: ChangeBatch | None = None
        runs = item.transaction.runs(PIECE_MESSAGES)
        following = next(runs, None)
        while following is not None:
            (chunk, parts), following = following, next(runs, None)
            run = MessageRun(item.header, chunk, parts, begins=held is None, ends=following is None)
            batch = self._source.encode([run])
            if batch is not None:
                if held is not None:
                    yield held
                held = batch
        item.transaction.close()
        if held is not None:
            yield replace(held, pieces=(*held.pieces[:-1], replace(held.pieces[-1], ends=True)))


def whole_runs(item: Committed) -> list[MessageRun]:
    """The messages of a transaction that goes into one batch."""
    runs = list(item.transaction.runs(BATCH_MESSAGES))
    last = len(runs) - 1
    return [
        MessageRun(item.header, chunk, parts, number == 0, number == last) for number, (chunk, parts) in enumerate(runs)
    ]
