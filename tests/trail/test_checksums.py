"""Computing the checksums of many records at once finds the same damage as checking each record."""

from __future__ import annotations

import zlib
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ggshell.trail import layout
from ggshell.trail.decode import first_unfit

SMALLEST = 20


def a_record(body: bytes) -> bytes:
    total = len(body) + layout.UNSEALED
    return body + zlib.crc32(body).to_bytes(4, "little") + layout.TOKEN.pack(layout.TRAILER, 1, total)


def one_by_one(chunk: bytes, edges: list[int]) -> int | None:
    for row, (low, high) in enumerate(pairwise(edges)):
        body, seal = chunk[low : high - layout.UNSEALED], chunk[high - layout.UNSEALED : high - 4]
        if zlib.crc32(body) != int.from_bytes(seal, "little"):
            return row
    return None


def records_in_a_row(lengths: list[int], seed: int, before: bytes = b"") -> tuple[bytearray, list[int]]:
    generator = np.random.default_rng(seed)
    records = [a_record(generator.bytes(length - layout.UNSEALED)) for length in lengths]
    edges = np.cumsum([len(before), *map(len, records)]).tolist()
    return bytearray(before + b"".join(records) + b"what is not whole"), edges


@given(
    st.lists(st.integers(SMALLEST, 700), min_size=1, max_size=200),
    st.integers(0, 2**32),
    st.binary(max_size=40),
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), max_size=3),
)
def test_the_first_bad_checksum_is_the_one_that_checking_each_record_finds(
    lengths: list[int], seed: int, before: bytes, damages: list[tuple[float, int]]
) -> None:
    chunk, edges = records_in_a_row(lengths, seed, before)
    for place, change in damages:
        row = int(place * len(lengths))
        covered = edges[row + 1] - 4 - edges[row]
        chunk[edges[row] + int(place * 7919) % covered] ^= change
    assert first_unfit(bytes(chunk), np.array(edges)) == one_by_one(bytes(chunk), edges)


@pytest.mark.parametrize("lengths", [[65_535] * 40, [210] * 6_000, [SMALLEST, 65_535, 300] * 30, [SMALLEST] * 30_000])
def test_records_that_exceed_one_block_of_checksums_are_all_checked(lengths: list[int]) -> None:
    chunk, edges = records_in_a_row(lengths, 7)
    assert first_unfit(bytes(chunk), np.array(edges)) is None
    for row in (0, len(lengths) // 2, len(lengths) - 1):
        chunk[edges[row] + 11] ^= 0x10
        assert first_unfit(bytes(chunk), np.array(edges)) == row
        chunk[edges[row] + 11] ^= 0x10


def test_identical_damage_in_two_records_does_not_cancel_out() -> None:
    chunk, edges = records_in_a_row([210] * 500, 3)
    for row in (100, 101, 300):
        chunk[edges[row] + 60] ^= 0xFF
    assert first_unfit(bytes(chunk), np.array(edges)) == 100
