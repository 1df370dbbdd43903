"""The frames of a trail that another home reads: they make an exact copy, and show whole transactions early."""

from __future__ import annotations

from pathlib import Path

import pytest
from trail_kit import PRODUCER, read_all, small
from two_homes import digest

from ggshell.clock import SystemClock
from ggshell.errors import TrailError
from ggshell.network.frames import Frame, encode_frame
from ggshell.network.opening import Opening
from ggshell.network.receiver import ReceivedTrail
from ggshell.network.trail_owner import TrailOwner
from ggshell.network.trail_source import AT_END, TrailSource, tail_digest
from ggshell.trail.name import TrailName
from ggshell.trail.writer import TrailWriter
from ggshell.types import TrailPosition


@pytest.fixture
def name(tmp_path: Path) -> TrailName:
    return TrailName(tmp_path / "source", "ea")


def write(name: TrailName, *sizes: int, first: int = 1, max_bytes: int = 1 << 30) -> None:
    """Append transactions with these numbers of rows."""
    writer = TrailWriter.open(name, clock=SystemClock(), producer=PRODUCER, max_bytes=max_bytes)
    for csn, rows in enumerate(sizes, first):
        writer.write(small(csn, rows))
    writer.flush()
    writer.close()


def opening(reached: TrailPosition | None = None, tail: str = "", **fields: object) -> Opening:
    place = (reached.seqno, reached.rba) if reached is not None else None
    return Opening("ea", "home", "host", "RP1", "1", place, reads=True, tail=tail, **fields)  # type: ignore[arg-type]


def frames(name: TrailName, asked: Opening) -> list[Frame]:
    source = TrailSource(name, asked)
    found = []
    while (frame := source.next()) is not None:
        found.append(frame)
    source.close()
    return found


def test_the_frames_make_an_exact_copy(name: TrailName, tmp_path: Path) -> None:
    write(name, *[3] * 500, max_bytes=20_000)
    copy = TrailName(tmp_path / "copy", "ea")
    received = ReceivedTrail(copy, TrailOwner("", "", "source"), None)
    received.take([encode_frame(each) for each in frames(name, opening())])
    received.close()
    assert len(name.sequences()) > 3
    assert digest(copy) == digest(name)
    assert read_all(copy) == read_all(name)


def test_transactions_are_shown_before_the_end_of_a_file_arrives(name: TrailName) -> None:
    write(name, *[3] * 10_000)
    ends = [each.end for each in frames(name, opening()) if each.end is not None]
    assert len(ends) > 2
    assert [each.tables for each in ends[-2:]] == [0, AT_END]


def test_nothing_is_shown_inside_a_transaction(name: TrailName) -> None:
    write(name, 2, 20_000, 2)
    found = frames(name, opening())
    assert len(found) > 4
    assert [each.end is not None for each in found[2:-1]] == [False] * (len(found) - 3)
    assert found[-1].end is not None


def test_a_reader_continues_where_it_is_unless_the_bytes_before_differ(name: TrailName) -> None:
    write(name, 2, 2)
    end = TrailPosition(0, name.file(0).stat().st_size)
    tail = tail_digest(name, end)
    write(name, 2, first=3)
    assert [each.place for each in frames(name, opening(end, tail))] == [end]
    with pytest.raises(TrailError, match="written again") as error:
        TrailSource(name, opening(end, "0" * 64))
    assert error.value.code == "GGS-00962"


def test_a_reader_of_a_file_that_was_purged_is_refused(name: TrailName) -> None:
    write(name, *[3] * 500, max_bytes=20_000)
    name.file(0).unlink()
    with pytest.raises(TrailError, match="is missing"):
        TrailSource(name, opening(TrailPosition(0, 0)))
    assert frames(name, opening())[0].place == TrailPosition(1, 0)


def test_a_reader_that_begins_at_the_end_gets_the_last_file(name: TrailName) -> None:
    write(name, *[3] * 500, max_bytes=20_000)
    assert frames(name, opening(at_end=True))[0].place == TrailPosition(name.sequences()[-1], 0)
