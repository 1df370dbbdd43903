"""Ten thousand transactions open at once with interleaved rows: each is delivered whole, at its commit."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from batches import read_rows
from pipeline.capture.list_log import Entry, ListSource

from ggshell.pipeline.capture.cache import TransactionCache
from ggshell.pipeline.capture.stream import Capture
from ggshell.record.transaction import Completed
from ggshell.types import Csn, CsnForm

pytestmark = pytest.mark.slow

OPEN = 10_000


def interleaved(seed: int) -> tuple[list[Entry], list[tuple[int, list[bytes]]]]:
    """A log, and the expected result: the CSNs with their rows."""
    rng = random.Random(seed)
    log: list[Entry] = []
    rows: dict[int, list[bytes]] = {}
    for xid in rng.sample(range(1, OPEN + 1), OPEN):
        log.append(Entry(len(log) + 1, len(log), "B", xid))
        rows[xid] = []
    for xid in rng.choices(range(1, OPEN + 1), k=3 * OPEN):
        content = b"%d/%d" % (xid, len(rows[xid])) * rng.choice((1, 1, 50))
        log.append(Entry(len(log) + 1, len(log), "C", xid, 0, content))
        rows[xid].append(content)
    expected = []
    for xid in rng.sample(range(1, OPEN + 1), OPEN):
        place = len(log) + 1
        if rng.random() < 0.1:
            log.append(Entry(place, place, "R", xid))
            continue
        log.append(Entry(place, place, "K", xid, place))
        if rows[xid]:
            expected.append((place, rows[xid]))
    return log, expected


@pytest.mark.parametrize("limit", [64 << 20, 200_000], ids=["in memory", "in files"])
def test_ten_thousand_interleaved_transactions(tmp_path: Path, limit: int) -> None:
    log, expected = interleaved(4)
    capture = Capture(
        ListSource(log, 0, step=500), TransactionCache(limit, tmp_path), Completed(Csn(0, CsnForm.NUMBER))
    )
    found: dict[int, list[bytes]] = {}
    most_open = 0
    while True:
        batch = capture.read()
        most_open = max(most_open, len(capture.cache.open))
        if batch is not None:
            for row in read_rows(batch):
                found.setdefault(int(row[0]), []).append(bytes(row[3]))
        elif capture.drained:
            break
    assert most_open >= OPEN - 500
    assert list(found.items()) == expected
    assert len(capture.cache.open) == 0
    capture.close()
    assert not any(path.is_file() for path in tmp_path.rglob("*")), "no file is left over"
