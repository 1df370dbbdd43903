"""RedoLog: interleaved rows in, committed transactions out, each once, in the order of their commit SCN."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from redo_reading import capturing, collect, read_all

from ggshell.demo.redo_writer import RedoWriter
from ggshell.errors import CaptureError
from ggshell.record.operation import IoType
from ggshell.types import LogPosition


@pytest.fixture
def writer(tmp_path: Path) -> RedoWriter:
    return RedoWriter(tmp_path / "log")


def test_commits_are_returned_in_order_and_rollbacks_never(writer: RedoWriter) -> None:
    one, two, three = writer.begin(), writer.begin(), writer.begin()
    writer.insert(one, "ITEMS", {"ID": "1", "NAME": "first"})
    writer.insert(two, "ITEMS", {"ID": "2", "NAME": "it's"})
    writer.insert(three, "ITEMS", {"ID": "3", "NAME": None})
    writer.insert(one, "ITEMS", {"ID": "4", "NAME": "ünï €"})
    second = writer.commit(two)
    writer.rollback(three)
    first = writer.commit(one)
    writer.flush()
    rows = read_all(writer.folder)
    assert [(row.csn, row.xid, row.after["id"]) for row in rows] == [
        (second, two.text, b"2"),
        (first, one.text, b"1"),
        (first, one.text, b"4"),
    ]
    assert [row.after["name"] for row in rows] == [b"it's", b"first", "ünï €".encode()]


def test_a_statement_rollback_cancels_the_rows_that_it_undoes(writer: RedoWriter) -> None:
    xid = writer.begin()
    kept = writer.insert(xid, "ITEMS", {"ID": "1", "NAME": "a"})
    writer.insert(xid, "ITEMS", {"ID": "2", "NAME": "b"})
    writer.update(xid, "ITEMS", kept, {"ID": "1", "NAME": "a"}, {"NAME": "c"})
    writer.delete(xid, "ITEMS", kept, {"ID": "1", "NAME": "c"})
    writer.take_back(xid, 3)
    writer.update(xid, "ITEMS", kept, {"ID": "1", "NAME": "a"}, {"NAME": "z"})
    writer.insert(xid, "ITEMS", {"ID": "5", "NAME": "e"})
    writer.take_back(xid)
    writer.commit(xid)
    writer.flush()
    rows = read_all(writer.folder)
    assert [(row.io_type, row.after) for row in rows] == [
        (IoType.INSERT, {"id": b"1", "name": b"a"}),
        (IoType.FIELD_COMP, {"id": b"1", "name": b"z"}),
    ]


@pytest.mark.parametrize("limit", [1, 64 << 20])
def test_a_large_transaction_is_spilled_and_still_loses_rolled_back_rows(writer: RedoWriter, limit: int) -> None:
    xid, other = writer.begin(), writer.begin()
    for number in range(6000):
        writer.insert(xid, "ITEMS", {"ID": str(number), "NAME": "n"})
        if number % 1000 == 999:
            writer.take_back(xid, 10)
    writer.insert(other, "ITEMS", {"ID": "other", "NAME": "n"})
    writer.commit(xid)
    writer.commit(other)
    writer.flush()
    rows = read_all(writer.folder, limit=limit)
    assert [int(row.after["id"] or 0) for row in rows[:-1]] == [n for n in range(6000) if n % 1000 < 990]
    assert rows[-1].after["id"] == b"other"


@pytest.mark.slow
def test_ten_thousand_interleaved_transactions_are_returned_whole_in_commit_order(writer: RedoWriter) -> None:
    rng, count = random.Random(4), 10_000
    xids = [writer.begin() for _ in range(count)]
    for turn in ("a", "b"):
        for number, xid in enumerate(xids):
            writer.insert(xid, "ITEMS", {"ID": f"{number}{turn}", "NAME": "n"})
    order = rng.sample(range(count), count)
    for number in order:
        if number % 7:
            writer.commit(xids[number])
        else:
            writer.rollback(xids[number])
    writer.flush()
    found = [row.after["id"] for row in read_all(writer.folder)]
    assert found == [f"{number}{turn}".encode() for number in order if number % 7 for turn in ("a", "b")]


def test_transactions_with_the_same_commit_scn_stay_separate(writer: RedoWriter) -> None:
    xids = [writer.begin() for _ in range(250)]
    for number, xid in enumerate(xids):
        writer.insert(xid, "ITEMS", {"ID": str(number)})
    writer.commit(xids[0])
    writer.hold = True
    for xid in xids[1:]:
        writer.commit(xid)
    writer.hold = False
    writer.flush()
    rows = read_all(writer.folder)
    assert [(row.csn, row.xid, row.after["id"]) for row in rows] == [
        (writer.scn, xid.text, str(number).encode()) for number, xid in enumerate(xids)
    ]


def test_a_stop_between_two_transactions_with_one_commit_scn_neither_loses_nor_repeats_any(writer: RedoWriter) -> None:
    xids = [writer.begin() for _ in range(6)]
    for number, xid in enumerate(xids):
        writer.insert(xid, "ITEMS", {"ID": str(number)})
    writer.commit(xids[0])
    writer.hold = True
    for xid in (xids[4], xids[2], xids[5], xids[3], xids[1]):  # Not in the order in which they began.
        writer.commit(xid)
    writer.flush()
    whole = read_all(writer.folder)
    for count in range(1, len(whole) + 1):
        done = frozenset(row.xid for row in whole[:count])
        assert read_all(writer.folder, after=whole[0].csn, xids=done) == whole[count:]


def test_a_growing_log_is_followed_across_segments(writer: RedoWriter) -> None:
    with_rows = writer.begin()
    writer.insert(with_rows, "ITEMS", {"ID": "1"})
    writer.flush()
    with capturing(writer.folder) as (capture, _):
        assert collect(capture) == []
        writer.commit(with_rows)
        writer.flush()
        assert [row.after["id"] for row in collect(capture)] == [b"1"]
        later = writer.begin()
        writer.insert(later, "ITEMS", {"ID": "2"})
        writer.roll()
        writer.commit(later)
        writer.flush()
        assert [row.after["id"] for row in collect(capture)] == [b"2"]
        third = writer.begin()
        writer.flush()
        assert capture.read() is None
        writer.insert(third, "ITEMS", {"ID": "3"})
        writer.commit(third)
        assert capture.read() is None
        assert not capture._source.wait(0)
        writer.flush()
        assert capture._source.wait(5)
        assert [row.after["id"] for row in collect(capture)] == [b"3"]


@pytest.mark.parametrize("packed", [True, False])
def test_a_restart_reads_from_the_oldest_open_transaction(tmp_path: Path, packed: bool) -> None:
    writer = RedoWriter(tmp_path / "log", segment_bytes=20_000, packed=packed)
    open_ones = []
    for number in range(300):
        xid = writer.begin()
        writer.insert(xid, "ITEMS", {"ID": str(number), "NAME": "x" * 50})
        if number in (150, 151):
            open_ones.append(xid)
            continue
        writer.commit(xid)
    writer.flush()
    with capturing(writer.folder) as (capture, log):
        rows = collect(capture)
        safe, place, whole = capture.state.safe, log.position(capture.state.safe), log.bytes_read
    assert len(rows) == 298
    for xid in open_ones:
        writer.commit(xid)
    writer.flush()
    for path in writer.folder.glob("redo_*"):
        if int(path.name.split(".")[0].split("_")[2]) < place.sequence:
            path.unlink()
    with capturing(writer.folder, start=place, after=rows[-1].csn) as (capture, log):
        again = collect(capture)
        assert log.bytes_read < whole * 0.6
    assert place.csn == safe
    assert [row.after["id"] for row in again] == [b"150", b"151"]


def test_missing_redo_is_named(tmp_path: Path) -> None:
    writer = RedoWriter(tmp_path / "log", segment_bytes=2_000)
    for number in range(50):
        xid = writer.begin()
        writer.insert(xid, "ITEMS", {"ID": str(number)})
        writer.commit(xid)
    writer.flush()
    paths = sorted(writer.folder.glob("redo_*"))
    paths[4].unlink()
    with pytest.raises(CaptureError, match="segment 5 of thread 1 is missing"):
        read_all(writer.folder)
    paths[0].unlink()
    with pytest.raises(CaptureError, match="is no longer available: the oldest segment is 2"):
        read_all(writer.folder, start=LogPosition(1, 0, 1005, 1))
