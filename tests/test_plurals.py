"""A count has its noun in the right form."""

from __future__ import annotations

import pytest

from ggshell.plurals import counted


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 files"), (1, "1 file"), (2, "2 files"), (1_000, "1,000 files"), (1_001, "1,001 files")]
)
def test_only_one_is_singular(number: int, text: str) -> None:
    assert counted(number, "file") == text
