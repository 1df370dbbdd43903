"""read_columnar on every damaged record: it returns correct rows only, reports the damage, and reads on after it."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
from trail.damage_kit import KINDS, SampleRecord, cuts, flips, keys, rounds_of, sample_record, splices
from trail_kit import cut_records, mark_file

from ggshell.errors import TrailError
from ggshell.trail.boundaries import split_points
from ggshell.trail.columnar import FAULT, OnDamage, read_columnar, read_table

Row = dict[str, Any]


def read(path: Path, how: OnDamage, *, sealed: bool = False) -> tuple[list[Row], list[str], TrailError | None]:
    """The rows, the faults reported among them, and the error that ended the reading."""
    rows: list[Row] = []
    faults: list[str] = []
    try:
        for batch in read_columnar(path, on_damage=how, keys=keys if sealed else None):
            for row in batch.to_pylist():
                fault = row.pop(FAULT, None)
                if fault is None:
                    rows.append(row)
                else:
                    assert set(row.values()) == {None}
                    faults.append(fault)
    except TrailError as error:
        return rows, faults, error
    return rows, faults, None


def is_subsequence(rows: list[Row], good: list[Row]) -> bool:
    """Whether these are some of the good rows, in order."""
    rest = iter(good)
    return all(any(row == each for each in rest) for row in rows)


def names_position(text: str, sample: SampleRecord) -> bool:
    return re.search(rf"{re.escape(str(sample.path))} .*RBA \d+: expected \S", text) is not None


def rows_after(sample: SampleRecord, good: list[Row]) -> list[Row]:
    """The rows of transactions that begin after the damaged record."""
    found = [row for row in good if row["rba"] >= sample.rba + sample.size]
    while found and found[0]["trans_ind"] not in (0, 3):
        found.pop(0)
    return found


@pytest.mark.parametrize("name", KINDS)
def test_no_damage_gives_a_wrong_row_or_hides_rows_after_it(
    tmp_path: Path, name: str, request: pytest.FixtureRequest
) -> None:
    rounds = rounds_of(request)
    sample, rng = sample_record(tmp_path, KINDS[name]), random.Random(31)
    good, faults, error = read(sample.path, OnDamage.TELL, sealed=KINDS[name].sealed)
    assert (faults, error) == ([], None)
    expected = [
        row
        for row in rows_after(sample, good)
        if name != "metadata" and not ("metadata" in name and row["xid"] == "702")
    ]
    for content in flips(sample, rng, 0.05 * rounds):
        sample.put(content)
        rows, _, error = read(sample.path, OnDamage.RAISE, sealed=KINDS[name].sealed)
        assert rows == good[: len(rows)]
        assert error is not None
        assert names_position(str(error), sample)
        rows, faults, error = read(sample.path, OnDamage.TELL, sealed=KINDS[name].sealed)
        assert error is None
        assert is_subsequence(rows, good)
        assert faults
        assert all(names_position(fault, sample) for fault in faults)
        if sample.rba:
            assert rows[len(rows) - len(expected) :] == expected
            assert read(sample.path, OnDamage.DROP, sealed=KINDS[name].sealed) == (rows, [], None)


@pytest.mark.parametrize("name", KINDS)
def test_no_cut_or_splice_gives_a_wrong_row(tmp_path: Path, name: str, request: pytest.FixtureRequest) -> None:
    rounds = rounds_of(request)
    sample, rng = sample_record(tmp_path, KINDS[name]), random.Random(32)
    good = read(sample.path, OnDamage.RAISE, sealed=KINDS[name].sealed)[0]
    mark = mark_file(sample.name).read_bytes()
    ends = [sample.content[: sample.rba]] * 2
    for number, content in enumerate(
        (*ends, *cuts(sample, rng, min(1.0, 0.15 * rounds)), *splices(sample, rng, int(24 * rounds)))
    ):
        sample.put(content)
        mark_file(sample.name).write_bytes(mark if number % 2 else b"")
        for how in OnDamage:
            rows, faults, error = read(sample.path, how, sealed=KINDS[name].sealed)
            assert is_subsequence(rows, good)
            assert error is None or (how is OnDamage.RAISE and names_position(str(error), sample))
            assert all(names_position(fault, sample) for fault in faults)
            if number % 2 and how is OnDamage.RAISE:
                assert error is not None
            if number % 2 and how is OnDamage.TELL:
                assert faults


@pytest.mark.parametrize("name", ["insert, sole", "metadata", "fragment, middle", "key update", "restart"])
def test_reading_a_file_in_ranges_finds_what_reading_it_whole_finds(
    tmp_path: Path, name: str, request: pytest.FixtureRequest
) -> None:
    rounds = rounds_of(request)
    sample, rng = sample_record(tmp_path, KINDS[name]), random.Random(33)
    for content in (*flips(sample, rng, 0.2 * rounds), *splices(sample, rng, int(60 * rounds))):
        sample.put(content)
        whole = _range(sample.path)
        points = [0, *(point.place for point in split_points(sample.path, 100, 0, len(content), inside=False))]
        assert points == sorted(set(points))
        parts = [_range(sample.path, low, high) for low, high in zip(points, [*points[1:], None], strict=True)]
        assert [row for part in parts for row in part[0]] == whole[0]
        assert [fault for part in parts for fault in part[1]] == whole[1]


def _range(path: Path, first: int = 0, last: int | None = None) -> tuple[list[Row], list[str]]:
    """The rows of a range of one table, and the damage reported."""
    rows: list[Row] = []
    for _, batch in read_table(path, "hr.a", columns=["rba"], first=first, last=last, on_damage=OnDamage.DROP):
        rows += batch.to_pylist()
    batches = read_columnar(path, [], first=first, last=last, on_damage=OnDamage.TELL)
    return rows, [row[FAULT] for batch in batches for row in batch.to_pylist() if row[FAULT] is not None]


def test_the_next_file_reveals_that_a_middle_file_was_cut(tmp_path: Path) -> None:
    name = sample_record(tmp_path, KINDS["header of a later file"]).name
    path = name.file(0)
    content = path.read_bytes()
    places = [rba for rba, _ in cut_records(content)]
    good = read(path, OnDamage.RAISE)[0]
    path.write_bytes(content[: places[-1]])
    rows, _, error = read(path, OnDamage.RAISE)
    assert rows == [row for row in good if row["rba"] < places[-1]]
    assert f"at RBA {places[-1]}: expected {len(content)} bytes in this file" in str(error)
    assert len(read(path, OnDamage.TELL)[1]) == 1
    name.file(1).unlink()
    assert read(path, OnDamage.RAISE) == (rows, [], None)
