"""Transaction ids of one CSN in a checkpoint row: those of a large initial load fit, and none is forgotten."""

from __future__ import annotations

import random

import pytest

from ggshell.errors import ApplyError
from ggshell.pipeline.apply.checkpoint_table import LONGEST_IDS, from_columns, packed, to_columns, unpacked
from ggshell.pipeline.apply.target import CheckpointRow, Split
from ggshell.types import Csn, TrailPosition


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        ([], ""),
        (["7"], "7"),
        (["7.1", "7.2"], "7.1,7.2"),
        ([f"7.{number}" for number in range(1, 301)], "7.1~300"),
        (["7.9", "7.10", "7.11", "8.12", "x", "7.3"], "7.9~11,8.12,x,7.3"),
        (["7.01", "7.02", "7.03"], "7.01,7.02,7.03"),
        (["1.2.8", "1.2.9", "1.2.10"], "1.2.8~10"),
    ],
)
def test_consecutive_ids_are_stored_as_a_range(ids: list[str], text: str) -> None:
    assert packed(ids) == text
    assert unpacked(text) == ids


def test_every_list_is_read_back() -> None:
    rng = random.Random(14)
    for _ in range(300):
        ids = [f"{rng.choice(['', '7.', 'a.0.'])}{rng.randrange(15)}" for _ in range(rng.randrange(40))]
        assert unpacked(packed(ids)) == ids


@pytest.mark.parametrize("text", ["5~5", "9~5", "1~99999999"])
def test_an_invalid_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a range"):
        unpacked(text)


@pytest.mark.parametrize("count", [236, 300, 10_000])
def test_the_row_of_a_load_of_many_tables_is_read_back(count: int) -> None:
    ids = tuple(f"78012.{number}" for number in range(1, count + 1))
    for split in (None, Split(Csn(5), f"78012.{count + 1}", 7)):
        row = CheckpointRow(TrailPosition(0, 99), Csn(5), ids[-1], 1_000_000, 5, ids, split)
        columns = to_columns(row)
        assert len(columns.log_cmplt_xids or "") <= LONGEST_IDS
        assert from_columns(columns) == row


def test_too_many_ids_that_are_not_consecutive_are_refused() -> None:
    ids = tuple(f"{number * 7}.{number}" for number in range(400))
    with pytest.raises(ApplyError, match="400 transactions share CSN"):
        to_columns(CheckpointRow(TrailPosition(0, 99), Csn(5), ids[-1], 0, 0, ids))
