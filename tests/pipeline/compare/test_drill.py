"""The comparison algorithm, on sides that are dictionaries: it finds every difference and ignores rows in flight."""

from __future__ import annotations

import hashlib
import itertools
import os
import signal
import threading
from collections.abc import Iterable, Iterator, Sequence

import pytest
from amounts import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ggshell.pipeline.compare import drill
from ggshell.pipeline.compare.drill import (
    RANGE_ROWS,
    Difference,
    DifferenceKind,
    Key,
    KeyRange,
    Pair,
    RangeSum,
    Values,
    confirmed,
    walk,
)

Table = dict[Key, Values]


class Rows:
    """A side whose rows are in memory; counts the rows transferred."""

    range_rows = RANGE_ROWS

    def __init__(self, rows: Table) -> None:
        self.table = rows
        self.transferred = 0

    def _within(self, keys: KeyRange) -> Table:
        return {
            key: values
            for key, values in sorted(self.table.items())
            if (keys.low is None or key >= keys.low) and (keys.high is None or key < keys.high)
        }

    def sum(self, keys: KeyRange) -> RangeSum:
        found = self._within(keys)
        return RangeSum(len(found), (str(sum(map(_hash, found.items()))),))

    def sums(self, keys: KeyRange, buckets: int) -> dict[int, RangeSum]:
        found: dict[int, Table] = {}
        for key, values in self._within(keys).items():
            found.setdefault(_bucket(key, buckets), {})[key] = values
        return {bucket: RangeSum(len(rows), (str(sum(map(_hash, rows.items()))),)) for bucket, rows in found.items()}

    def bounds(self, keys: KeyRange, step: int) -> list[Key]:
        return [key for key in itertools.islice(self._within(keys), step - 1, None, step) if key != keys.low]

    def rows(self, keys: KeyRange, buckets: int, chosen: Sequence[int]) -> Table:
        found = {key: row for key, row in self._within(keys).items() if _bucket(key, buckets) in chosen}
        self.transferred += len(found)
        return found

    def rows_of(self, keys: Iterable[Key]) -> Table:
        return {key: self.table[key] for key in keys if key in self.table}


def _bucket(key: Key, buckets: int) -> int:
    return _hash((key, ())) % buckets


def _hash(row: tuple[Key, Values]) -> int:
    """As good as the hash of a database: sums of Python's hashes of pairs are often equal if two rows have swapped values."""
    return int.from_bytes(hashlib.sha256(repr(row).encode()).digest()[:8])


def table(*numbers: int) -> Table:
    return {(f"{number:06}",): ("same",) for number in numbers}


TABLES = st.dictionaries(st.tuples(st.text("ab", max_size=3)), st.tuples(st.sampled_from(["x", "y", None])))


# On a busy machine, drawing the first text is slow by itself, as it loads the character tables.
@settings(max_examples=examples(200), suppress_health_check=[HealthCheck.too_slow])
@given(TABLES, TABLES, st.integers(1, 5), st.integers(1, 5))
def test_exactly_the_differing_rows_are_found(source: Table, target: Table, range_rows: int, buckets: int) -> None:
    pair = Pair(Rows(source), Rows(target))
    walked = list(walk(pair, range_rows, buckets))
    pair.close()
    found = {each.key: (each.source, each.target) for part in walked for each in part.differences}
    keys = {*source, *target}
    assert found == {key: (source.get(key), target.get(key)) for key in keys if source.get(key) != target.get(key)}
    assert (sum(part.source_rows for part in walked), sum(part.target_rows for part in walked)) == (
        len(source),
        len(target),
    )


def test_scattered_differences_transfer_few_rows() -> None:
    source, target = Rows(table(*range(20_000))), Rows(table(*range(20_000)))
    spread = [(f"{number:06}",) for number in range(7, 20_000, 400)]
    target.table |= dict.fromkeys(spread, ("other",))
    pair = Pair(source, target)
    found = [each for part in walk(pair, 5000, 250) for each in part.differences]
    pair.close()
    assert sorted(each.key for each in found) == spread
    assert source.transferred == target.transferred <= 50 * 30


def test_a_table_that_differs_everywhere_is_transferred_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    class Recording(Rows):
        def rows(self, keys: KeyRange, buckets: int, chosen: Sequence[int]) -> Table:
            found = super().rows(keys, buckets, chosen)
            portions.append(len(found))
            return found

    portions: list[int] = []
    monkeypatch.setattr(drill, "TRANSFERRED", 60)
    source, target = table(*range(500)), dict.fromkeys(table(*range(500)), ("other",))
    pair = Pair(Recording(source), Recording(target))
    walked = list(walk(pair, 500, 100))
    pair.close()
    assert sum(len(part.differences) for part in walked) == 500
    assert (sum(part.source_rows for part in walked), sum(part.target_rows for part in walked)) == (500, 500)
    assert max(portions) <= 30
    assert len(portions) > 30


def test_the_side_that_needs_larger_ranges_decides() -> None:
    class Unindexed(Rows):
        range_rows = 10 * RANGE_ROWS

    numbers = range(2 * RANGE_ROWS)
    pair = Pair(Rows(table(*numbers)), Unindexed(table(*numbers[1:])))
    about: list[int] = []
    (found,) = walk(pair, divided=about.append)
    pair.close()
    assert (about, len(found.differences)) == ([5 * RANGE_ROWS], 1)


def test_equal_tables_are_read_with_one_query_on_each_side() -> None:
    class Counting(Rows):
        def __getattribute__(self, name: str) -> object:
            if name in ("sum", "sums", "bounds", "rows", "rows_of"):
                asked.append(name)
            return super().__getattribute__(name)

    asked: list[str] = []
    pair = Pair(Counting(table(*range(500))), Counting(table(*range(500))))
    walked = list(walk(pair, 100, 10))
    pair.close()
    assert (walked, asked) == ([(500, 500, ())], ["sum", "sum"])


class Waiting(Rows):
    """A side whose query ends only when it is canceled."""

    def __init__(self, both_ask: threading.Barrier) -> None:
        super().__init__({})
        self._both_ask = both_ask
        self.canceled = threading.Event()

    def sum(self, keys: KeyRange) -> RangeSum:
        if self._both_ask.wait(30) == 0:
            os.kill(os.getpid(), signal.SIGINT)
        assert self.canceled.wait(30)
        return super().sum(keys)

    def cancel(self) -> None:
        self.canceled.set()


@pytest.fixture
def takes_ctrl_c() -> Iterator[None]:
    """Workers of pytest-xdist ignore the signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("takes_ctrl_c")
def test_ctrl_c_cancels_the_queries_of_both_sides() -> None:
    barrier = threading.Barrier(2)
    source, target = Waiting(barrier), Waiting(barrier)
    pair = Pair(source, target)
    with pytest.raises(KeyboardInterrupt):
        list(walk(pair, 100, 10))
    pair.close()
    assert (source.canceled.is_set(), target.canceled.is_set()) == (True, True)


def test_a_side_with_many_more_rows_in_a_range_is_read_in_parts() -> None:
    source, target = Rows(table(5, 6)), Rows(table(*range(2000)))
    pair = Pair(source, target)
    walked = list(walk(pair, 100, 10))
    pair.close()
    assert max(part.target_rows for part in walked) <= 100
    assert sum(len(part.differences) for part in walked) == 1998


@pytest.mark.parametrize(
    ("source", "target", "kind"),
    [
        (("a",), None, DifferenceKind.MISSING),
        (None, ("a",), DifferenceKind.EXTRA),
        (("a",), ("b",), DifferenceKind.CHANGED),
    ],
)
def test_a_difference_has_its_kind(source: Values | None, target: Values | None, kind: DifferenceKind) -> None:
    assert Difference(("1",), source, target).kind is kind


def rechecked(source: Rows, target: Rows, steps: dict[int, dict[str, str]]) -> list[Difference]:
    """Differences of the first pass, rechecked while steps change rows: round -> side -> value of row 1 (empty: deleted)."""
    pair = Pair(source, target)
    rounds = itertools.count(1)

    def wait(seconds: float) -> bool:
        assert seconds == 3.0
        number = next(rounds)
        for name, value in steps.get(number, {}).items():
            side = source if name == "source" else target
            if value:
                side.table[("000001",)] = (value,)
            else:
                del side.table[("000001",)]
        return False

    first = [each for part in walk(pair) for each in part.differences]
    found = confirmed(pair, first, 3.0, wait)
    pair.close()
    return found


def test_a_row_that_arrives_meanwhile_was_in_flight() -> None:
    assert rechecked(Rows(table(1)), Rows({}), {1: {"target": "same"}}) == []


def test_a_lasting_difference_is_reported() -> None:
    assert rechecked(Rows(table(1)), Rows({}), {}) == [Difference(("000001",), ("same",), None)]


def test_a_row_that_the_source_changes_is_checked_again() -> None:
    changes = {1: {"source": "new", "target": "same"}, 2: {"target": "new"}}
    assert rechecked(Rows(table(1)), Rows({}), changes) == []
    changes = {1: {"source": "new", "target": "same"}}
    assert rechecked(Rows(table(1)), Rows({}), changes) == [Difference(("000001",), ("new",), ("same",))]
    assert rechecked(Rows({}), Rows(table(1)), {1: {"target": ""}}) == []


def test_a_row_that_keeps_changing_is_reported_as_in_flight() -> None:
    changes = {number: {"source": f"s{number}", "target": f"s{number - 1}"} for number in range(1, 9)}
    assert rechecked(Rows(table(1)), Rows({}), changes) == [Difference(("000001",), ("s5",), ("s4",), True)]
