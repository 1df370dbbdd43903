"""Capture: committed transactions of a log as batches, in commit order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace

from ggshell.capture.cache import Committed, OpenTransaction, TransactionCache
from ggshell.capture.source import LogSource, LogState, MessageRun
from ggshell.record.change import ChangeBatch
from ggshell.record.transaction import TransactionHeader
from ggshell.types import Csn

BATCH_MESSAGES = 800
"""As many as keep the cost of a batch small, and its making so short that the source, meanwhile, does not wait for us."""

PIECE_MESSAGES = 4_000
"""A large transaction is whole before it is encoded, so nobody waits while a piece is made."""


class Capture:
    """Ties a log and the cache of open transactions together.

    Guards, each tested by its number:

    1. a transaction with csn <= ``after`` was written before: it is dropped whole;
    2. a batch holds at most about ``BATCH_MESSAGES`` rows; a larger transaction goes out in pieces, and only its last ends;
    3. ``safe`` never lies inside a transaction of which not all rows were handed out;
    4. a forced transaction (FORCETRANS) goes out once reading has come to where that was decided, before any later commit;
    5. at the first transaction that committed at ``until`` or later it has ``ended``: neither that one nor any behind it goes
       out, and ``safe`` stays before them.
    """

    def __init__(self, source: LogSource, cache: TransactionCache, after: Csn, until: int | None = None) -> None:
        """``until``: in microseconds since 1970."""
        self._source = source
        self._until = until
        self.ended = False
        self._cache = cache
        self._after = after
        self._latest = after
        self._item: Committed | None = None
        self._new = False
        self._ready: deque[Committed] = deque()
        self._pieces: Iterator[ChangeBatch] | None = None
        self._safe = source.state.safe
        self.last_commit_time = 0
        self.drained = False

    @property
    def state(self) -> LogState:
        """How far reading came; ``safe`` counts only what was handed out."""
        state = self._source.state
        if self.settled:
            self._safe = max(self._safe, state.safe)
        return state._replace(safe=self._safe)

    @property
    def quiet(self) -> bool:
        """Whether all that was there has been handed out: what was read now need not wait for company."""
        return self._source.quiet and self.settled

    @property
    def settled(self) -> bool:
        """Whether everything that committed in what was read has been handed out."""
        return not self._ready and self._pieces is None

    @property
    def latest(self) -> Csn:
        """The CSN of the last commit that was read, of what is still to be forced, or of what was written before."""
        return max([self._latest, *(item.csn for item in self._cache.undone())])

    @property
    def past_written(self) -> bool:
        """Whether reading has come behind everything that was written before: so what is open now is not in the trail."""
        return self._new

    def restart(self) -> OpenTransaction | None:
        """The oldest transaction that would have to be read again after a stop here; None: ``state.safe`` is the place."""
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
        """The next rows; None when nothing was committed within the timeout (in seconds)."""
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
        if self._pieces is not None:
            batch = next(self._pieces, None)
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
            new = item.header.csn > self._after
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
                return next(self._pieces, None)
            self._ready.popleft()
            self._note(item)
            if new:
                runs += _whole(item)
                count += item.transaction.count
            item.transaction.close()
        return self._source.encode(runs) if runs else None

    def _with_forced(self, committed: list[Committed]) -> list[Committed]:
        """Guard 4."""
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
        """A large transaction in pieces; one is held back, since the last one that has rows must end the transaction."""
        held: ChangeBatch | None = None
        for chunk, parts in item.transaction.runs(PIECE_MESSAGES):
            batch = self._source.encode([MessageRun(item.header, chunk, parts, begins=held is None, ends=False)])
            if batch is not None:
                if held is not None:
                    yield held
                held = batch
        item.transaction.close()
        if held is not None:
            yield replace(held, pieces=(*held.pieces[:-1], replace(held.pieces[-1], ends=True)))


def _whole(item: Committed) -> list[MessageRun]:
    runs = list(item.transaction.runs(BATCH_MESSAGES))
    last = len(runs) - 1
    return [
        MessageRun(item.header, chunk, parts, number == 0, number == last) for number, (chunk, parts) in enumerate(runs)
    ]
