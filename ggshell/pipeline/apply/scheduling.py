"""Assign transactions to workers: dependent ones go to the same worker in order, or wait for each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ggshell.pipeline.apply.dependencies import Touched
from ggshell.record.change import ChangeBatch
from ggshell.record.transaction import TransactionHeader, TransactionPiece
from ggshell.types import TrailPosition

_PRUNE: Final = 200_000
_MANY: Final = 64


Part = tuple[ChangeBatch, TransactionPiece]
"""A piece and the batch that holds its rows."""


class Entry:
    """A pending source transaction: its parts, its worker (None while it waits), and whether it is confirmed as applied.

    ``end``: the place after it in the trail; ``sequence``: the row of the transaction table that holds its id."""

    __slots__ = ("blockers", "done", "end", "header", "operations", "parts", "sequence", "worker")

    def __init__(self, header: TransactionHeader, end: TrailPosition, parts: Sequence[Part], operations: int) -> None:
        self.header = header
        self.end = end
        self.parts = parts
        self.operations = operations
        self.worker: int | None = None
        self.done = False
        self.blockers: list[Entry] = []
        self.sequence = -1


class Scheduler:
    """Keeps the last writer of each key, and the transactions since then that rely on the key, until they are done.

    1. A transaction goes to any worker if no pending transaction touches its keys.
    2. If one worker has all pending transactions that do, it goes to that worker, which applies in order.
    3. Otherwise it waits until 1 or 2 holds; transactions that depend on it wait as well.
    """

    def __init__(self, workers: int) -> None:
        self.loads = [0] * workers
        self.closed: set[int] = set()
        """Stuck workers, which get only transactions that depend on those they already have."""
        self._favorite = 0
        self._streak = 0
        self._writers: dict[int, Entry] = {}
        self._readers: dict[int, list[Entry]] = {}

    def note(self, entry: Entry, touched: Touched) -> None:
        """Add the next transaction in the source's order, and set its ``blockers``: those that it must not overtake."""
        writers, readers = self._writers, self._readers
        blockers: dict[int, Entry] = {}
        for key in touched.writes:
            before = writers.get(key)
            if before is not None and not before.done:
                blockers[id(before)] = before
            for reader in readers.pop(key, ()):
                if not reader.done and reader is not entry:
                    blockers[id(reader)] = reader
            writers[key] = entry
        for key in touched.reads:
            before = writers.get(key)
            if before is not None and not before.done and before is not entry:
                blockers[id(before)] = before
            known = readers.setdefault(key, [])
            if len(known) >= _MANY and not len(known) % _MANY:
                known[:] = [reader for reader in known if not reader.done]
            known.append(entry)
        entry.blockers = list(blockers.values())
        if len(writers) + len(readers) > _PRUNE:
            self._prune()

    def choose(self, entry: Entry, stretch: int = 1) -> int | None:
        """Return the worker for a transaction; None while it has to wait.

        ``stretch``: how many independent transactions go to one worker before the next one gets its turn, because
        neighboring transactions are faster to apply together."""
        if entry.blockers:
            entry.blockers = [blocker for blocker in entry.blockers if not blocker.done]
        if not entry.blockers:
            if self._streak >= stretch or self._favorite in self.closed:
                self._favorite, self._streak = self._least_loaded(), 0
            self._streak += 1
            return self._favorite
        workers = {blocker.worker for blocker in entry.blockers}
        return workers.pop() if len(workers) == 1 else None

    def _least_loaded(self) -> int:
        workers = [number for number in range(len(self.loads)) if number not in self.closed]
        return min(workers or range(len(self.loads)), key=self.loads.__getitem__)

    def withdraw(self, entry: Entry) -> None:
        """Take a transaction back from a worker that has not begun it, so that another one can have it."""
        if entry.worker is not None:
            self.loads[entry.worker] -= entry.operations
            entry.worker = None

    def dispatch(self, entry: Entry, worker: int) -> None:
        entry.worker = worker
        self.loads[worker] += entry.operations

    def complete(self, entry: Entry) -> None:
        entry.done = True
        entry.parts = ()
        entry.blockers = []
        if entry.worker is not None:
            self.loads[entry.worker] -= entry.operations

    def _prune(self) -> None:
        """Remove the transactions that are done."""
        self._writers = {key: entry for key, entry in self._writers.items() if not entry.done}
        self._readers = {
            key: alive
            for key, entries in self._readers.items()
            if (alive := [entry for entry in entries if not entry.done])
        }
