"""Hints for unknown words."""

from __future__ import annotations

import pytest

from ggshell.language.suggest import did_you_mean

WORDS = ("START", "STATS", "STATUS", "STOP", "SEND", "MEGABYTES")


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("STRAT", "did you mean START?"),
        ("MEGABITES", "did you mean MEGABYTES?"),
        ("SEN", "did you mean SEND?"),
        ("XYZZY", ""),
    ],
)
def test_the_nearest_word_is_suggested_with_swapped_letters_first(word: str, hint: str) -> None:
    assert did_you_mean(word, WORDS) == hint
