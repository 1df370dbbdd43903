"""Latency with a path between Extract and Replicat, compared with latency without one; both in each round."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager

from benches.figures import Figure, alternate, less_is_better, percentile
from benches.ground import Ground, ground
from benches.latency import RATE, measure
from benches.two_homes import two_homes
from ggshell.demo.cli import store_aliases


def latency_figure(rounds: int, quick: bool) -> Figure:
    count = RATE * (3 if quick else 10)
    with ground() as place, two_homes(place.home) as homes:
        place.extract("ext", "./dirdat/ea")
        place.checkpoint_table()
        place.replicat("rep", "./dirdat/ea")
        homes.add_path("dp1", "ea", "da")
        store_aliases(place.servers, homes.target)
        there = copy.copy(place)
        there.home = homes.target
        there.replicat("far", "./dirdat/da")
        ours, peer = alternate(
            rounds,
            lambda _: _milliseconds(place, there, count, ["DISTPATH dp1"]),
            lambda _: _milliseconds(place, place, count, []),
        )
    return less_is_better("path", "commit to visible, p50", "ms", ours, peer, "no path", 0.67)


def _milliseconds(place: Ground, applying: Ground, count: int, between: list[str]) -> float:
    """The median, with the Replicat of one home and what runs in between."""
    with _running(place, "EXTRACT ext", *between), _running(applying, "REPLICAT *"):
        taken = measure(place, count)
    with place.connect("south") as connection:  # the other Replicat has not applied these rows
        connection.execute("TRUNCATE bench.rows")
    return 1000 * percentile(taken, 0.5)


@contextmanager
def _running(place: Ground, *processes: str) -> Iterator[None]:
    place.obey(*(f"START {each}" for each in processes))
    try:
        yield
    finally:
        place.obey(*(f"STOP {each}" for each in processes))
