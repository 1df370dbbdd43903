"""Batches of a stream begin as late as the latency allows, and never later."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadMaxBytes
from trail_samples import random_transactions, trail_in, write_trail

from ggshell.clock import FakeClock
from ggshell.query import source
from ggshell.query.batch_timing import LOOK_SECONDS, BatchTiming
from ggshell.query.source import TrailStreamReader
from ggshell.query.trail_read import read_of


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def started(latency: float, clock: FakeClock) -> BatchTiming:
    """The timing of a stream that has found no rows yet."""
    timing = BatchTiming(latency, clock)
    timing.nothing()
    return timing


def seconds_until_a_batch(timing: BatchTiming, clock: FakeClock) -> float:
    """Look as often as Spark does; the seconds until a batch begins."""
    began = clock.steady()
    while not timing.begins(full=False):
        clock.advance(LOOK_SECONDS)
    return clock.steady() - began


def test_without_a_latency_each_batch_begins_at_once(clock: FakeClock) -> None:
    timing = BatchTiming(0, clock)
    assert timing.begins(full=False)
    assert timing.begins(full=False)


def test_rows_from_before_the_start_do_not_wait(clock: FakeClock) -> None:
    assert BatchTiming(900, clock).begins(full=False)


def test_rows_wait_for_more_as_long_as_the_latency_allows(clock: FakeClock) -> None:
    timing = BatchTiming(10, clock)
    for _ in range(5):
        clock.advance(LOOK_SECONDS)
        timing.nothing()
    clock.advance(LOOK_SECONDS)  # rows arrive in this time, perhaps at its beginning
    assert seconds_until_a_batch(timing, clock) == 10 - 2 * LOOK_SECONDS


def test_a_batch_begins_earlier_if_the_last_one_took_long(clock: FakeClock) -> None:
    timing = started(10, clock)
    seconds_until_a_batch(timing, clock)
    clock.advance(3)
    timing.nothing()
    clock.advance(LOOK_SECONDS)
    assert seconds_until_a_batch(timing, clock) == 10 - 3 - 2 * LOOK_SECONDS


def test_rows_that_arrived_while_a_batch_ran_are_as_old_as_the_batch(clock: FakeClock) -> None:
    timing = started(10, clock)
    seconds_until_a_batch(timing, clock)
    clock.advance(4)
    assert seconds_until_a_batch(timing, clock) == 10 - 2 * 4 - LOOK_SECONDS


def test_a_full_batch_does_not_wait(clock: FakeClock) -> None:
    timing = started(900, clock)
    assert not timing.begins(full=False)
    assert timing.begins(full=True)


def test_small_batches_do_not_follow_each_other_faster_than_their_interval(clock: FakeClock) -> None:
    timing = BatchTiming(0, clock, interval=1)
    assert timing.begins(full=False)
    clock.advance(LOOK_SECONDS)
    assert timing.begins(full=True)
    assert seconds_until_a_batch(timing, clock) == 1
    clock.advance(5)
    timing.nothing()
    assert timing.begins(full=False)


def test_batches_that_take_longer_than_the_latency_follow_each_other(clock: FakeClock) -> None:
    timing = started(5, clock)
    seconds_until_a_batch(timing, clock)
    clock.advance(60)
    assert timing.begins(full=False)


def test_a_stream_holds_its_rows_back(tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "SystemClock", lambda: clock)
    trail = trail_in(tmp_path)
    write_trail(trail, random_transactions(1, 20))
    options = {"path": str(trail), "contents": "splits", "latency": "5"}
    reader = TrailStreamReader(options, read_of(options))
    end = reader.latestOffset(reader.initialOffset(), ReadMaxBytes(1 << 30))
    assert reader.latestOffset(end, ReadMaxBytes(1 << 30)) == end
    begin = reader.initialOffset()
    assert reader.latestOffset(begin, ReadMaxBytes(1 << 30)) == begin
    assert reader.latestOffset(begin, ReadMaxBytes(1)) != begin  # a full batch
    clock.advance(5)
    assert reader.latestOffset(begin, ReadMaxBytes(1 << 30)) == end == reader.reportLatestOffset()
    reader.stop()
