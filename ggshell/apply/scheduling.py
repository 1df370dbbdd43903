"""Which worker applies which transaction: dependent ones go to one worker in order, or wait for each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ggshell.apply.dependencies import Touched
from ggshell.record.change import ChangeBatch
from ggshell.record.transaction import TransactionHeader, TransactionPiece
from ggshell.types import TrailPosition

_PRUNE: Final = 200_000
_MANY: Final = 64


Part = tuple[ChangeBatch, TransactionPiece]
"""A piece with the batch that has its rows."""


class Entry:
    """A source transaction on its way: what it consists of, who applies it (None: it waits), and whether it is applied for
    sure.  ``end`` is the place behind it in the trail; ``sequence`` the row of the transaction table that names it."""

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
    """Knows the last writer of each key and those who rely on it since, as far as they are not done.

    1. A transaction goes to any worker when nothing on its way touches its keys.
    2. It goes behind those that do when one worker has them all: a worker applies in order.
    3. Else it waits until 1 or 2 holds; what depends on it waits as well.
    """

    def __init__(self, workers: int) -> None:
        self.loads = [0] * workers
        self._favourite = 0
        self._streak = 0
        self._writers: dict[int, Entry] = {}
        self._readers: dict[int, list[Entry]] = {}

    def note(self, entry: Entry, touched: Touched) -> None:
        """Take in the next transaction of the source's order; its ``blockers`` are what it must not overtake."""
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
        """The worker for a transaction, None while it has to wait.  ``stretch``: how many that are free go to one worker
        before the next has its turn, since neighbours are applied faster together."""
        if entry.blockers:
            entry.blockers = [blocker for blocker in entry.blockers if not blocker.done]
        if not entry.blockers:
            if self._streak >= stretch:
                self._favourite, self._streak = self.loads.index(min(self.loads)), 0
            self._streak += 1
            return self._favourite
        workers = {blocker.worker for blocker in entry.blockers}
        return workers.pop() if len(workers) == 1 else None

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
        """Forget what is done."""
        self._writers = {key: entry for key, entry in self._writers.items() if not entry.done}
        self._readers = {
            key: alive
            for key, entries in self._readers.items()
            if (alive := [entry for entry in entries if not entry.done])
        }
