"""Planning reads headers, indexes and a few records, never the rows: also for one transaction that fills several files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from batches import Tx, make_batch
from trail_samples import EMPLOYEES, NOTES, insert, open_writer, random_transactions, trail_in, write_trail

from ggshell.query.queries import counts
from ggshell.query.queries.trails import trails
from ggshell.query.session import WarmSession
from ggshell.query.source import cut, is_between_transactions
from ggshell.query.splits import TrailSplit
from ggshell.query.trail_read import TrailRead, plan
from ggshell.trail import boundaries
from ggshell.trail.columnar import OnDamage
from ggshell.trail.name import TrailName, index_path
from ggshell.trail.reader import VisibleEnd
from ggshell.types import TrailPosition

from both_engines import local_engine, spark_engine  # isort: skip

COLUMNS = ("seqno", "rba", "csn", "xid", "commit_ts", "owner", "table", "op")
ROWS = 30_000


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> TrailName:
    """Some transactions, one of 30,000 rows across several files, and some more. Its second table begins in the middle."""
    name = trail_in(tmp_path_factory.mktemp("large"))
    write_trail(name, random_transactions(7, 20), max_bytes=1 << 20)
    writer = open_writer(name, 1 << 20)
    half = ROWS // 2
    for first in range(0, ROWS, 2000):
        table = (lambda n: insert(EMPLOYEES, id=str(n), name="n" * 40)) if first < half else _note
        rows = [table(number) for number in range(first, first + 2000)]
        writer.write(make_batch([Tx(21, rows, first == 0, first + 2000 == ROWS)]))
    writer.flush()
    for csn in range(22, 40):
        writer.write(make_batch([Tx(csn, [insert(NOTES, id=str(csn), body="after")])]))
    writer.flush()
    writer.close()
    assert len(name.sequences()) >= 3
    return name


def _note(number: int) -> object:
    return insert(NOTES, id=str(number), body="b" * 60)


def rows_of(splits: list[TrailSplit]) -> list[tuple[object, ...]]:
    read = TrailRead(COLUMNS)
    return [tuple(row.values()) for split in splits for batch in read.batches(split) for row in batch.to_pylist()]


@pytest.fixture(params=["index", "no index", "read-only"])
def kind(request: pytest.FixtureRequest, large: TrailName) -> Iterator[str]:
    """Whether the files have an index, and whether one can be written."""
    kept = {path: path.read_bytes() for path in large.folder.glob(".ea*.index")}
    if request.param != "index":
        for path in kept:
            path.unlink()
    if request.param == "read-only":
        for seqno in large.sequences():  # a folder in the way: root may write everywhere
            index_path(large.file(seqno)).mkdir()
    yield request.param
    for seqno in large.sequences():
        path = index_path(large.file(seqno))
        if path.is_dir():
            path.rmdir()
        path.unlink(missing_ok=True)
    for path, data in kept.items():
        path.write_bytes(data)


def test_splits_inside_a_transaction_give_its_rows_once_with_all_facts(large: TrailName, kind: str) -> None:
    files = [str(large.file(seqno)) for seqno in large.sequences()]
    whole, splits = rows_of(plan(files, 1 << 40)), plan(files, 100_000)
    assert len(whole) > ROWS
    assert len(splits) > 20
    assert rows_of(splits) == whole
    assert kind == "read-only" or all(index_path(Path(file)).exists() for file in files[:-1])


def test_damage_is_skipped_to_the_next_transaction_however_the_file_is_divided(
    large: TrailName, tmp_path: Path
) -> None:
    files = [str(large.file(seqno)) for seqno in large.sequences()]
    for split in plan(files, 100_000, on_damage=OnDamage.DROP):
        assert not split.first or is_between_transactions(Path(split.file), split.first)


@pytest.mark.parametrize("size", [1, 300_000, 1_500_000])
def test_a_batch_of_a_stream_ends_after_the_long_transaction(large: TrailName, kind: str, size: int) -> None:
    """Every batch ends between two transactions, whatever its maximum of bytes, and none is empty."""
    end = VisibleEnd(large).read()
    assert end is not None
    place, longest = TrailPosition(0, 0), 0
    while place < end:
        following = cut(large, place, end, size)
        assert place < following <= end
        assert is_between_transactions(large.file(following.seqno), following.rba)
        longest = max(longest, following.seqno - place.seqno)
        place = following
    assert longest >= 2, "the long transaction is in one batch"


class Reads:
    """Counts what is read of trail files."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bytes = self.calls = 0
        pread = os.pread

        def counted(descriptor: int, size: int, place: int) -> bytes:
            found = pread(descriptor, size, place)
            self.bytes, self.calls = self.bytes + len(found), self.calls + 1
            return found

        monkeypatch.setattr(os, "pread", counted)


def test_planning_reads_a_few_records_for_each_split(
    large: TrailName, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its cost depends on the number of files and splits, not on the number of rows."""
    monkeypatch.setattr(boundaries, "_NEAR", 16 << 10)
    files = [str(large.file(seqno)) for seqno in large.sequences()]
    reads = Reads(monkeypatch)
    splits = plan(files, 500_000)
    assert len(splits) > 5
    assert reads.calls <= 8 * (len(splits) + len(files))
    reads = Reads(monkeypatch)
    end = VisibleEnd(large).read()
    assert end is not None
    cut(large, TrailPosition(0, 0), end, 1000)
    assert reads.calls <= 300


def test_spark_counts_the_rows_of_a_long_transaction_as_the_local_engine_does(
    large: TrailName, warm: WarmSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ggshell.query.slices.SPLIT_BYTES", 200_000)
    here, there = (trails([str(large)], large.folder, each) for each in (local_engine(), spark_engine(warm)))
    assert counts.count(here).rows == counts.count(there).rows
    assert counts.largest_transactions(here, 3).rows == counts.largest_transactions(there, 3).rows
