"""A run that ends at a time: the rows before it and after it together are every transaction once."""

from __future__ import annotations

from pathlib import Path

import pytest
from batches import read_rows
from pipeline.capture.list_log import Entry, ListSource

from ggshell.pipeline.capture.cache import TransactionCache
from ggshell.pipeline.capture.stream import Capture
from ggshell.record.transaction import Completed
from ggshell.types import Csn, CsnForm

LOG = [
    Entry(1, 10, "B", 1),
    Entry(2, 11, "C", 1, 0, b"a"),
    Entry(3, 12, "B", 2),
    Entry(4, 13, "C", 2, 0, b"b"),
    Entry(5, 20, "K", 2, 5),
    Entry(6, 21, "C", 1, 0, b"c"),
    Entry(7, 30, "K", 1, 7),
    Entry(8, 31, "B", 3),
    Entry(9, 32, "C", 3, 0, b"d"),
    Entry(10, 25, "K", 3, 10),
    Entry(11, 40, "B", 4),
    Entry(12, 41, "C", 4, 0, b"e"),
    Entry(13, 50, "K", 4, 13),
]
"""Commits at 20, 30, 25 and 50: the third comes from a machine whose clock is slow."""
EVERY = [(5, 1), (7, 2), (10, 1), (13, 1)]
"""The CSNs of the transactions and their numbers of rows, in commit order."""
BEFORE = {
    **dict.fromkeys([9, 15, 20], 0),
    **dict.fromkeys([21, 25, 26, 30], 1),
    **dict.fromkeys([31, 45, 50], 3),
    51: 4,
}
"""The number of transactions captured, by the end time of the run: before, between and at commits."""


def run(folder: Path, position: int, after: int, until: int | None, step: int) -> tuple[list[tuple[int, int]], Capture]:
    """The rows sent until the end time or the end of the log."""
    capture = Capture(
        ListSource(LOG, position, step=step),
        TransactionCache(1 << 20, folder),
        Completed(Csn(after, CsnForm.NUMBER)),
        until,
    )
    found: dict[int, int] = {}
    while not capture.ended:
        batch = capture.read()
        if batch is not None:
            for row in read_rows(batch):
                csn = int(str(row[0]))
                found[csn] = found.get(csn, 0) + 1
        elif capture.drained:
            break
    return list(found.items()), capture


@pytest.mark.parametrize("step", [1, 3, 100])
@pytest.mark.parametrize("until", BEFORE)
def test_guarantee_5_rows_before_and_after_any_end_time_are_all_transactions_once(
    tmp_path: Path, until: int, step: int
) -> None:
    first, capture = run(tmp_path, 0, 0, until, step)
    assert first == EVERY[: BEFORE[until]]
    assert capture.ended == (until <= 50)
    left = [csn for csn, _ in EVERY[len(first) :]]
    assert capture.state.safe <= min(left, default=14), "the safe position is before the remaining transactions"
    unfinished = {entry.xid for entry in LOG if entry.csn in left}
    begins = [entry.position for entry in LOG if entry.kind == "B" and entry.xid in unfinished]
    known = max([csn for csn, _ in first], default=0)
    second, _ = run(tmp_path, min([*begins, capture.state.safe]), known, None, step)
    assert first + second == EVERY
