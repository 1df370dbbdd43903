"""Hints for words that nobody knows."""

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
def test_the_nearest_word_is_named_letters_in_another_order_first(word: str, hint: str) -> None:
    assert did_you_mean(word, WORDS) == hint
