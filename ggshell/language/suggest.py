"""Suggestions for misspelt words ("did you mean …?")."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint that names the nearest known word, or the only one that begins with the word. Empty if none is near."""
    import difflib

    words = list(known)
    begins = [each for each in words if each.startswith(word)]
    swapped = [
        each for each in words if sorted(each) == sorted(word)
    ]  # the same letters in another order: the likeliest typing error
    near = begins if len(begins) == 1 else swapped or difflib.get_close_matches(word, words, n=1, cutoff=0.7)
    return f"did you mean {near[0]}?" if near else ""
