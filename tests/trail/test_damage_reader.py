"""TrailReader on every damaged record: what lies before is delivered, then an error with file, RBA and what was expected."""

from __future__ import annotations

import contextlib
import random
import re
from pathlib import Path

import pytest
from batches import read_rows
from trail.damage_kit import KINDS, Exhibit, cuts, exhibit, flips, keys, rounds_of, splices
from trail.trail_kit import cut_records, mark_file

from ggshell.errors import TrailError
from ggshell.trail import reader
from ggshell.trail.name import TrailName
from ggshell.trail.reader import TrailReader
from ggshell.types import TrailPosition

_ROUNDS = 40
"""No trail of the gallery takes so many reads."""

Rows = list[tuple[object, ...]]


def read(name: TrailName, position: TrailPosition | None = None, size: int = 1 << 20) -> tuple[Rows, TrailError | None]:
    """What is delivered, and the error that ended it.  A reader that goes on without end fails."""
    rows: Rows = []
    with contextlib.closing(TrailReader(name, position, keys=keys)) as opened:
        try:
            for _ in range(_ROUNDS):
                batch = opened.read(size)
                if batch is None:
                    return rows, None
                rows += read_rows(batch)
        except TrailError as error:
            return rows, error
    raise AssertionError("the reader comes to no end")


def rba_of(error: TrailError, shown: Exhibit) -> int:
    """The place that an error names, with its file and what was expected."""
    match = re.search(rf"{re.escape(str(shown.path))} .*RBA (\d+): expected \S.*", str(error))
    assert match is not None, str(error)
    return int(match[1])


def before(shown: Exhibit, good: Rows) -> int:
    """How many rows stand wholly before the record, in its file or in an earlier one."""
    name = shown.name
    count = 0
    for seqno in name.sequences():
        if seqno > shown.seqno:
            break
        content = shown.content if seqno == shown.seqno else name.file(seqno).read_bytes()
        for rba, record in cut_records(content):
            if seqno < shown.seqno or rba + len(record) <= shown.rba:
                count += bool(record[9] & 8) and record[40] == 0
    return min(count, len(good))


@pytest.fixture(params=["few", "many"])
def path_taken(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Small chunks have a way of their own through the reader: every damage goes both ways."""
    if request.param == "many":
        monkeypatch.setattr(reader, "SMALL_BATCH_BYTES", 0)
    return str(request.param)


@pytest.mark.parametrize("name", KINDS)
def test_a_flipped_bit_is_found_and_nothing_wrong_is_delivered(
    tmp_path: Path, name: str, path_taken: str, request: pytest.FixtureRequest
) -> None:
    rounds = rounds_of(request)
    shown, chance = exhibit(tmp_path, KINDS[name]), random.Random(21)
    good, nothing = read(shown.name)
    assert nothing is None
    for content in flips(shown, chance, rounds if path_taken == "few" else 0.2 * rounds):
        shown.put(content)
        rows, error = read(shown.name)
        assert rows == good[: len(rows)]
        assert error is not None
        assert rba_of(error, shown) == shown.rba
        assert len(rows) == before(shown, good)


@pytest.mark.parametrize("name", KINDS)
def test_an_end_within_a_record_is_found_with_a_mark_and_waited_at_without_one(
    tmp_path: Path, name: str, path_taken: str, request: pytest.FixtureRequest
) -> None:
    shown, chance = exhibit(tmp_path, KINDS[name]), random.Random(22)
    good, _ = read(shown.name)
    mark = mark_file(shown.name).read_bytes()
    for content in cuts(shown, chance, min(1.0, rounds_of(request))):
        shown.put(content)
        mark_file(shown.name).write_bytes(mark)
        rows, error = read(shown.name)
        assert (rows, len(rows)) == (good[: len(rows)], before(shown, good))
        assert error is not None
        assert rba_of(error, shown) == shown.rba
        mark_file(shown.name).unlink()
        rows, error = read(shown.name)
        assert rows == good[: len(rows)]
        assert error is None or rba_of(error, shown) == shown.rba


@pytest.mark.parametrize("name", KINDS)
def test_a_splice_delivers_nothing_wrong(
    tmp_path: Path, name: str, path_taken: str, request: pytest.FixtureRequest
) -> None:
    rounds = rounds_of(request)
    shown, chance = exhibit(tmp_path, KINDS[name]), random.Random(23)
    good, _ = read(shown.name)
    mark = mark_file(shown.name).read_bytes()
    for number, content in enumerate(splices(shown, chance, int(60 * rounds))):
        shown.put(content)
        if number % 3:
            mark_file(shown.name).write_bytes(mark)
        else:
            mark_file(shown.name).unlink(missing_ok=True)
        rows, error = read(shown.name, size=chance.choice([1, 100, 1 << 20]))
        assert rows == good[: len(rows)]
        if number % 3:
            assert error is not None
        if error is not None:
            assert shown.rba <= rba_of(error, shown) <= shown.rba + shown.size


@pytest.mark.parametrize("name", KINDS)
def test_a_reader_that_begins_behind_the_damage_delivers_what_is_right_or_nothing(
    tmp_path: Path, name: str, request: pytest.FixtureRequest
) -> None:
    """It steps over what lies before its position without looking at every byte."""
    rounds = rounds_of(request)
    shown, chance = exhibit(tmp_path, KINDS[name]), random.Random(24)
    places = [rba for rba, _ in cut_records(shown.content) if rba > shown.rba]
    if not places:
        pytest.skip("nothing lies behind it in its file")
    starts = {rba: read(shown.name, TrailPosition(shown.seqno, rba))[0] for rba in places}
    for content in (*flips(shown, chance, 0.5 * rounds), *splices(shown, chance, int(40 * rounds))):
        shown.put(content)
        for rba in chance.sample(places, 1):
            rows, error = read(shown.name, TrailPosition(shown.seqno, rba))
            assert rows == starts[rba][: len(rows)]
            if error is not None:
                rba_of(error, shown)
