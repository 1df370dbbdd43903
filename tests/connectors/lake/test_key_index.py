"""The rows of keys are found in data files, and an index that cannot be trusted is made again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ggshell.connectors.lake.key_index import KeyHashes, KeyIndex, KeyIndexes, bucket_starts, hash_keys, read_index

FILES = {"a.parquet": [f"k{number}" for number in range(1000)], "b.parquet": ["", "é", "k5", "last"], "c.parquet": []}


class Reads:
    """The keys of the data files in parts, and the files that were read."""

    def __init__(self) -> None:
        self.files: list[str] = []

    def __call__(self, file: str) -> Iterator[pa.Array]:
        self.files.append(file)
        keys = pa.array(FILES[file], pa.string())
        for start in range(0, len(keys), 300):
            yield keys[start : start + 300]


@pytest.fixture
def reads() -> Reads:
    return Reads()


def found(indexes: KeyIndexes, reads: Reads, *keys: str) -> set[tuple[str, str, int]]:
    hits = indexes.find(pa.array(keys, pa.string()), list(FILES), reads)
    return {
        (file, keys[key], position)
        for file, hit in hits.items()
        for key, position in zip(hit.keys.tolist(), hit.positions.tolist(), strict=True)
    }


def test_every_row_of_a_key_is_found(tmp_path: Path, reads: Reads) -> None:
    indexes = KeyIndexes(tmp_path / "keys")
    assert found(indexes, reads, "k999", "none", "k5", "") == {
        ("a.parquet", "k999", 999),
        ("a.parquet", "k5", 5),
        ("b.parquet", "k5", 2),
        ("b.parquet", "", 0),
    }
    assert found(indexes, reads, *FILES["a.parquet"]) >= {("a.parquet", f"k{at}", at) for at in range(1000)}


def test_a_second_process_uses_the_indexes_of_the_first(tmp_path: Path, reads: Reads) -> None:
    for _ in range(2):
        assert found(KeyIndexes(tmp_path / "keys"), reads, "last") == {("b.parquet", "last", 3)}
    assert sorted(reads.files) == sorted(FILES)


@pytest.mark.parametrize("damage", ["missing", "empty", "torn", "zeros", "bit", "of another file", "a folder's file"])
def test_an_index_that_cannot_be_trusted_is_made_again(damage: str, tmp_path: Path, reads: Reads) -> None:
    folder = tmp_path / "keys"
    found(KeyIndexes(folder), reads, "last")
    assert len(list(folder.iterdir())) == 3
    for path in folder.iterdir():
        data = path.read_bytes()
        match damage:
            case "missing":
                path.unlink()
            case "empty":
                path.write_bytes(b"")
            case "torn":
                path.write_bytes(data[: len(data) // 2])
            case "zeros":
                path.write_bytes(data[:40] + bytes(len(data) - 40) if len(data) > 40 else bytes(len(data)))
            case "bit":
                path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
            case "of another file":
                other = max(folder.iterdir(), key=lambda each: each.stat().st_size)
                if other != path:
                    path.write_bytes(other.read_bytes())
            case _:
                path.write_bytes(b"x" * 5000)
    assert found(KeyIndexes(folder), reads, "k999", "last") == {("a.parquet", "k999", 999), ("b.parquet", "last", 3)}


def test_only_the_indexes_of_live_files_are_retained(tmp_path: Path, reads: Reads) -> None:
    indexes = KeyIndexes(tmp_path / "keys")
    found(indexes, reads, "last")
    indexes.retain(["a.parquet"])
    (left,) = (tmp_path / "keys").iterdir()
    index = read_index(left, "a.parquet")
    assert index is not None
    assert index.rows == 1000
    assert read_index(left, "b.parquet") is None


def test_keys_with_the_same_upper_half_of_their_hash_are_told_apart() -> None:
    upper, lower = np.array([5, 7, 7, 7], "<u8"), np.array([1, 1, 2, 2], "<u8")
    index = KeyIndex(upper, lower, np.array([40, 10, 30, 20], "<u4"), bucket_starts(upper))
    hits = index.find(KeyHashes(np.array([7, 7, 9], "<u8"), np.array([2, 3, 1], "<u8"), np.array([2, 0, 1])))
    assert sorted(zip(hits.keys.tolist(), hits.positions.tolist(), strict=True)) == [(2, 20), (2, 30)]


UPPER_HALVES = st.integers(0, 3) | st.integers(0, 2**64 - 1) | st.sampled_from([1 << 62, 1 << 63, 2**64 - 1])


@given(st.lists(UPPER_HALVES, max_size=40).map(sorted), st.lists(UPPER_HALVES, max_size=20).map(sorted))
def test_hashes_are_found_however_they_are_spread_over_the_buckets(held: list[int], wanted: list[int]) -> None:
    upper, asked = np.array(held, "<u8"), np.array(wanted, "<u8")
    index = KeyIndex(upper, np.zeros_like(upper), np.arange(len(held), dtype="<u4"), bucket_starts(upper))
    hits = index.find(KeyHashes(asked, np.zeros_like(asked), np.arange(len(wanted))))
    assert sorted(zip(hits.keys.tolist(), hits.positions.tolist(), strict=True)) == [
        (key, place) for key, hash_ in enumerate(wanted) for place, each in enumerate(held) if each == hash_
    ]


def test_hashes_are_ordered_and_know_their_key() -> None:
    keys = [f"key {number}" for number in range(50)]
    hashes = hash_keys([pa.array(keys[:20]), pa.array(keys[20:])])
    assert (np.diff(hashes.upper.astype(object)) >= 0).all()
    assert hash_keys([pa.array([keys[hashes.order[3]]])]).upper[0] == hashes.upper[3]
