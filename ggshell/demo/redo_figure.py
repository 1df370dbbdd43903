"""Writes the vendor manual's example of Bounded Recovery as a log, with the transaction numbers of the manual.

The interval is four hours; checkpoint n is at 12:00 of the log's first day, n+1 at 16:00, n+3000 at 12:00 of a day 500
days later. At n, five transactions are open: 27 and 45 for longer than an interval, 801, 950 and 1024 for less, 801 the
longest of these. 45 changes between n and n+1. Before n+2999 all but 27 and 45 have ended. In the interval before
n+3000, 208412 and then 208863 begin; both are still open at n+3000. Soon after it the log ends abruptly, as in a power
failure.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ggshell.demo.redo_writer import OpenXid, RedoWriter

START = 1_767_225_600_000_000
"""2026-01-01 00:00:00 UTC, the start of the log."""
INTERVAL = 4.0
"""Checkpoint interval in hours."""
CHECKPOINT_N = 12.0
"""Checkpoint n is this many hours after the start of the log."""
LAST = 3000
TABLE = "ITEMS"


def checkpoint_time(number: int) -> int:
    """The time of checkpoint n + number, in microseconds since 1970."""
    return at(CHECKPOINT_N + number * INTERVAL)


def at(hours: float) -> int:
    """Convert hours after the start of the log to a time in microseconds since 1970."""
    return START + round(hours * 3_600_000_000)


class Figure:
    """Writes the example step by step, so that a test can check the state between two steps."""

    def __init__(self, folder: Path, *, segment_bytes: int = 1 << 20) -> None:
        self.writer = RedoWriter(folder, time=START, segment_bytes=segment_bytes)
        self.open: dict[int, OpenXid] = {}
        self._numbers = 300_000
        self._items = 0

    def until_n(self) -> None:
        """Write the log up to checkpoint n."""
        self._begin(0.5, 27)
        self._begin(2.0, 45)
        self._short(5.0)
        self._begin(8.5, 801)
        self._begin(9.75, 950)
        self._short(10.5)
        self._begin(11.25, 1024)
        self._to(CHECKPOINT_N)

    def until_n_plus_1(self) -> None:
        """Write the log up to checkpoint n+1; transaction 45 makes a change."""
        self._change(13.25, 45)
        self._short(14.0)
        self._to(CHECKPOINT_N + INTERVAL)

    def until_n_plus_3000(self) -> None:
        """Write the log up to checkpoint n+3000: 500 days with a short transaction in each interval."""
        last = CHECKPOINT_N + LAST * INTERVAL
        self._commit(17.0, 801)
        self._commit(18.5, 950)
        self._commit(19.0, 1024)
        hour = 21.0
        while hour < last - 2 * INTERVAL:
            self._short(hour)
            hour += INTERVAL
        self._begin(last - 2.5, 208_412)
        self._begin(last - 1.0, 208_863)
        self._to(last)

    def until_the_end(self) -> None:
        """Write a little more, up to the power failure."""
        last = CHECKPOINT_N + LAST * INTERVAL
        self._short(last + 0.5)
        self._change(last + 1.0, 208_412)
        self._to(last + 1.5)

    @property
    def parts(self) -> tuple[Callable[[], None], ...]:
        return self.until_n, self.until_n_plus_1, self.until_n_plus_3000, self.until_the_end

    def _at(self, hours: float) -> None:
        self.writer.time = at(hours)

    def _begin(self, hours: float, number: int) -> None:
        self._at(hours)
        self.open[number] = self.writer.begin(number)
        self._insert(self.open[number], f"T{number}")

    def _change(self, hours: float, number: int) -> None:
        self._at(hours)
        self._insert(self.open[number], f"T{number} again")

    def _commit(self, hours: float, number: int) -> None:
        self._at(hours)
        self.writer.commit(self.open.pop(number))

    def _short(self, hours: float) -> None:
        self._at(hours)
        self._numbers += 1
        xid = self.writer.begin(self._numbers)
        self._insert(xid, "short")
        self.writer.commit(xid)

    def _insert(self, xid: OpenXid, name: str) -> None:
        self._items += 1
        self.writer.insert(xid, TABLE, {"ID": str(self._items), "NAME": name})

    def _to(self, hours: float) -> None:
        """Write a transaction without captured rows, so that the log reaches this time."""
        self._at(hours)
        self._numbers += 1
        self.writer.commit(self.writer.begin(self._numbers))
        self.writer.flush()


def write_figure(folder: Path) -> RedoWriter:
    """Write the whole example up to the power failure."""
    figure = Figure(folder)
    for part in figure.parts:
        part()
    return figure.writer
