"""TrailReader on every damaged record: rows before the damage are delivered, then an error names file, RBA and expectation."""

from __future__ import annotations

import contextlib
import random
import re
from pathlib import Path

import pytest
from batches import read_rows
from trail.damage_kit import KINDS, SampleRecord, cuts, flips, keys, rounds_of, sample_record, splices
from trail_kit import cut_records, mark_file

from ggshell.errors import TrailError
from ggshell.trail import reader
from ggshell.trail.name import TrailName
from ggshell.trail.reader import TrailReader
from ggshell.types import TrailPosition

_ROUNDS = 40
"""No sample trail needs as many reads."""

Rows = list[tuple[object, ...]]


def read(name: TrailName, position: TrailPosition | None = None, size: int = 1 << 20) -> tuple[Rows, TrailError | None]:
    """The rows delivered, and the error that ended the reading. Fails if the reader never ends."""
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


def rba_of(error: TrailError, sample: SampleRecord) -> int:
    """The RBA that an error names, with its file and what was expected."""
    match = re.search(rf"{re.escape(str(sample.path))} .*RBA (\d+): expected \S.*", str(error))
    assert match is not None, str(error)
    return int(match[1])


def rows_before(sample: SampleRecord, good: Rows) -> int:
    """The number of rows entirely before the record, in its file or in an earlier one."""
    name = sample.name
    count = 0
    for seqno in name.sequences():
        if seqno > sample.seqno:
            break
        content = sample.content if seqno == sample.seqno else name.file(seqno).read_bytes()
        for rba, record in cut_records(content):
            if seqno < sample.seqno or rba + len(record) <= sample.rba:
                count += bool(record[9] & 8) and record[40] == 0
    return min(count, len(good))


@pytest.fixture(params=["small batches", "vectorized"])
def decoder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Small chunks are decoded by code of their own: every damage is read by both decoders."""
    if request.param == "vectorized":
        monkeypatch.setattr(reader, "SMALL_BATCH_BYTES", 0)
    return str(request.param)


@pytest.mark.parametrize("name", KINDS)
def test_a_flipped_bit_is_found_and_no_wrong_row_is_delivered(
    tmp_path: Path, name: str, decoder: str, request: pytest.FixtureRequest
) -> None:
    rounds = rounds_of(request)
    sample, rng = sample_record(tmp_path, KINDS[name]), random.Random(21)
    good, no_error = read(sample.name)
    assert no_error is None
    for content in flips(sample, rng, rounds if decoder == "small batches" else 0.2 * rounds):
        sample.put(content)
        rows, error = read(sample.name)
        assert rows == good[: len(rows)]
        assert error is not None
        assert rba_of(error, sample) == sample.rba
        assert len(rows) == rows_before(sample, good)


@pytest.mark.parametrize("name", KINDS)
def test_a_cut_within_a_record_is_an_error_with_a_durable_mark_and_waited_for_without(
    tmp_path: Path, name: str, decoder: str, request: pytest.FixtureRequest
) -> None:
    sample, rng = sample_record(tmp_path, KINDS[name]), random.Random(22)
    good, _ = read(sample.name)
    mark = mark_file(sample.name).read_bytes()
    for content in cuts(sample, rng, min(1.0, rounds_of(request))):
        sample.put(content)
        mark_file(sample.name).write_bytes(mark)
        rows, error = read(sample.name)
        assert (rows, len(rows)) == (good[: len(rows)], rows_before(sample, good))
        assert error is not None
        assert rba_of(error, sample) == sample.rba
        mark_file(sample.name).unlink()
        rows, error = read(sample.name)
        assert rows == good[: len(rows)]
        assert error is None or rba_of(error, sample) == sample.rba


@pytest.mark.parametrize("name", KINDS)
def test_a_splice_delivers_no_wrong_row(
    tmp_path: Path, name: str, decoder: str, request: pytest.FixtureRequest
) -> None:
    rounds = rounds_of(request)
    sample, rng = sample_record(tmp_path, KINDS[name]), random.Random(23)
    good, _ = read(sample.name)
    mark = mark_file(sample.name).read_bytes()
    for number, content in enumerate(splices(sample, rng, int(60 * rounds))):
        sample.put(content)
        if number % 3:
            mark_file(sample.name).write_bytes(mark)
        else:
            mark_file(sample.name).unlink(missing_ok=True)
        rows, error = read(sample.name, size=rng.choice([1, 100, 1 << 20]))
        assert rows == good[: len(rows)]
        if number % 3:
            assert error is not None
        if error is not None:
            assert sample.rba <= rba_of(error, sample) <= sample.rba + sample.size


@pytest.mark.parametrize("name", KINDS)
def test_a_reader_that_starts_after_the_damage_delivers_correct_rows_or_none(
    tmp_path: Path, name: str, request: pytest.FixtureRequest
) -> None:
    """It skips everything before its position without checking every byte."""
    rounds = rounds_of(request)
    sample, rng = sample_record(tmp_path, KINDS[name]), random.Random(24)
    places = [rba for rba, _ in cut_records(sample.content) if rba > sample.rba]
    if not places:
        pytest.skip("no record follows it in its file")
    starts = {rba: read(sample.name, TrailPosition(sample.seqno, rba))[0] for rba in places}
    for content in (*flips(sample, rng, 0.5 * rounds), *splices(sample, rng, int(40 * rounds))):
        sample.put(content)
        for rba in rng.sample(places, 1):
            rows, error = read(sample.name, TrailPosition(sample.seqno, rba))
            assert rows == starts[rba][: len(rows)]
            if error is not None:
                rba_of(error, sample)
