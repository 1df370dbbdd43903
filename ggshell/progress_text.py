"""How far work is, as every command, status and report says it: ``12,000 of 50,000 rows, 24 %, 8 s left``."""

from __future__ import annotations

from ggshell.durations import rough_text

_SHORTEST = 1.0
"""In seconds: before that, the rate says nothing about the time left."""


def progress_text(done: int, whole: int, noun: str, seconds: float = 0.0, *, estimated: bool = False) -> str:
    """Format progress.

    ``whole``: how much there is, 0 if unknown; ``estimated``: this is an estimate. ``seconds``: how long it took so far, 0 if
    unknown; the time left assumes the same rate.
    """
    if whole <= 0 or (estimated and done > whole):
        return f"{done:,} {noun}"
    text = f"{done:,} of {'about ' if estimated else ''}{whole:,} {noun}, {done * 100 // whole} %"
    if seconds < _SHORTEST or not 0 < done < whole:
        return text
    return f"{text}, {rough_text(seconds * (whole - done) / done)} left"
