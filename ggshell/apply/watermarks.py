"""The two watermarks of a Replicat that applies out of order, and what is applied between them.

Low: everything up to it is applied; the trail is read on from behind it after a restart.  High: nothing above it was
processed.  Of the transactions between them those that are applied stand by their ids in the checkpoint table, and a restart
leaves out exactly those.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ggshell.apply.scheduling import Entry
from ggshell.apply.target import CheckpointRow
from ggshell.types import Csn


class Marks(NamedTuple):
    """What the checkpoint table is to say: ``low``, ``high`` (CSN and id), the ids applied between or at the low one, and the
    rows of the transaction table that are no longer needed."""

    low: CheckpointRow
    high: tuple[Csn | None, str]
    applied: tuple[str, ...]
    finished: tuple[int, ...]


_EARLIER: Final = -1
"""Stands for the rows of the transaction table that an earlier run has left."""


class Watermarks:
    """Begins with the row found at the start, and with the ids that were applied above it and the rows that name them."""

    def __init__(self, row: CheckpointRow, applied: Iterable[str] = (), sequences: Iterable[int] = ()) -> None:
        self.low = row
        self._high: tuple[Csn | None, str] = (row.csn, row.xid)
        self._earlier = set(applied)
        self._order: deque[Entry] = deque()
        self._open: dict[str, Entry] = {}
        self._rows: dict[int, list[int]] = {_EARLIER: list(sequences)}
        self._left: Counter[int] = Counter({_EARLIER: len(self._earlier)})
        self._finished: list[int] = [] if self._earlier else list(sequences)

    @property
    def open(self) -> int:
        """How many transactions are not applied for sure."""
        return len(self._open)

    def knows(self, xid: str) -> bool:
        """Whether an earlier run has applied a transaction above the low watermark."""
        return xid in self._earlier

    def add(self, entry: Entry) -> None:
        """The next transaction, in the source's order; one that an earlier run has applied is done."""
        if entry.header.xid in self._earlier:
            self._earlier.discard(entry.header.xid)
            entry.done, entry.sequence = True, _EARLIER
        else:
            self._open[entry.header.xid] = entry
        self._order.append(entry)

    def take(self, ids: Iterable[str], sequences: Sequence[int]) -> list[Entry]:
        """The transactions that are applied now, by their ids, and the rows that name them."""
        found = [self._open.pop(xid) for xid in ids]
        if found:
            first = sequences[0] if sequences else _EARLIER
            self._rows[first] = list(sequences)
            self._left[first] += len(found)
        for entry in found:
            entry.sequence = first
            if self._high[0] is None or entry.header.csn >= self._high[0]:
                self._high = (entry.header.csn, entry.header.xid)
        return found

    def advance(self) -> bool:
        """Move the low watermark over what is done; whether it moved."""
        moved = False
        while self._order and self._order[0].done:
            entry = self._order.popleft()
            header = entry.header
            same = self.low.same_csn if self.low.csn == header.csn else ()
            self.low = CheckpointRow(
                entry.end, header.csn, header.xid, header.commit_time, header.restart, (*same, header.xid)
            )
            if self._high[0] is None or header.csn > self._high[0]:
                self._high = (header.csn, header.xid)
            self._left[entry.sequence] -= 1
            if not self._left[entry.sequence]:
                del self._left[entry.sequence]
                self._finished += self._rows.pop(entry.sequence, [])
            moved = True
        return moved

    def marks(self) -> Marks:
        """What the table is to say now; rows named as finished here are not named again."""
        between = [entry.header.xid for entry in self._order if entry.done]
        finished, self._finished = self._finished, []
        ids = (*self.low.same_csn, *between, *sorted(self._earlier))
        return Marks(self.low, self._high, ids, tuple(finished))
