"""Capture: committed transactions of a log as batches, in commit order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace

from ggshell.capture.cache import Committed, TransactionCache
from ggshell.capture.source import LogSource, LogState, MessageRun
from ggshell.record import ChangeBatch
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
    3. ``safe`` never lies inside a transaction of which not all rows were handed out.
    """

    def __init__(self, source: LogSource, cache: TransactionCache, after: Csn) -> None:
        self._source = source
        self._cache = cache
        self._after = after
        self._ready: deque[Committed] = deque()
        self._pieces: Iterator[ChangeBatch] | None = None
        self._safe = source.state.safe
        self.last_commit_time = 0
        self.drained = False

    @property
    def state(self) -> LogState:
        """How far reading came; ``safe`` counts only what was handed out."""
        state = self._source.state
        if not self._ready and self._pieces is None:
            self._safe = max(self._safe, state.safe)
        return state._replace(safe=self._safe)

    @property
    def quiet(self) -> bool:
        """Whether all that was there has been handed out: what was read now need not wait for company."""
        return self._source.quiet and not self._ready and self._pieces is None

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
        if not self._ready:
            committed = self._source.feed(self._cache, BATCH_MESSAGES)
            self.drained = not committed and not self._source.more
            self._ready.extend(committed)
        runs: list[MessageRun] = []
        count = 0
        while self._ready and count < BATCH_MESSAGES:
            item = self._ready[0]
            if item.header.csn > self._after and item.transaction.count > BATCH_MESSAGES:
                if runs:
                    break
                self._ready.popleft()
                self._note(item)
                self._pieces = self._large(item)
                return next(self._pieces, None)
            self._ready.popleft()
            self._note(item)
            if item.header.csn > self._after:
                runs += _whole(item)
                count += item.transaction.count
            item.transaction.close()
        return self._source.encode(runs) if runs else None

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
