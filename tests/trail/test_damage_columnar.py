"""read_columnar on every damaged record: right rows only, the damage told, and all that lies behind it."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
from trail.damage_kit import KINDS, Exhibit, cuts, exhibit, flips, keys, rounds_of, splices
from trail.trail_kit import cut_records, mark_file

from ggshell.errors import TrailError
from ggshell.trail.columnar import FAULT, OnDamage, read_columnar, read_table, sync_points

Row = dict[str, Any]


def read(path: Path, how: OnDamage, *, sealed: bool = False) -> tuple[list[Row], list[str], TrailError | None]:
    """Rows, faults that were told among them, and the error that ended the reading."""
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


def is_part(rows: list[Row], good: list[Row]) -> bool:
    """Whether these are some of the good rows, in their order."""
    rest = iter(good)
    return all(any(row == each for each in rest) for row in rows)


def names_place(text: str, shown: Exhibit) -> bool:
    return re.search(rf"{re.escape(str(shown.path))} .*RBA \d+: expected \S", text) is not None


def behind(shown: Exhibit, good: list[Row]) -> list[Row]:
    """The rows of transactions that begin behind the record."""
    found = [row for row in good if row["rba"] >= shown.rba + shown.size]
    while found and found[0]["trans_ind"] not in (0, 3):
        found.pop(0)
    return found


@pytest.mark.parametrize("name", KINDS)
def test_no_damage_gives_a_wrong_row_or_hides_what_lies_behind_it(
    tmp_path: Path, name: str, request: pytest.FixtureRequest
) -> None:
    rounds = rounds_of(request)
    shown, chance = exhibit(tmp_path, KINDS[name]), random.Random(31)
    good, faults, error = read(shown.path, OnDamage.TELL, sealed=KINDS[name].sealed)
    assert (faults, error) == ([], None)
    expected = [
        row for row in behind(shown, good) if name != "metadata" and not ("metadata" in name and row["xid"] == "702")
    ]
    for content in flips(shown, chance, 0.05 * rounds):
        shown.put(content)
        rows, _, error = read(shown.path, OnDamage.RAISE, sealed=KINDS[name].sealed)
        assert rows == good[: len(rows)]
        assert error is not None
        assert names_place(str(error), shown)
        rows, faults, error = read(shown.path, OnDamage.TELL, sealed=KINDS[name].sealed)
        assert error is None
        assert is_part(rows, good)
        assert faults
        assert all(names_place(fault, shown) for fault in faults)
        if shown.rba:
            assert rows[len(rows) - len(expected) :] == expected
            assert read(shown.path, OnDamage.DROP, sealed=KINDS[name].sealed) == (rows, [], None)


@pytest.mark.parametrize("name", KINDS)
def test_no_end_or_splice_gives_a_wrong_row(tmp_path: Path, name: str, request: pytest.FixtureRequest) -> None:
    rounds = rounds_of(request)
    shown, chance = exhibit(tmp_path, KINDS[name]), random.Random(32)
    good = read(shown.path, OnDamage.RAISE, sealed=KINDS[name].sealed)[0]
    mark = mark_file(shown.name).read_bytes()
    ends = [shown.content[: shown.rba]] * 2
    for number, content in enumerate(
        (*ends, *cuts(shown, chance, min(1.0, 0.15 * rounds)), *splices(shown, chance, int(24 * rounds)))
    ):
        shown.put(content)
        mark_file(shown.name).write_bytes(mark if number % 2 else b"")
        for how in OnDamage:
            rows, faults, error = read(shown.path, how, sealed=KINDS[name].sealed)
            assert is_part(rows, good)
            assert error is None or (how is OnDamage.RAISE and names_place(str(error), shown))
            assert all(names_place(fault, shown) for fault in faults)
            if number % 2 and how is OnDamage.RAISE:
                assert error is not None
            if number % 2 and how is OnDamage.TELL:
                assert faults


@pytest.mark.parametrize("name", ["insert, sole", "metadata", "fragment, middle", "key update", "restart"])
def test_readers_that_share_a_file_find_what_one_finds(
    tmp_path: Path, name: str, request: pytest.FixtureRequest
) -> None:
    rounds = rounds_of(request)
    shown, chance = exhibit(tmp_path, KINDS[name]), random.Random(33)
    for content in (*flips(shown, chance, 0.2 * rounds), *splices(shown, chance, int(60 * rounds))):
        shown.put(content)
        whole = _range(shown.path)
        points = sync_points(shown.path, 100)
        assert points == sorted(set(points))
        parts = [_range(shown.path, low, high) for low, high in zip(points, [*points[1:], None], strict=True)]
        assert [row for part in parts for row in part[0]] == whole[0]
        assert [fault for part in parts for fault in part[1]] == whole[1]


def _range(path: Path, first: int = 0, last: int | None = None) -> tuple[list[Row], list[str]]:
    """One table's rows, and the damage that is told."""
    rows: list[Row] = []
    for _, batch in read_table(path, "hr.a", columns=["rba"], first=first, last=last, on_damage=OnDamage.DROP):
        rows += batch.to_pylist()
    told = read_columnar(path, [], first=first, last=last, on_damage=OnDamage.TELL)
    return rows, [row[FAULT] for batch in told for row in batch.to_pylist() if row[FAULT] is not None]


def test_a_middle_file_that_ends_early_is_told_by_what_the_next_one_says(tmp_path: Path) -> None:
    name = exhibit(tmp_path, KINDS["header of a later file"]).name
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
