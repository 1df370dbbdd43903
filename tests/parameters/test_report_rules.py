"""Recurring times in local time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ggshell.clock import from_datetime, to_datetime
from ggshell.errors import StatementError
from ggshell.language import grammar
from ggshell.parameters.report_rules import Schedule, schedule
from ggshell.quantities import DAYS


@pytest.fixture(autouse=True, scope="module")
def new_york() -> Iterator[None]:
    patch = pytest.MonkeyPatch()
    patch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    patch.undo()
    time.tzset()


def at(text: str) -> int:
    return from_datetime(datetime.fromisoformat(text).astimezone())


@pytest.mark.parametrize(
    ("rule", "moment", "following"),
    [
        (Schedule(5, 30), "2026-11-20 05:29:59", "2026-11-20 05:30:00"),
        (Schedule(5, 30), "2026-11-20 05:30:00", "2026-11-21 05:30:00"),
        (Schedule(5, 30, 4), "2026-11-20 05:00:00", "2026-11-20 05:30:00"),  # a Friday
        (Schedule(5, 30, 4), "2026-11-20 05:30:00", "2026-11-27 05:30:00"),
        (Schedule(0, 0, 0), "2026-11-20 12:00:00", "2026-11-23 00:00:00"),
        (Schedule(5, 30), "2026-03-07 23:00:00", "2026-03-08 05:30:00"),  # clocks go forward that night
        (Schedule(5, 30), "2026-10-31 23:00:00", "2026-11-01 05:30:00"),  # and back that night
    ],
)
def test_the_next_time_follows_the_wall_clock(rule: Schedule, moment: str, following: str) -> None:
    assert rule.after(at(moment)) == at(following)


@given(
    st.builds(Schedule, st.integers(0, 23), st.integers(0, 59), st.none() | st.integers(0, 6)),
    st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),
)
def test_the_next_time_is_within_the_next_period(rule: Schedule, moment: datetime) -> None:
    now = from_datetime(moment)
    following = rule.after(now)
    days = 1 if rule.weekday is None else 7
    assert 0 < following - now <= (days * 24 + 1) * 3_600_000_000
    assert rule.weekday is None or to_datetime(following).astimezone().weekday() == rule.weekday


def test_without_options_the_time_is_midnight_every_day() -> None:
    assert schedule({}) == Schedule(0, 0, None)


@pytest.mark.parametrize("day", DAYS)
def test_days_are_accepted_in_any_case(day: str) -> None:
    args = grammar.parse(f"REPORT ON {day.lower()} AT 5:07", grammar.PARAMETERS).args
    assert schedule(args) == Schedule(5, 7, DAYS.index(day))


@pytest.mark.parametrize("options", ["AT 24:00", "AT 12:60", "AT noon", "ON someday"])
def test_an_invalid_time_is_refused_at_its_column(options: str) -> None:
    with pytest.raises(StatementError) as caught:
        grammar.parse(f"REPORT {options}", grammar.PARAMETERS)
    assert caught.value.column == 11
