"""What a writer finds when it opens a trail after any kind of end, and what it cuts, keeps or refuses."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from batches import read_rows
from trail_kit import cut_records, mark_file, open_writer, read_all, seal, small, write_trail

from ggshell.errors import DiskError, TrailError
from ggshell.record.operation import IoType
from ggshell.trail.name import TrailName
from ggshell.trail.reader import TrailReader
from ggshell.trail.record import decode_record
from ggshell.trail.recover import find_end
from ggshell.types import Csn, TrailPosition


def with_and_without_mark(name: TrailName) -> Iterator[str]:
    """Once with the durable mark, once without it."""
    yield "marked"
    mark_file(name).unlink()
    yield "unmarked"


@pytest.mark.parametrize(
    "tail", [b"\0" * 5000, b"G", b"G\1\x80\0" + b"x" * 200, b"G\1\0\0" * 40, os.urandom(3000)], ids=len
)
def test_a_tail_that_is_not_a_record_is_cut(tmp_path: Path, tail: bytes) -> None:
    name = TrailName(tmp_path, "ea")
    end = write_trail(name, [small(1), small(2)])[-1]
    with name.file(0).open("ab") as file:
        file.write(tail)
    for _ in with_and_without_mark(name):
        found = find_end(name)
        assert found is not None
        assert (found.position, found.csn) == (end, Csn(2))
    open_writer(name).close()
    content = name.file(0).read_bytes()
    assert decode_record(content[end.rba :], rba=end.rba).io_type == IoType.RESTART_OK
    assert len(read_all(name)) == 4


def test_a_tail_that_was_written_twice_is_cut(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    places = write_trail(name, [small(1), small(2)])
    content = name.file(0).read_bytes()
    name.file(0).write_bytes(content + content[places[1].rba :])
    for _ in with_and_without_mark(name):
        found = find_end(name)
        assert found is not None
        assert found.position == places[2]


@pytest.mark.parametrize("marked", [True, False])
def test_an_unfinished_transaction_across_files_is_cut(tmp_path: Path, marked: bool) -> None:
    name = TrailName(tmp_path, "ea")
    writer = open_writer(name, 900)
    writer.write(small(1))
    writer.write(small(2, ends=False))
    for _ in range(30):
        writer.write(small(2, begins=False, ends=False))
        writer.flush()
    writer.close()
    assert len(name.sequences()) > 2
    if not marked:
        mark_file(name).unlink()
    writer = open_writer(name)
    assert writer.last_csn == Csn(1)
    assert name.sequences() == [0]
    writer.write(small(2))
    writer.flush()
    writer.close()
    assert read_all(name) == read_rows(small(1)) + read_rows(small(2))


def test_damage_before_good_transactions_is_refused_and_nothing_is_cut(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    places = write_trail(name, [small(1), small(2), small(3)])
    mark_file(name).unlink()
    content = bytearray(name.file(0).read_bytes())
    content[places[1].rba + 70] ^= 1
    name.file(0).write_bytes(content)
    with pytest.raises(TrailError, match=f"RBA {places[1].rba}"):
        open_writer(name)
    assert name.file(0).read_bytes() == content


def test_a_trail_shorter_than_its_mark_is_refused(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    end = write_trail(name, [small(1)])[-1]
    os.truncate(name.file(0), end.rba - 1)
    with pytest.raises(TrailError, match="shorter than its durable end"):
        open_writer(name)


def test_a_torn_mark_is_treated_as_missing(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    end = write_trail(name, [small(1)])[-1]
    mark_file(name).write_bytes(b"\0" * 27)
    found = find_end(name)
    assert found is not None
    assert (found.position, found.csn) == (end, Csn(1))


def test_an_old_mark_is_only_the_start_of_the_search(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    write_trail(name, [small(1)])
    old = mark_file(name).read_bytes()
    end = write_trail(name, [small(csn) for csn in range(2, 12)], 700)[-1]
    mark_file(name).write_bytes(old)
    found = find_end(name)
    assert found is not None
    assert (found.position, found.csn) == (end, Csn(11))


def test_the_last_csn_is_known_after_older_files_are_purged(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    writer = open_writer(name)
    writer.write(small(7))
    writer.rollover()
    writer.write(small(8, ends=False))
    writer.flush()
    writer.close()
    os.truncate(name.file(1), cut_records(name.file(1).read_bytes())[0][0])
    name.file(0).unlink()
    mark_file(name).unlink()
    assert open_writer(name).last_csn == Csn(7)


def test_a_file_with_a_torn_header_is_started_again(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    write_trail(name, [])
    content = name.file(0).read_bytes()
    for length in (0, 3, 40, len(content) - 1):
        name.file(0).write_bytes(content[:length])
        mark_file(name).unlink()
        writer = open_writer(name)
        writer.write(small(1))
        writer.flush()
        writer.close()
        assert len(read_all(name)) == 2


def test_table_indexes_are_not_reused_in_a_file(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    for csn in (1, 2, 3):
        write_trail(name, [small(csn)])
        if csn == 2:
            mark_file(name).unlink()
    records = [decode_record(data) for _, data in cut_records(name.file(0).read_bytes())]
    assert [record.audit_rba >> 16 for record in records if record.io_type == IoType.METADATA] == [1, 2, 3]


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Writes past this size fail, and the one across it is short: what a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("room", [0, 1, 100, 333])
def test_a_full_disk_stops_the_writer_and_the_next_writer_repairs_the_trail(tmp_path: Path, room: int) -> None:
    name = TrailName(tmp_path, "ea")
    writer = open_writer(name)
    writer.write(small(1))
    end = writer.flush()
    writer.write(small(2, rows=5))
    with file_size_limit(end.rba + room), pytest.raises(DiskError, match="cannot write trail file"):
        writer.flush()
    for _ in range(2):
        with pytest.raises(DiskError):
            writer.flush()
        with pytest.raises(DiskError):
            writer.write(small(3))
    assert writer.position == end
    writer.close()
    assert len(read_all(name)) == 2
    reopened = open_writer(name)
    assert reopened.last_csn == Csn(1)
    reopened.write(small(2))
    reopened.flush()
    reopened.close()
    assert read_all(name) == read_rows(small(1)) + read_rows(small(2))


def test_a_failed_sync_is_final(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    writer = open_writer(name)
    writer.write(small(1))
    read_end, write_end = os.pipe()  # A pipe accepts the bytes but cannot be synced.
    os.dup2(write_end, writer._files._descriptor)
    with pytest.raises(DiskError):
        writer.flush()
    with pytest.raises(DiskError):
        writer.flush()
    assert writer.last_csn is None
    writer.close()
    os.close(read_end)
    os.close(write_end)
    assert read_all(name) == []


def test_an_unwritable_folder_is_reported_as_such(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DiskError, match="cannot write trail"):
        open_writer(TrailName(tmp_path / "file", "ea"))


def test_an_invalid_record_with_a_correct_checksum_is_an_error_without_a_traceback(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    write_trail(name, [small(1)])
    content = name.file(0).read_bytes()
    rba, record = cut_records(content)[-1]
    for place, value in [(4, b"X"), (6, b"\xff\xff"), (6, b"\1\0"), (44, b"Q"), (46, b"\xff\xff")]:
        bad = bytearray(record)
        bad[place : place + len(value)] = value
        name.file(0).write_bytes(content[:rba] + seal(bytes(bad), rba))
        with pytest.raises(TrailError, match=f"RBA {rba}"):
            read_all(name)


def test_a_reader_without_a_mark_sees_whole_transactions_only(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    writer = open_writer(name)
    writer.write(small(1))
    writer.write(small(2, ends=False))
    writer.flush()
    writer.close()
    mark_file(name).unlink()
    reader = TrailReader(name)
    batch = reader.read()
    assert batch is not None
    assert [piece.header.csn for piece in batch.pieces] == [Csn(1)]
    assert reader.read() is None
    assert reader.end() == TrailPosition(0, batch.end_rba)
    reader.close()


@pytest.mark.parametrize("pieces", [0, 1, 30], ids=["none", "one", "several files"])
@pytest.mark.parametrize("flushed", [True, False])
def test_settling_keeps_whole_transactions_and_removes_the_unfinished_one(
    tmp_path: Path, pieces: int, flushed: bool
) -> None:
    name = TrailName(tmp_path, "ea")
    writer = open_writer(name, 900)
    writer.write(small(1))
    writer.flush()
    writer.write(small(2))
    for number in range(pieces):
        writer.write(small(3, begins=number == 0, ends=False))
        if flushed:
            writer.flush()
    end = writer.remove_unfinished()
    assert writer.last_csn == Csn(2), "rows written but not flushed are known, so that they are not written again"
    assert end == writer.position
    assert read_all(name) == read_rows(small(1)) + read_rows(small(2))
    for csn in (3, 4):
        writer.write(small(csn))
    writer.flush()
    writer.close()
    expected = [row for csn in range(1, 5) for row in read_rows(small(csn))]
    assert read_all(name) == expected
    mark_file(name).unlink()
    assert read_all(name) == expected


def test_a_requested_rollover_is_kept_when_the_open_transaction_is_removed(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    writer = open_writer(name)
    writer.write(small(1))
    writer.rollover()
    writer.write(small(2, ends=False))
    writer.remove_unfinished()
    assert name.sequences() == [0]
    writer.write(small(2))
    writer.flush()
    writer.close()
    assert name.sequences() == [0, 1]
    assert read_all(name) == read_rows(small(1)) + read_rows(small(2))
