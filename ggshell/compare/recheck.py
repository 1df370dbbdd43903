"""Which differences are real: a change that is on its way makes a row differ for as long as the lag.

A row is looked at again after the lag.  1. Is it the same on both sides, it was in flight.  2. Is it as it was in the source
when it was seen first, so that the target had the time and still differs, it is a difference.  3. Else the source has changed
it meanwhile, and it is looked at once more after the lag; a row that never rests is told as in flight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ggshell.compare.drill import Difference, Pair, differences

BATCH = 1000


def confirmed(
    pair: Pair, found: Sequence[Difference], lag: float, wait: Callable[[float], bool], rounds: int = 5
) -> list[Difference]:
    """The differences that are real, and those that never rested.

    ``lag`` in seconds, ``wait`` pauses for so long; true when it is to end, and what is left counts as in flight.
    """
    real: list[Difference] = []
    open_ = list(found)
    for _ in range(rounds):
        if not open_ or wait(lag):
            break
        again = _look(pair, open_)
        known = {each.key: each for each in open_}
        real += [each for each in again if each.source == known[each.key].source]
        open_ = [each for each in again if each.source != known[each.key].source]
    return [*real, *(replace(each, in_flight=True) for each in open_)]


def _look(pair: Pair, found: Sequence[Difference]) -> list[Difference]:
    """Those that still differ, as they are now."""
    # The source is read before the target, so that what arrives between is no difference.
    again: list[Difference] = []
    for first in range(0, len(found), BATCH):
        keys = [each.key for each in found[first : first + BATCH]]
        source = pair.source.rows_of(keys)
        target = pair.target.rows_of(keys)
        wanted = set(keys)
        again += [each for each in differences(source, target) if each.key in wanted]
    return again
