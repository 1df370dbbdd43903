"""What a bench gives: figures with their peer, goal and verdict, as text or JSON lines."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple


class Figure(NamedTuple):
    """One measured case. ``ratio`` above 1 means ours is better; ``goal`` is the ratio asked for (None: shown only)."""

    bench: str
    case: str
    unit: str
    ours: float
    peer: float
    peer_name: str
    ratio: float
    goal: float | None

    @property
    def holds(self) -> bool | None:
        return None if self.goal is None else self.ratio >= self.goal

    def as_json(self) -> str:
        values = {
            name: round(value, 4) if isinstance(value, float) else value for name, value in self._asdict().items()
        }
        return json.dumps({**values, "holds": self.holds})

    def __str__(self) -> str:
        verdict = {
            None: "",
            True: f"  goal {self.goal:g} holds" if self.goal else "",
            False: f"  goal {self.goal} MISSED",
        }
        return (
            f"{self.bench:<9}{self.case:<22}{_number(self.ours):>12} {self.unit:<7}"
            f"{_number(self.peer):>12}  {self.peer_name:<26}ratio {self.ratio:5.2f}{verdict[self.holds]}"
        )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:,.2f}"


def more_is_better(
    bench: str, case: str, unit: str, ours: Sequence[float], peer: Sequence[float], peer_name: str, goal: float | None
) -> Figure:
    """A rate: the ratio is ours to the peer's."""
    mine, theirs = statistics.median(ours), statistics.median(peer)
    return Figure(bench, case, unit, mine, theirs, peer_name, mine / theirs, goal)


def less_is_better(
    bench: str, case: str, unit: str, ours: Sequence[float], peer: Sequence[float], peer_name: str, goal: float | None
) -> Figure:
    """A time or a size: the ratio is the peer's to ours."""
    mine, theirs = statistics.median(ours), statistics.median(peer)
    return Figure(bench, case, unit, mine, theirs, peer_name, theirs / mine, goal)


def worst_judged(
    bench: str,
    case: str,
    unit: str,
    ours: Sequence[float],
    peer: Sequence[float],
    peer_name: str,
    goal: float | None,
    *,
    less: bool = False,
) -> list[Figure]:
    """One figure for each round, the best first; only the worst one, the last, is judged.

    ``peer``: its values by round, or one for all rounds. ``less``: the figures are times or sizes."""
    theirs = [*peer] * (len(ours) if len(peer) == 1 else 1)
    found = sorted(
        ((each / mine if less else mine / each, mine, each) for mine, each in zip(ours, theirs, strict=True))
    )
    judged = [
        Figure(bench, case, unit, mine, each, peer_name, ratio, None if number else goal)
        for number, (ratio, mine, each) in enumerate(found)
    ]
    return judged[::-1]


def alternate(rounds: int, *sides: Callable[[int], float]) -> list[list[float]]:
    """Run every side once a round, the order turned from round to round; each side's figures."""
    found: list[list[float]] = [[] for _ in sides]
    for number in range(rounds):
        order = list(range(len(sides)))
        for side in order[number % len(order) :] + order[: number % len(order)]:
            found[side].append(sides[side](number))
    return found


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which ``share`` (0..1) of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def machine() -> str:
    """The machine's size, for the line above the figures."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return f"{os.cpu_count()} cores, {memory:.0f} GB, {system}"
