"""How the growth of a slot is interpreted, and when a warning is given."""

from __future__ import annotations

import pytest

from ggshell.clock import FakeClock
from ggshell.connectors.postgres.slot import SlotStatus
from ggshell.connectors.postgres.slot_watch import SlotWatch
from ggshell.home.slot_facts import SlotFacts

MEGABYTE = 1 << 20


def status(retained: int, *, room: int | None = None, wal_status: str = "reserved") -> SlotStatus:
    return SlotStatus("ggs_ext1", True, 1, 0, 0, wal_status, retained, room, 77, "db", True)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def watch(clock: FakeClock) -> SlotWatch:
    return SlotWatch(clock)


def seen(watch: SlotWatch) -> SlotFacts:
    assert watch.facts is not None
    return watch.facts


def test_one_burst_is_not_a_trend(clock: FakeClock, watch: SlotWatch) -> None:
    watch.check(status(0), 100 * MEGABYTE)
    clock.advance(30)
    assert watch.check(status(50 * MEGABYTE), 50 * MEGABYTE) is None
    assert (seen(watch).growth_per_hour, seen(watch).hours_left) == (None, None)


def test_the_time_left_is_the_room_divided_by_the_current_growth(clock: FakeClock, watch: SlotWatch) -> None:
    watch.check(status(0), 1000 * MEGABYTE)
    clock.advance(3600)
    assert watch.check(status(100 * MEGABYTE), 900 * MEGABYTE) is None
    assert seen(watch).growth_per_hour == 100 * MEGABYTE
    assert seen(watch).hours_left == pytest.approx(9)


def test_a_long_quiet_time_does_not_hide_a_burst(clock: FakeClock, watch: SlotWatch) -> None:
    for _ in range(1440):  # Ten days.
        watch.check(status(0), 10_000 * MEGABYTE)
        clock.advance(600)
    warnings = []
    for step in range(1, 61):
        clock.advance(10)
        warnings.append(watch.check(status(150 * step * MEGABYTE), 10_000 * MEGABYTE - 150 * step * MEGABYTE))
    assert any(warnings)
    left = seen(watch).hours_left
    assert left is not None
    assert left < 0.05


def test_growth_is_detected_again_after_the_slot_was_read(clock: FakeClock, watch: SlotWatch) -> None:
    watch.check(status(5000 * MEGABYTE), None)
    for step in range(70):
        clock.advance(10)
        watch.check(status(step * MEGABYTE), None)
    assert seen(watch).growth_per_hour == pytest.approx(360 * MEGABYTE)


@pytest.mark.parametrize(
    ("server", "disk", "limit", "end"),
    [
        (50 * MEGABYTE, 90 * MEGABYTE, "max_slot_wal_keep_size", "the server invalidates the slot"),
        (90 * MEGABYTE, 50 * MEGABYTE, "disk", "the server's disk is full"),
        (None, 50 * MEGABYTE, "disk", "the server's disk is full"),
        (50 * MEGABYTE, None, "max_slot_wal_keep_size", "the server invalidates the slot"),
    ],
)
def test_the_nearer_limit_counts_and_is_reported_in_time(
    clock: FakeClock, watch: SlotWatch, server: int | None, disk: int | None, limit: str, end: str
) -> None:
    watch.check(status(0, room=server), disk)
    clock.advance(3600)
    warning = watch.check(status(100 * MEGABYTE, room=server), disk)
    assert warning is not None
    assert "in 30 minutes" in warning
    assert warning.endswith(f" at the current rate), {end}.")
    assert seen(watch).limit == limit


def test_a_warning_is_given_once_in_fifteen_minutes_and_again_when_the_problem_recurs(
    clock: FakeClock, watch: SlotWatch
) -> None:
    warnings = []
    for _ in range(30):
        warnings.append(watch.check(status(9, room=5, wal_status="extended"), None))
        clock.advance(60)
    assert [number for number, warning in enumerate(warnings) if warning] == [0, 15]
    assert watch.check(status(9, room=5), None) is None
    assert watch.check(status(9, room=5, wal_status="unreserved"), None) is not None


def test_without_a_limit_there_is_no_end(clock: FakeClock, watch: SlotWatch) -> None:
    watch.check(status(0), None)
    clock.advance(3600)
    assert watch.check(status(100 * MEGABYTE), None) is None
    assert (seen(watch).room, seen(watch).hours_left, seen(watch).limit) == (None, None, "")
