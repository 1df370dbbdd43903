"""The two watermarks of a Replicat that applies out of order, and the transactions applied between them.

Low: everything up to it is applied; after a restart the trail is read from the place after it. High: nothing above it was
processed. The ids of the applied transactions between them are in the checkpoint table, and a restart skips exactly those.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ggshell.pipeline.apply.scheduling import Entry
from ggshell.pipeline.apply.target import CheckpointRow
from ggshell.types import Csn


class WatermarkState(NamedTuple):
    """The values for the checkpoint table.

    ``low`` and ``high`` (CSN and id): the watermarks; ``applied``: the ids applied at the low one or between them;
    ``finished``: the rows of the transaction table that are no longer needed."""

    low: CheckpointRow
    high: tuple[Csn | None, str]
    applied: tuple[str, ...]
    finished: tuple[int, ...]


_EARLIER: Final = -1
"""Stands for the rows of the transaction table from an earlier run."""


class AppliedWatermarks:
    """Tracks the watermarks, starting from the checkpoint row, the ids applied above it, and the rows with these ids."""

    def __init__(self, row: CheckpointRow, applied: Iterable[str] = (), sequences: Iterable[int] = ()) -> None:
        self.low = row
        self._high: tuple[Csn | None, str] = (row.csn, row.xid)
        self._earlier = set(applied)
        self._order: deque[Entry] = deque()
        self._open: dict[str, Entry] = {}
        self._rows: dict[int, list[int]] = {_EARLIER: list(sequences)}
        self._left: Counter[int] = Counter({_EARLIER: len(self._earlier)})
        self._finished: list[int] = [] if self._earlier else list(sequences)
        self._moved_over = 0

    @property
    def open(self) -> int:
        """The number of transactions that are not confirmed as applied."""
        return len(self._open)

    @property
    def above(self) -> int:
        """The number of transactions accepted above the low watermark, applied or not."""
        return len(self._order)

    @property
    def oldest(self) -> int:
        """The commit time of the oldest transaction that is not confirmed as applied; 0 if there is none."""
        return self._order[0].header.commit_time if self._order and self._open else 0

    def is_clear(self, most: int) -> bool:
        """Whether the low watermark has passed everything that an earlier run applied: at most so many transactions."""
        return not self._earlier or self._moved_over > most

    def knows(self, xid: str) -> bool:
        """Whether an earlier run applied a transaction above the low watermark."""
        return xid in self._earlier

    def add(self, entry: Entry) -> None:
        """Add the next transaction in the source's order; it is done if an earlier run applied it."""
        if entry.header.xid in self._earlier:
            self._earlier.discard(entry.header.xid)
            entry.done, entry.sequence = True, _EARLIER
        else:
            self._open[entry.header.xid] = entry
        self._order.append(entry)

    def passed(self, row: CheckpointRow) -> None:
        """Record that the checkpoint row was moved over the next transaction; none before it may be open."""
        self.low = row
        self._high = (row.csn, row.xid)

    def take(self, ids: Iterable[str], sequences: Sequence[int]) -> list[Entry]:
        """Record applied transactions by their ids and the rows with these ids; return their entries."""
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
        """Move the low watermark over transactions that are done; return whether it moved."""
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
            self._moved_over += 1
            moved = True
        return moved

    def state(self) -> WatermarkState:
        """Return the current values for the table; each finished row is returned only once."""
        between = [entry.header.xid for entry in self._order if entry.done]
        finished, self._finished = self._finished, []
        ids = (*self.low.same_csn, *between, *sorted(self._earlier))
        return WatermarkState(self.low, self._high, ids, tuple(finished))
