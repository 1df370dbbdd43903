"""What a bench measures: figures with every round of ours and of the peer, and the verdict of the worst round."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

LIMIT_NAME: Final = "the limit"
"""The peer of a figure that is compared with a limit."""


class Figure(NamedTuple):
    """One case, measured in rounds. A ratio above 1 means that ours is better.

    ``ours`` and ``peer``: the values by round; a peer that is a limit has the same value in each. ``less``: smaller values are
    better. ``goal``: the ratio that the worst round must reach; None: the figure is only shown.
    """

    bench: str
    case: str
    unit: str
    ours: tuple[float, ...]
    peer: tuple[float, ...]
    peer_name: str
    less: bool
    goal: float | None

    @property
    def ratios(self) -> list[float]:
        """The ratio of each round."""
        pairs = zip(self.ours, self.peer, strict=True)
        return [peer / ours if self.less else ours / peer for ours, peer in pairs]

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    @property
    def worst(self) -> float:
        return min(self.ratios)

    @property
    def spread(self) -> float:
        """The distance of the best and the worst ratio as a share of the median."""
        return (max(self.ratios) - self.worst) / self.ratio

    @property
    def holds(self) -> bool | None:
        return None if self.goal is None else self.worst >= self.goal

    @property
    def against_limit(self) -> bool:
        """Whether the peer is a constant: a limit or a goal, not a measurement."""
        return len(set(self.peer)) == 1

    def as_json(self) -> str:
        """One line with the rounds and what follows from them."""
        values = {
            "bench": self.bench,
            "case": self.case,
            "unit": self.unit,
            "ours": significant(statistics.median(self.ours)),
            "peer": significant(statistics.median(self.peer)),
            "peer_name": self.peer_name,
            "ratio": significant(self.ratio),
            "worst": significant(self.worst),
            "spread": significant(self.spread),
            "goal": self.goal,
            "holds": self.holds,
            "rounds": [[significant(each) for each in pair] for pair in zip(self.ours, self.peer, strict=True)],
        }
        return json.dumps(values)

    def __str__(self) -> str:
        verdict = {
            None: "",
            True: f"   goal {self.goal:g} holds" if self.goal else "",
            False: f"   goal {self.goal} MISSED",
        }
        peer = [self.peer[0]] if self.against_limit else [*self.peer]
        rows = [("ours", [*self.ours], number), (self.peer_name, peer, number), ("ratio", self.ratios, "{:.2f}".format)]
        lines = [f"{self.bench}: {self.case}, {self.unit}"]
        lines += [f"  {name:<28}" + "".join(f"{shown(each):>12}" for each in values) for name, values, shown in rows]
        summary = f"median {self.ratio:.2f}, worst {self.worst:.2f}, spread {self.spread:.0%}"
        return "\n".join([*lines, f"  {summary}{verdict[self.holds]}"])


def number(value: float) -> str:
    """A value with as many digits as a reader needs."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def significant(value: float) -> float:
    """A value with five significant digits, as results files keep it."""
    return float(f"{value:.5g}")


def more_is_better(
    bench: str, case: str, unit: str, ours: Sequence[float], peer: Sequence[float], peer_name: str, goal: float | None
) -> Figure:
    """A rate: the ratio is ours to the peer's. ``peer``: its values by round, or one for all rounds."""
    return Figure(bench, case, unit, tuple(ours), _by_round(peer, len(ours)), peer_name, less=False, goal=goal)


def less_is_better(
    bench: str, case: str, unit: str, ours: Sequence[float], peer: Sequence[float], peer_name: str, goal: float | None
) -> Figure:
    """A time or a size: the ratio is the peer's to ours. ``peer``: its values by round, or one for all rounds."""
    return Figure(bench, case, unit, tuple(ours), _by_round(peer, len(ours)), peer_name, less=True, goal=goal)


def _by_round(peer: Sequence[float], rounds: int) -> tuple[float, ...]:
    return tuple(peer) if len(peer) == rounds else (*peer,) * rounds


def alternate(rounds: int, *sides: Callable[[int], float]) -> list[list[float]]:
    """Run every side once a round, the order turned from round to round; each side's figures."""
    found: list[list[float]] = [[] for _ in sides]
    for turn in range(rounds):
        order = list(range(len(sides)))
        for side in order[turn % len(order) :] + order[: turn % len(order)]:
            found[side].append(sides[side](turn))
    return found


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which ``share`` (0..1) of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
