"""When a parallel Replicat uses its appliers: it measures rates under load and keeps the faster way."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ggshell.clock import FakeClock
from ggshell.pipeline.apply.parallelism import (
    FIRST_PAUSE,
    FIRST_TRIAL,
    LONGEST_PAUSE,
    MEASURED_SECONDS,
    ParallelismChoice,
)


class Load:
    """A load without a pause. ``one``, ``several``: operations a second each way; ``share``: the process's own time."""

    def __init__(self, one: float, several: float, share: float = 0.1, *, begins_with_several: bool = False) -> None:
        self.rates = {False: one, True: several}
        self.share = share
        self.clock = FakeClock()
        self.used = 0.0
        self.counts = {False: 0.0, True: 0.0}
        self.choice = ParallelismChoice(self.clock, lambda: self.used, several=begins_with_several)

    def run(self, seconds: float, step: float = 0.05) -> float:
        """Apply for a time; return the share of it during which several appliers worked."""
        several = 0.0
        for _ in range(round(seconds / step)):
            way = self.choice.several
            several += way
            self.clock.advance(step)
            self.used += step * self.share
            self.counts[way] += self.rates[way] * step
            self.choice.applied(int(self.counts[way]))
        return several * step / seconds


def test_several_appliers_are_kept_where_they_are_faster() -> None:
    load = Load(one=1_000, several=3_000)
    load.run(FIRST_TRIAL + 4 * MEASURED_SECONDS)
    assert load.choice.several
    assert load.run(60) > 0.9


def test_one_connection_is_kept_where_several_appliers_are_slower() -> None:
    load = Load(one=30_000, several=10_000)
    assert load.run(120) < 0.05


def test_equally_fast_ways_mean_one_connection() -> None:
    load = Load(one=10_000, several=10_500)
    load.run(FIRST_TRIAL + 4 * MEASURED_SECONDS)
    assert not load.choice.several


def test_several_appliers_are_not_tried_while_this_process_is_the_limit() -> None:
    assert Load(one=10_000, several=30_000, share=0.9).run(120) == 0


def test_a_way_that_lost_is_tried_less_and_less_often() -> None:
    load = Load(one=10_000, several=1_000)
    begins, way = [], False
    for _ in range(40_000):
        load.run(0.05)
        if load.choice.several and not way:
            begins.append(load.clock.steady())
        way = load.choice.several
    pauses = [after - before for before, after in pairwise(begins)]
    assert pauses == sorted(pauses)
    assert FIRST_PAUSE < pauses[0] < 3 * FIRST_PAUSE
    assert pauses[-1] <= LONGEST_PAUSE + 5


def test_the_choice_follows_a_target_that_becomes_slow_and_fast_again() -> None:
    load = Load(one=10_000, several=4_000)
    load.run(30)
    assert not load.choice.several
    load.rates = {False: 500, True: 2_000}
    load.run(60)
    assert load.choice.several
    load.rates = {False: 10_000, True: 4_000}
    load.run(60)
    assert not load.choice.several


def test_an_idle_replicat_does_not_change_its_way() -> None:
    load = Load(one=100, several=10_000)
    for _ in range(100):
        load.run(0.2)
        load.clock.advance(5)
        load.choice.idle()
    assert not load.choice.several


@pytest.mark.parametrize("rate", [0, 10])
def test_a_target_that_applies_almost_nothing_is_judged_after_a_limited_time(rate: int) -> None:
    load = Load(one=rate, several=1_000)
    load.run(10)
    assert load.choice.several
