"""Parts of a batch between processes of one machine."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ggshell.connectors.lake.part_exchange import THROUGH_SPARK, PartExchange
from ggshell.connectors.lake.slices import parts_of
from ggshell.errors import ConnectionLostError, DiskError, TrailError


class Part(NamedTuple):
    """Like the part of a slice: arrays of both libraries and plain values."""

    texts: pa.Array
    given: Any
    counts: dict[str, int]


def exchange_in(folder: Path) -> PartExchange:
    found = PartExchange(str(folder / "parts"))
    found.open()
    return found


@given(st.lists(st.lists(st.none() | st.text(max_size=9), max_size=200), max_size=4))
def test_a_part_arrives_as_it_was_sent_and_leaves_no_file(
    tmp_path_factory: pytest.TempPathFactory, columns: list[list[str | None]]
) -> None:
    exchange = exchange_in(tmp_path_factory.mktemp("exchange"))
    parts = [Part(pa.array(each, pa.string()), np.arange(len(each)), {"a": 1}) for each in columns]
    data = [exchange.sent(part) for part in parts]
    found = [exchange.received(each) for each in data]
    assert [part.texts for part in found] == [part.texts for part in parts]
    assert all(np.array_equal(one.given, other.given) for one, other in zip(found, parts, strict=True))
    assert list(Path(exchange.folder).iterdir()) == []


def test_arrays_of_numpy_can_be_changed_and_those_of_arrow_are_not_copied(tmp_path: Path) -> None:
    exchange, texts = exchange_in(tmp_path), pa.array(["a text of some length"] * 10_000)
    data = exchange.sent(Part(texts, np.zeros(3), {}))
    before = pa.total_allocated_bytes()
    found = exchange.received(data)
    found.given[1] = 7
    assert found.given.tolist() == [0, 7, 0]
    assert found.texts == texts
    assert pa.total_allocated_bytes() == before


def test_parts_of_a_killed_process_are_removed_at_the_next_start(tmp_path: Path) -> None:
    exchange = exchange_in(tmp_path)
    exchange.sent(Part(pa.array(["a"]), None, {}))
    assert Path(exchange.folder).stat().st_mode & 0o777 == 0o700
    exchange.open()
    assert list(Path(exchange.folder).iterdir()) == []
    exchange.close()
    assert not Path(exchange.folder).exists()


def test_an_error_of_a_task_leaves_no_file_of_the_others(tmp_path: Path) -> None:
    """A batch is tried again and again while its store does not answer."""
    exchange = exchange_in(tmp_path)
    data = [exchange.sent(each) for each in ("a part", ConnectionLostError("no answer"), "another one")]
    with pytest.raises(ConnectionLostError, match="no answer"):
        parts_of(data, exchange)
    assert list(Path(exchange.folder).iterdir()) == []


def test_a_part_through_spark_and_an_error_arrive_too(tmp_path: Path) -> None:
    part = (pa.array(["a"]), {"a": 1})
    assert THROUGH_SPARK.received(THROUGH_SPARK.sent(part)) == part
    exchange = exchange_in(tmp_path)
    assert str(exchange.received(exchange.sent(TrailError("damaged")))) == str(TrailError("damaged"))


def test_a_folder_that_cannot_be_written_is_an_error_of_the_task(tmp_path: Path) -> None:
    found = pickle.loads(PartExchange(str(tmp_path / "none")).sent("part"))  # noqa: S301
    assert isinstance(found, DiskError)
    assert "No such file" in str(found)
    (tmp_path / "file").touch()
    with pytest.raises(DiskError, match="cannot create"):
        PartExchange(str(tmp_path / "file" / "parts")).open()
