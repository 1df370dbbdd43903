"""Lag arithmetic: the parts and their total, bars, percentiles, objectives, and the uncertainty of the clocks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ggshell.monitoring.clock_offset import Offset, between_clocks, estimate, set_right
from ggshell.monitoring.heartbeat_lag import Lag, Parts, bar, lag_of, negative_parts, parts_between, path_text
from ggshell.monitoring.spreads import Arrival, Objective, objectives, percentile, spreads, with_overdue
from ggshell.pipeline.heartbeat.row import Beat

SECOND = 1_000_000
moments = st.integers(-(10**12), 10**12)


@given(moments, st.lists(st.none() | moments, min_size=3, max_size=3), moments)
def test_the_parts_add_up_to_the_total(sent: int, hops: list[int | None], received: int) -> None:
    total = parts_between((sent, *hops, received)).total
    assert total == pytest.approx((received - sent) / SECOND, abs=1e-6)


def test_without_a_distribution_path_reading_is_measured_from_extract() -> None:
    assert parts_between((0, SECOND, None, 3 * SECOND, 4 * SECOND)) == Parts(1, None, 2, 1)
    assert parts_between((None, 1, 2, 3, 4)).total is None


def test_a_clock_that_is_ahead_gives_a_negative_part() -> None:
    parts = parts_between((0, SECOND, 121 * SECOND, 2 * SECOND, 3 * SECOND))
    assert negative_parts(parts) == [("read", -119.0)]
    assert parts.total == 3


@given(st.lists(st.none() | st.floats(-10, 1000), min_size=4, max_size=4), st.integers(8, 60))
def test_a_bar_has_the_requested_width_and_a_letter_for_each_hop_that_took_time(
    values: list[float | None], width: int
) -> None:
    parts = Parts(*values)
    text = bar(parts, width)
    assert len(text) == width
    for mark, part in zip("epra", parts, strict=True):
        assert (mark in text) is (part is not None and part > 0)


def test_the_path_text_leaves_out_missing_hops() -> None:
    assert path_text("E", "P,Q", "R") == "==> E ==> P,Q ==> R ==>"
    assert path_text("E", None, "R") == "==> E ==> R ==>"
    assert path_text(None, None, None) == ""


def arrival(seconds: float, lag: float) -> Arrival:
    return Arrival("north", "p", round(seconds * SECOND), Parts(lag, None, 0.0, 0.0))


def test_percentiles_are_observed_values() -> None:
    ordered = [float(number) for number in range(1, 101)]
    assert [percentile(ordered, share) for share in (0.5, 0.95, 0.99, 1)] == [50, 95, 99, 100]
    assert percentile([7.0], 0.5) == 7


def test_lag_is_grouped_by_period_path_and_hop() -> None:
    found = spreads([arrival(1, 5), arrival(59, 1), arrival(61, 9)], "MINUTE")
    totals = [each for each in found if each.hop == "total"]
    assert [(each.begin, each.beats, each.p50, each.longest) for each in totals] == [
        (0, 2, 1.0, 5.0),
        (60 * SECOND, 1, 9.0, 9.0),
    ]
    assert {each.hop for each in found} == {"extract", "read", "apply", "total"}


def test_an_objective_reports_the_remaining_error_budget() -> None:
    (found,) = objectives([arrival(n, 3 if n < 2 else 1) for n in range(1000)], 0.99, 2)
    assert (found.beats, found.within, found.held) == (1000, 998, True)
    assert found.share == 0.998
    assert found.left == pytest.approx(0.8)
    (missed,) = objectives([arrival(n, 3 if n < 20 else 1) for n in range(1000)], 0.99, 2)
    assert not missed.held
    assert missed.left == pytest.approx(-1)


def lag(sent: int, now: int, received: int | None = None) -> Lag:
    """The lag of a heartbeat that was sent at a second."""
    beat = Beat("south", 0, "north", "EXT1", None, "REP1", sent * SECOND)
    return lag_of(beat, received, now * SECOND)


def test_heartbeats_that_have_not_arrived_are_late() -> None:
    """Regression: while replication was interrupted, all heartbeats that had arrived were in time."""
    recent = [lag(second, 100) for second in (0, 10, 20, 30, 40)]
    before = [Objective("north", "==> EXT1 ==> REP1 ==>", 0.9, 5, 5, 5)]
    (held,) = with_overdue(before, [lag(40, 54)], recent, 0.9, 5)
    assert (held.overdue, held.held) == (0, True)
    (missed,) = with_overdue(before, [lag(40, 100)], recent, 0.9, 5)
    assert (missed.overdue, missed.due, missed.held, missed.share) == (5, 10, False, 0.5)


def test_a_path_without_arrivals_in_the_window_is_not_left_out() -> None:
    (missed,) = with_overdue([], [lag(0, 605)], [lag(0, 605)], 0.9, 5)
    assert (missed.remote, missed.beats, missed.overdue, missed.held) == ("north", 0, 10, False)


@given(st.floats(-1000, 1000), st.lists(st.tuples(st.floats(0, 50), st.floats(0, 50)), min_size=1, max_size=5))
def test_the_true_clock_difference_and_lag_lie_within_the_reported_error(
    lead: float, times: list[tuple[float, float]]
) -> None:
    offset = estimate([there - lead for there, _ in times], [back + lead for _, back in times])
    assert offset is not None
    assert abs(offset.lead - lead) <= offset.error + 1e-9
    truth, shown = times[0][0], times[0][0] - lead
    assert abs(set_right(shown, offset).seconds - truth) <= offset.error + 1e-9


def test_one_direction_alone_does_not_give_a_clock_difference() -> None:
    assert estimate([1.0], []) is None
    assert Offset(120, 1).certain
    assert not Offset(0.5, 1).certain


def test_the_clock_difference_is_estimated_from_the_times_around_a_query() -> None:
    assert between_clocks(10 * SECOND, 12 * SECOND, 14 * SECOND) == Offset(3.0, 1.0)
