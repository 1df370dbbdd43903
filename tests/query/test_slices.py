"""Slices of Parquet files by time: every row is in exactly one slice, and unordered files are not read repeatedly."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from amounts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from ggshell.errors import GgsError, NotFoundError
from ggshell.query.local import LocalEngine
from ggshell.query.slices import TIMES_READ, answered, sliced
from ggshell.query.views import FirstHalf, ParquetView, RowsView, TimeRange

ROWS = pa.schema([("moment", pa.timestamp("us")), ("number", pa.int64())])
SQL = "SELECT moment, number FROM seen"


def write(path: Path, times: Sequence[int | None], group: int = 10, *, statistics: bool = True) -> Path:
    table = pa.table([pa.array(times, pa.timestamp("us")), pa.array(range(len(times)), pa.int64())], ROWS)
    pq.write_table(table, path, row_group_size=group, write_statistics=statistics)
    return path


def part(*paths: Path, by: str = "moment") -> FirstHalf:
    return FirstHalf(ParquetView("seen", tuple(map(str, paths)), TimeRange(by)), SQL)


def rows(parts: Sequence[FirstHalf]) -> list[tuple[int, int]]:
    engine = LocalEngine()
    tables = [answered(engine, each, ROWS) for each in parts]
    return sorted((row["moment"].timestamp(), row["number"]) for table in tables for row in table.to_pylist())


@settings(max_examples=examples(40))
@given(
    files=st.lists(st.lists(st.integers(0, 10**12), min_size=1, max_size=60), min_size=1, max_size=3),
    size=st.integers(1, 40),
    ordered=st.booleans(),
    statistics=st.booleans(),
)
@pytest.mark.slow
def test_every_row_is_in_exactly_one_slice(
    files: list[list[int]], size: int, ordered: bool, statistics: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("slices")
    paths = [
        write(folder / f"{number}.parquet", sorted(times) if ordered else times, 7, statistics=statistics)
        for number, times in enumerate(files)
    ]
    whole = part(*paths)
    slices = sliced(whole, size)
    assert rows(slices) == rows([whole])
    if ordered and statistics and len(set(files[0])) > 2 * max(size, 7):
        assert len(slices) > 1


def test_a_slice_opens_only_the_files_that_have_its_rows(tmp_path: Path) -> None:
    days = [write(tmp_path / f"{day}.parquet", range(day * 1000, day * 1000 + 100)) for day in range(5)]
    assert [each.view.files for each in sliced(part(*days), 100)] == [(str(day),) for day in days]


def test_unordered_files_are_not_read_repeatedly(tmp_path: Path) -> None:
    times = random.Random(1).sample(range(10**9), 1000)
    slices = sliced(part(write(tmp_path / "a.parquet", times)), 10)
    assert len(slices) <= TIMES_READ


def test_without_a_column_to_slice_by_the_whole_is_queried(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", range(100))
    unsliced = FirstHalf(ParquetView("seen", (str(path),)), SQL)
    at_hand = FirstHalf(RowsView("seen", pq.read_table(path)), SQL)
    assert (sliced(unsliced), sliced(at_hand)) == ([unsliced], [at_hand])


def test_rows_without_a_time_are_in_no_slice(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", [None if number % 3 else number for number in range(60)])
    slices = sliced(part(path), 20)
    assert [number for _, number in rows(slices)] == list(range(0, 60, 3)) or len(slices) == 1


def test_files_without_rows_are_queried_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.ParquetWriter(path, ROWS).close()
    assert sliced(part(path)) == [part(path)]
    assert rows([part(path)]) == []


@pytest.mark.parametrize("ask", [sliced, lambda damaged: rows([damaged])])
def test_a_damaged_file_is_named(tmp_path: Path, ask: Callable[[FirstHalf], object]) -> None:
    whole, damaged = (write(tmp_path / name, range(100)) for name in ("a.parquet", "b.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:300])
    with pytest.raises(GgsError, match=f"{damaged} cannot be read as Parquet"):
        ask(part(whole, damaged))


def test_a_file_with_damaged_rows_is_named(tmp_path: Path) -> None:
    whole, damaged = (write(tmp_path / name, range(5000)) for name in ("a.parquet", "b.parquet"))
    content = bytearray(damaged.read_bytes())
    content[4:4000] = bytes(each ^ 0x55 for each in content[4:4000])
    damaged.write_bytes(content)
    with pytest.raises(GgsError, match=f"{damaged} cannot be read as Parquet"):
        rows([part(whole, damaged)])


@pytest.mark.parametrize("ask", [sliced, lambda missing: rows([missing])])
def test_a_file_that_is_deleted_during_the_query_is_reported(
    tmp_path: Path, ask: Callable[[FirstHalf], object]
) -> None:
    gone = part(write(tmp_path / "a.parquet", range(10)), tmp_path / "b.parquet")
    assert gone.view.size > 0
    with pytest.raises(NotFoundError, match=r"b\.parquet no longer exists"):
        ask(gone)
