"""A long run under steady load, in which the target stops and comes back: no process may need more and more.

A round takes ten seconds: 180 rounds are half an hour. Memory is judged after the first five minutes, file descriptors after
the first round.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from benches.ground import Failed

from faultruns.chain import MEMBERS, Chain
from faultruns.memory import kilobytes, proc_folder

UP_SECONDS: Final = 8.0
DOWN_SECONDS: Final = 2.0
ROUND_SECONDS: Final = UP_SECONDS + DOWN_SECONDS
WARM_ROUNDS: Final = round(300 / ROUND_SECONDS)
"""In the first five minutes, caches fill and the allocator finds its size."""
STEEPEST: Final = 1.0
"""Megabytes an hour."""
LEAST: Final = 1.0
"""Megabytes: a smaller growth, from the first to the last sample, may be chance."""
MOST_DESCRIPTORS: Final = 2
"""How many more a process may have open at the end: a connection or a file that is just being changed for another one."""


class Need(NamedTuple):
    """What a process needs at one moment: private memory in megabytes, and open file descriptors."""

    megabytes: float
    descriptors: int


def missing() -> str:
    """The servers are our own."""
    return ""


def prepare(ground: Chain) -> None:
    """Nothing is needed."""


def spoil(ground: Chain, rounds: int, seed: int) -> None:
    """A round: the load goes on, needs are noted, the target stops for a moment. Raises Failed when a need grows."""
    south = dict(ground.servers.both())["south"]
    needs: dict[str, list[Need]] = {name: [] for name in MEMBERS}
    for _ in range(rounds):
        ground.wait(UP_SECONDS)
        for name, found in needs.items():
            found.append(_need(ground, name))
        south.stop("fast")
        ground.wait(DOWN_SECONDS)
        ground.servers.start()
    ground.require_alive()
    ground.notes += [f"{name} {_shown(found)}" for name, found in needs.items()]
    grown = [f"{name} {text}" for name, found in needs.items() if (text := growth(found))]
    if grown:
        raise Failed("; ".join(grown))


def growth(needs: Sequence[Need]) -> str:
    """Say what grows from round to round; empty if nothing does."""
    if len(needs) > 1 and needs[-1].descriptors > needs[0].descriptors + MOST_DESCRIPTORS:
        return f"had {needs[0].descriptors} file descriptors open at first, {needs[-1].descriptors} in the end"
    warm = needs[WARM_ROUNDS:]
    slope = slope_of(warm)
    risen = slope * (len(warm) - 1) * ROUND_SECONDS / 3600
    return f"grows by {slope:.1f} MB an hour" if slope > STEEPEST and risen > LEAST else ""


def slope_of(needs: Sequence[Need]) -> float:
    """Return the megabytes that are added in an hour, by the line closest to all samples."""
    if len(needs) < 2:
        return 0.0
    hours = np.arange(len(needs)) * ROUND_SECONDS / 3600
    return float(np.polyfit(hours, [each.megabytes for each in needs], 1)[0])


def _shown(needs: Sequence[Need]) -> str:
    first, last = needs[0], needs[-1]
    warm = needs[WARM_ROUNDS:]
    slope = f", {slope_of(warm):+.1f} MB an hour" if len(warm) > 1 else ""
    return f"{first.megabytes:.0f} to {last.megabytes:.0f} MB{slope}, {last.descriptors} descriptors"


def _need(ground: Chain, member: str) -> Need:
    """What a process needs now. Raises Failed if it does not run."""
    folder = proc_folder(ground, member)
    return Need(kilobytes(folder, "RssAnon") / 1024, len(list((folder / "fd").iterdir())))
