"""Durations: each form that is read, and each that is shown, with the values at which a unit changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ggshell.durations import (
    DAY,
    HOUR,
    MICROSECONDS,
    MINUTE,
    PERIODS,
    WEEK,
    clock_text,
    days_text,
    interval_text,
    milliseconds_text,
    read_hours,
    read_interval,
    rough_text,
    seconds_text,
    whole_seconds,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("600", 600), ("600sec", 600), ("20M", 20 * MINUTE), ("4h", 4 * HOUR), ("10 HOURS", 10 * HOUR), (" 2 weeks ", 2 * WEEK),
        ("1.5 DAYS", 1.5 * DAY), ("0", 0),
    ],
)  # fmt: skip
def test_an_interval_is_read_in_seconds(text: str, seconds: float) -> None:
    assert read_interval(text) == seconds


@pytest.mark.parametrize("text", ["", "M", "4 fortnights", "-1H", "1e3", "1.", "101 YEARS", "36526D"])
def test_what_is_not_an_interval_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match="is not a valid interval: use, for example, 600sec, 20M or 4H"):
        read_interval(text)


def test_a_number_without_a_unit_may_mean_hours() -> None:
    assert [read_hours(text) for text in ("24", "1.5", "90M")] == [24 * HOUR, 1.5 * HOUR, 90 * MINUTE]


def test_a_lag_is_shown_as_a_clock_whose_hours_do_not_end() -> None:
    shown = [clock_text(seconds * MICROSECONDS) for seconds in (0, 59, 3661, 842 * HOUR)]
    assert shown == ["00:00:00", "00:00:59", "01:01:01", "842:00:00"]
    assert (clock_text(None), clock_text(999_999)) == ("", "00:00:00")
    assert [whole_seconds(lag) for lag in (None, 999_999, 1_000_000)] == [None, 0, 1]


def test_logdump_shows_days_and_microseconds() -> None:
    assert days_text(90_061_001_002) == "1-01:01:01.001.002"


def test_a_measured_duration_has_three_digits() -> None:
    assert [seconds_text(value) for value in (None, 0.0, 0.0123, 0.9996, 1.5, 90, 600, DAY, -0.25)] == [
        "–", "0", "12.3 ms", "1 s", "1.5 s", "90 s", "10 min", "24 h", "-250 ms",
    ]  # fmt: skip
    assert milliseconds_text(0.25) == "0.250 s"


def test_an_estimate_is_a_whole_number_of_at_least_one_second() -> None:
    assert [rough_text(value) for value in (0.1, 7.9, 119, 1000, 100_000)] == ["1 s", "8 s", "119 s", "17 min", "28 h"]


@given(st.integers(1, 96 * 60))
def test_an_interval_of_a_parameter_file_is_read_back(minutes: int) -> None:
    assert read_interval(interval_text(minutes * MINUTE)) == minutes * MINUTE
    assert read_interval(interval_text(minutes * MINUTE, "HOURS", "MINUTES")) == minutes * MINUTE


def test_whole_hours_are_shown_in_hours() -> None:
    assert [interval_text(seconds) for seconds in (4 * HOUR, 90 * MINUTE, 20 * MINUTE)] == ["4H", "90M", "20M"]


def test_every_period_of_by_is_one_of_the_units() -> None:
    assert PERIODS == {"MINUTE": MINUTE, "HOUR": HOUR, "DAY": DAY}
