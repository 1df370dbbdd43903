"""The index of a trail file: what it points at, and that a wrong one is noticed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from batches import Row, Tx, make_batch
from trail_kit import B, cut_records, open_writer, small

from ggshell.record.change import ChangeBatch
from ggshell.record.operation import IoType, TransInd
from ggshell.trail import file_index
from ggshell.trail.boundaries import boundary_after, split_points
from ggshell.trail.file_index import (
    BETWEEN,
    CONTINUED,
    FileIndex,
    decode_index,
    find_index,
    identity_of,
    keep_index,
    make_index,
)
from ggshell.trail.name import TrailName, index_path
from ggshell.trail.opened import open_file
from ggshell.trail.record import decode_record
from ggshell.trail.removing import remove_from


@pytest.fixture(autouse=True)
def _close_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """Points 400 bytes apart, so that small files have many."""
    monkeypatch.setattr(file_index, "SPACING", 400)


def long_transaction(csn: int, pieces: int, rows: int = 4) -> list[ChangeBatch]:
    """A transaction in several batches."""
    return [small(csn, rows, begins=number == 0, ends=number == pieces - 1) for number in range(pieces)]


@pytest.fixture
def trail(tmp_path: Path) -> TrailName:
    """Short transactions, two tables, a row of several fragments, and a transaction that ends in the third file."""
    name = TrailName(tmp_path, "ea")
    writer = open_writer(name, max_bytes=6000)
    wide = Row(B, IoType.INSERT, b"w" * 150_000, 1)
    for batch in (
        *(small(csn) for csn in range(1, 12)),
        make_batch([Tx(12, [wide, wide])]),
        *(small(csn) for csn in range(13, 15)),
        *long_transaction(15, 50),
        *(small(csn) for csn in range(16, 120)),
    ):
        writer.write(batch)
    writer.flush()
    writer.close()
    assert len(name.sequences()) > 4
    return name


def opened_by_reading(path: Path, inside: bool) -> dict[int, int]:
    """What is open before each record of a file that is not a fragment, found record by record."""
    found, opened = {}, CONTINUED if inside else BETWEEN
    for rba, data in cut_records(path.read_bytes()):
        record = decode_record(data)
        if record.io_type != IoType.RECORD_FRAGMENT:
            found[rba] = opened
        if record.table_index is not None and record.trans_ind == TransInd.BEGIN:
            opened = rba
        elif record.table_index is not None and record.trans_ind >= TransInd.END:
            opened = BETWEEN
    return found


def files(name: TrailName) -> list[tuple[Path, FileIndex, FileIndex, dict[int, int]]]:
    """Each closed file with the index of its writer, the index made by reading, and the truth."""
    found = []
    for seqno in name.sequences()[:-1]:
        path, file = name.file(seqno), open_file(name, seqno)
        written, made = find_index(path), make_index(file)
        assert written is not None
        assert made is not None
        found.append((path, written, made, opened_by_reading(path, file.header.inside is not None)))
        file.close()
    return found


def test_points_and_tables_are_those_of_the_records(trail: TrailName) -> None:
    every = files(trail)
    assert any(CONTINUED in truth.values() for *_, truth in every)
    for path, written, made, truth in every:
        for index in (written, made):
            assert {
                int(place): int(opened) for place, opened in zip(index.places, index.opened, strict=True)
            }.items() <= (truth.items())
            assert index.identity == identity_of(path)
            assert decode_index(index.encode()).encode() == index.encode()
        assert written.tables == made.tables
        assert len(made.places) * 400 > max(truth) - 160_000


def test_the_newest_file_has_no_index(trail: TrailName) -> None:
    assert find_index(trail.file(trail.sequences()[-1])) is None


def test_a_boundary_by_index_or_by_search_is_between_transactions(trail: TrailName) -> None:
    """Without an index as well, for every place of a file."""
    for path, _, _, truth in files(trail):
        index_path(path).unlink()
        searched = {place: boundary_after(path, place) for place in range(0, path.stat().st_size, 2503)}
        file = open_file(trail, int(path.name[2:]))
        made = make_index(file)
        file.close()
        assert made is not None
        keep_index(path, made.encode())
        for place, found in searched.items():
            by_index = boundary_after(path, place)
            assert (
                (found is None) == (by_index is None) == (not any(at >= place and not truth[at] for at in starts(path)))
            )
            for each in (found, by_index):
                assert each is None or (each >= place and truth[each] == BETWEEN)


def starts(path: Path) -> list[int]:
    """Where the transactions of a file begin."""
    records = [(rba, decode_record(data)) for rba, data in cut_records(path.read_bytes())]
    return [
        rba
        for rba, record in records
        if record.table_index is not None and record.trans_ind in (TransInd.BEGIN, TransInd.SOLE)
    ]


@pytest.mark.parametrize("inside", [True, False])
def test_a_file_is_divided_at_places_of_known_state(trail: TrailName, inside: bool) -> None:
    for path, _, _, truth in files(trail):
        size = path.stat().st_size
        points = split_points(path, 1000, 0, size, inside=inside)
        for point in points:
            assert point.opened == truth[point.place]
            assert inside or point.opened == BETWEEN
        index_path(path).unlink()
        for point in split_points(path, 1000, 0, size, inside=inside):
            assert point.opened in (-1, truth[point.place])
            assert inside or point.opened == BETWEEN


WRONG = {
    "torn": lambda data: data[:-7],
    "empty": lambda data: b"",
    "flipped": lambda data: data[:20] + bytes([data[20] ^ 4]) + data[21:],
    "zeros": lambda data: bytes(len(data)),
    "longer": lambda data: data + b"\0",
}


@pytest.mark.parametrize("name", WRONG)
def test_a_damaged_index_is_ignored(trail: TrailName, name: str) -> None:
    path = index_path(trail.file(1))
    path.write_bytes(WRONG[name](path.read_bytes()))
    assert find_index(trail.file(1)) is None


def test_an_index_of_another_or_an_older_file_is_ignored(trail: TrailName) -> None:
    first, second = trail.file(0), trail.file(1)
    index_path(second).write_bytes(index_path(first).read_bytes())
    assert find_index(second) is None
    os.truncate(first, first.stat().st_size - 1)
    assert find_index(first) is None


def test_an_index_that_points_at_nothing_is_not_used(trail: TrailName) -> None:
    """Its checksum and identity are right, its places are not."""
    path = trail.file(1)
    index = find_index(path)
    assert index is not None
    truth = opened_by_reading(path, inside=True) | opened_by_reading(path, inside=False)
    for wrong in (index._replace(places=index.places + 1), index._replace(opened=index.opened * 0)):
        keep_index(path, wrong.encode())
        for point in split_points(path, 1000, 0, path.stat().st_size):
            assert point.place in truth
            assert point.opened != BETWEEN or point.place in starts(path) or point.place not in rows(path)


def rows(path: Path) -> list[int]:
    return [rba for rba, data in cut_records(path.read_bytes()) if decode_record(data).table_index is not None]


def test_an_index_is_removed_with_its_file(trail: TrailName) -> None:
    remove_from(trail, 1)
    assert [path.name for path in trail.folder.glob(".ea*.index")] == [".ea000000000.index"]


def test_a_writer_that_cuts_a_file_removes_its_index(tmp_path: Path) -> None:
    """The file may reach the same size again with other rows."""
    name = TrailName(tmp_path, "ea")
    writer = open_writer(name, max_bytes=1000)
    writer.write(small(1))
    writer.flush()
    for batch in long_transaction(2, 12):
        if len(name.sequences()) < 2:
            writer.write(batch)
    assert len(name.sequences()) == 2
    assert find_index(name.file(0)) is not None
    writer.remove_unfinished()
    assert list(tmp_path.glob(".ea*.index")) == []
    writer.close()


def test_a_folder_that_cannot_be_written_needs_no_index(trail: TrailName) -> None:
    keep_index(trail.folder / "missing" / "ea000000000", b"")
    assert not (trail.folder / "missing").exists()
