"""Whether a position of a trail can be reached: writer, readers and queries agree."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from trail_kit import PRODUCER, mark_file, open_writer, small, write_trail

from ggshell.clock import FakeClock
from ggshell.errors import TrailError
from ggshell.home.home import Home
from ggshell.monitoring.group_lag import first_unprocessed
from ggshell.query.queries.file_facts import unread_notes
from ggshell.trail.fileheader import Continuity, encode_header
from ggshell.trail.name import TrailName
from ggshell.trail.opened import open_file
from ggshell.trail.positions import read_position_time
from ggshell.trail.reach import lost_end, unreachable
from ggshell.trail.reader import TrailReader
from ggshell.trail.writer import TrailWriter
from ggshell.types import TrailPosition


class Trail(NamedTuple):
    name: TrailName
    end: TrailPosition
    """The end of the newest file, as named by the durable mark."""

    @property
    def newest(self) -> Path:
        return self.name.file(self.end.seqno)


@pytest.fixture
def trail(tmp_path: Path) -> Trail:
    name = TrailName(tmp_path, "ea")
    end = write_trail(name, [small(csn) for csn in range(1, 9)], 900)[-1]
    assert end.seqno >= 2
    return Trail(name, end)


def read(name: TrailName, position: TrailPosition) -> object:
    with contextlib.closing(TrailReader(name, position)) as reader:
        return reader.read()


def reopen(name: TrailName, reached: TrailPosition | None = None) -> TrailPosition:
    """The position at which a writer resumes that remembers ``reached``."""
    opened = TrailWriter.open(name, clock=FakeClock(), producer=PRODUCER, max_bytes=900, reached=reached)
    with contextlib.closing(opened) as writer:
        return writer.position


def delete(trail: Trail) -> None:
    trail.newest.unlink()


def delete_all(trail: Trail) -> None:
    for seqno in trail.name.sequences():
        trail.name.file(seqno).unlink()


def truncate(trail: Trail) -> None:
    os.truncate(trail.newest, trail.end.rba - 1)


def replace_with_folder(trail: Trail) -> None:
    trail.newest.unlink()
    trail.newest.mkdir()


DAMAGES = {"deleted": delete, "all deleted": delete_all, "cut": truncate, "a folder": replace_with_folder}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_trail_without_its_newest_file_is_refused_by_writer_and_reader(
    trail: Trail, damage: Callable[[Trail], None]
) -> None:
    """Finding 3: the writer silently started over, and readers waited at a position that could never be written."""
    damage(trail)
    left = {path: path.stat().st_size for path in trail.name.folder.iterdir() if path.is_file()}
    for refused in (open_writer, lambda name: read(name, trail.end)):
        with pytest.raises(TrailError) as raised:
            refused(trail.name)
        assert raised.value.code in ("OGG-01332", "OGG-01028")
        assert str(trail.newest) in raised.value.message
        assert "restore" in raised.value.hint
    assert lost_end(trail.name) is not None
    assert left.items() <= {p: p.stat().st_size for p in trail.name.folder.iterdir() if p.is_file()}.items()


@pytest.mark.parametrize("damage", [delete_all, truncate], ids=["deleted", "cut"])
def test_a_trail_that_also_lost_its_mark_is_refused_by_the_position_its_writer_remembers(
    trail: Trail, damage: Callable[[Trail], None]
) -> None:
    damage(trail)
    mark_file(trail.name).unlink()
    with pytest.raises(TrailError, match=r"shorter|has no file|ends at"):
        reopen(trail.name, trail.end)
    with pytest.raises(TrailError):
        read(trail.name, trail.end)


def test_a_position_past_the_end_of_an_intact_file_is_refused(trail: Trail) -> None:
    with pytest.raises(TrailError) as raised:
        read(trail.name, trail.end._replace(rba=trail.end.rba + 1))
    assert raised.value.code == "GGS-00562"
    assert "EXTSEQNO 0, EXTRBA 0, FILTERDUPTRANSACTIONS" in raised.value.hint


def test_the_hint_for_an_unreachable_position_names_the_first_file_of_the_trail(trail: Trail) -> None:
    trail.name.file(0).unlink()
    error = unreachable(trail.name, trail.end._replace(rba=trail.end.rba + 1))
    assert error is not None
    assert error.hint.count("EXTSEQNO 1, EXTRBA 0") == 2


def test_a_waiting_reader_notices_that_the_trail_was_created_again(trail: Trail) -> None:
    with contextlib.closing(TrailReader(trail.name, trail.end)) as reader:
        assert reader.read() is None
        delete_all(trail)
        mark_file(trail.name).unlink()
        write_trail(trail.name, [small(1)])
        with pytest.raises(TrailError) as raised:
            reader.read()
    assert raised.value.code == "GGS-00562"


@pytest.mark.parametrize(
    ("seqno", "rba"), [(0, 0), (0, 500), (1, 0), (99, 0)], ids=["begin", "within", "next", "a file to come"]
)
def test_existing_and_future_positions_are_reachable(trail: Trail, seqno: int, rba: int) -> None:
    assert unreachable(trail.name, TrailPosition(seqno, rba)) is None


def test_in_a_trail_without_files_only_the_first_position_is_waited_for(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    assert unreachable(name, TrailPosition(0, 0)) is None
    assert read(name, TrailPosition(0, 0)) is None
    assert unreachable(name, TrailPosition(0, 1)) is not None


def test_an_older_durable_mark_beside_a_longer_trail_is_extended_by_its_writer(trail: Trail) -> None:
    """As a power failure leaves it: nothing is lost, and readers past the mark are right to wait."""
    older = mark_file(trail.name).read_bytes()
    with contextlib.closing(open_writer(trail.name, 900)) as writer:
        writer.write(small(20))
        end = writer.flush()
    mark_file(trail.name).write_bytes(older)
    assert read(trail.name, end) is None
    assert reopen(trail.name, end) >= end


def test_a_writer_that_remembers_less_resumes_at_the_end_of_the_trail(trail: Trail) -> None:
    assert reopen(trail.name, TrailPosition(0, 400)) > trail.end


def test_a_position_in_a_purged_file_is_refused(trail: Trail) -> None:
    trail.name.file(0).unlink()
    with pytest.raises(TrailError) as raised:
        read(trail.name, TrailPosition(0, 0))
    assert (raised.value.code, "EXTSEQNO" in raised.value.hint) == ("OGG-01332", True)
    assert reopen(trail.name, TrailPosition(0, 0)) > trail.end


def incomplete_next_file(trail: Trail, length: int) -> tuple[Path, bytes]:
    """The next file of a trail with ``length`` bytes of its header, as a writer or a copy leaves it for a moment."""
    seqno = trail.end.seqno + 1
    header = encode_header(str(trail.name.file(seqno)), seqno, 0, PRODUCER, Continuity())
    path = trail.name.file(seqno)
    path.write_bytes(header[:length])
    return path, header


LENGTHS = {"empty": 0, "two bytes": 2, "half": 300}


@pytest.mark.parametrize("length", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("has_mark", [True, False], ids=["with a mark", "without"])
def test_a_file_with_an_incomplete_header_is_waited_for(trail: Trail, length: int, has_mark: bool) -> None:
    """Finding: a reader that opened a file while its writer created it ended with OGG-01028 at RBA 0."""
    if not has_mark:
        mark_file(trail.name).unlink()
    path, header = incomplete_next_file(trail, length)
    place = TrailPosition(trail.end.seqno + 1, 0)
    with pytest.raises(FileNotFoundError):
        open_file(trail.name, place.seqno)
    assert unreachable(trail.name, place) is None
    assert read_position_time(trail.name, place) is None
    assert first_unprocessed(Home(trail.name.folder), "ea", place) is None
    assert unread_notes([str(path)]) == [] or length
    with contextlib.closing(TrailReader(trail.name, place)) as reader:
        assert reader.read() is None
        path.write_bytes(header)
        with contextlib.closing(open_writer(trail.name)) as writer:
            writer.write(small(20))
            writer.flush()
        batch = reader.read()
        assert batch is not None
        assert batch.seqno == place.seqno


def mark_in_the_file(trail: Trail) -> None:
    """The durable mark is in the file."""
    assert mark_file(trail.name).exists()


def another_file_follows(trail: Trail) -> None:
    """Another file follows, and the mark names neither."""
    mark_file(trail.name).unlink()
    trail.name.file(trail.end.seqno + 1).write_bytes(b"")


@pytest.mark.parametrize("length", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("more", [mark_in_the_file, another_file_follows], ids=["the mark", "a later file"])
def test_a_file_cut_within_its_header_is_damaged_if_more_was_written(
    trail: Trail, length: int, more: Callable[[Trail], None]
) -> None:
    os.truncate(trail.newest, length)
    more(trail)
    place = TrailPosition(trail.end.seqno, 0)
    with pytest.raises(TrailError, match="RBA 0"):
        open_file(trail.name, place.seqno)
    with pytest.raises(TrailError):
        first_unprocessed(Home(trail.name.folder), "ea", place)
    with pytest.raises(TrailError):
        read(trail.name, place)


def test_zeros_and_other_bytes_are_not_an_incomplete_header(trail: Trail) -> None:
    path = trail.name.file(trail.end.seqno + 1)
    for content in (b"\0", b"GG", b"F\0\0\0", bytes(300), b"x" * 5):
        path.write_bytes(content)
        with pytest.raises(TrailError):
            open_file(trail.name, trail.end.seqno + 1)


def test_a_new_file_is_visible_only_with_its_complete_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before and after each call that writes or syncs, every visible file can be opened."""
    name = TrailName(tmp_path, "ea")
    seen: set[int] = set()

    def check() -> None:
        for seqno in name.sequences():
            open_file(name, seqno).close()
            seen.add(seqno)

    def checked(original: Callable[..., int]) -> Callable[..., int]:
        def call(*arguments: object) -> int:
            check()
            done = original(*arguments)
            check()
            return done

        return call

    for each in ("write", "pwrite", "fsync", "fdatasync"):
        monkeypatch.setattr(os, each, checked(getattr(os, each)))
    write_trail(name, [small(csn) for csn in range(1, 9)], 900)
    assert seen == set(name.sequences())
    assert not name.unfinished().exists()


def test_files_that_a_killed_writer_left_incomplete_are_removed(trail: Trail) -> None:
    trail.name.unfinished().write_bytes(b"F\0")
    assert reopen(trail.name) >= trail.end
    assert not trail.name.unfinished().exists()
