"""When a process saves its checkpoint: at intervals while it works, sooner when it waits for input."""

from __future__ import annotations

from ggshell.clock import FakeClock
from ggshell.groups.save_schedule import IDLE_SECONDS, SaveSchedule

INTERVAL = 10.0


def _saved(clock: FakeClock) -> SaveSchedule:
    """Return a schedule whose first save is done."""
    schedule = SaveSchedule(clock, INTERVAL)
    schedule.taken()
    schedule.saved(clock.steady())
    return schedule


def test_the_first_save_is_due_at_once_and_the_next_one_after_the_interval() -> None:
    clock = FakeClock()
    schedule = SaveSchedule(clock, INTERVAL)
    assert schedule.is_due(clock.steady())
    schedule.saved(clock.steady())
    assert not schedule.is_due(clock.steady())
    clock.advance(INTERVAL)
    assert schedule.is_due(clock.steady())


def test_a_process_without_input_saves_its_last_work_soon() -> None:
    clock = FakeClock()
    schedule = _saved(clock)
    schedule.worked()
    schedule.hasten(clock.steady())
    clock.advance(IDLE_SECONDS)
    assert schedule.is_due(clock.steady())


def test_a_process_without_new_work_waits_for_the_interval() -> None:
    clock = FakeClock()
    schedule = _saved(clock)
    schedule.hasten(clock.steady())
    clock.advance(IDLE_SECONDS)
    assert not schedule.is_due(clock.steady())


def test_the_pause_ends_when_the_next_save_is_due() -> None:
    clock = FakeClock()
    schedule = _saved(clock)
    assert schedule.pause(clock.steady()) == IDLE_SECONDS
    clock.advance(INTERVAL - IDLE_SECONDS / 4)
    assert schedule.pause(clock.steady()) == IDLE_SECONDS / 4
    clock.advance(INTERVAL)
    assert schedule.pause(clock.steady()) == 0


def test_work_after_a_checkpoint_was_taken_remains_unsaved() -> None:
    clock = FakeClock()
    schedule = SaveSchedule(clock, INTERVAL)
    schedule.taken()
    schedule.worked()
    schedule.saved(clock.steady())
    assert schedule.unsaved
