"""Did you mean …"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint naming the nearest known word, or the one that begins so; empty when none is near."""
    words = list(known)
    begins = [each for each in words if each.startswith(word)]
    swapped = [each for each in words if sorted(each) == sorted(word)]  # letters in another order: the likeliest slip
    near = begins if len(begins) == 1 else swapped or difflib.get_close_matches(word, words, n=1, cutoff=0.7)
    return f"did you mean {near[0]}?" if near else ""
