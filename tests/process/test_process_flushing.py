"""When trails are synced."""

from __future__ import annotations

import pytest

from ggshell.clock import FakeClock
from ggshell.process.flushing import FLOOD_ROWS, LONGEST, SHORTEST, Flushing


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def synced(clock: FakeClock, seconds: float) -> Flushing:
    """Just behind a sync that took so long."""
    flushing = Flushing(clock)
    flushing.wrote(1)
    began = clock.steady()
    clock.advance(seconds)
    flushing.flushed(began)
    return flushing


def test_nothing_is_synced_when_nothing_was_written(clock: FakeClock) -> None:
    flushing = Flushing(clock)
    clock.advance(10)
    assert not flushing.is_due(idle=True)
    assert not flushing.dirty


def test_a_lone_transaction_is_synced_at_once_even_behind_a_slow_sync(clock: FakeClock) -> None:
    flushing = synced(clock, 0.05)
    flushing.wrote(1)
    assert flushing.is_due(idle=True)


def test_while_more_follows_nothing_is_synced_before_its_time(clock: FakeClock) -> None:
    flushing = synced(clock, 0.001)
    flushing.wrote(1)
    assert not flushing.is_due(idle=False)
    clock.advance(flushing.seconds_left())
    assert flushing.is_due(idle=False)


@pytest.mark.parametrize(("took", "pause"), [(0.00001, SHORTEST), (0.001, 0.02), (1.0, LONGEST)])
def test_a_flood_waits_so_that_syncs_take_a_twentieth_of_the_time(clock: FakeClock, took: float, pause: float) -> None:
    flushing = synced(clock, took)
    flushing.wrote(FLOOD_ROWS)
    assert not flushing.is_due(idle=True)
    assert flushing.seconds_left() == pytest.approx(pause)
    clock.advance(pause)
    assert flushing.is_due(idle=True)
