"""Pieces of any length are copied to their places, and no other byte is changed."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ggshell.record.ragged import copy_pieces

pieces = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0, 1, 4, 5, 60]) | st.integers(0, 30)), max_size=80)


@given(pieces)
def test_every_piece_is_copied_to_its_place(given_pieces: list[tuple[int, int]]) -> None:
    gaps = np.array([gap for gap, _ in given_pieces], dtype=np.int64)
    length = np.array([size for _, size in given_pieces], dtype=np.int64)
    to = np.cumsum(gaps + length) - length
    start = np.cumsum(length) - length
    order = np.random.default_rng(len(given_pieces)).permutation(len(given_pieces))
    source = bytes(number % 255 + 1 for number in range(int(length.sum())))
    out = bytearray(int((gaps + length).sum()) + 3)
    expected = bytearray(out)
    for place, first, size in zip(to.tolist(), start.tolist(), length.tolist(), strict=True):
        expected[place : place + size] = source[first : first + size]
    copy_pieces(out, to[order], source, start[order], length[order])
    assert out == expected
