"""AUTOSTART and AUTORESTART rules with a fake clock; test names carry the number of the guarantee of Restarts."""

from __future__ import annotations

import pytest

from ggshell.clock import FakeClock
from ggshell.groups.starts import Restarts, rule_takes
from ggshell.home.checkpoint import GroupKind
from ggshell.parameters.process_parameters import RestartRule

EXT1 = ("EXT1", GroupKind.EXTRACT)
RULE = RestartRule("EXTRACT", "EXT*", retries=2, wait=60, reset=600)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def restarts(clock: FakeClock) -> Restarts:
    return Restarts([RULE], clock)


@pytest.mark.parametrize(
    ("kind", "pattern", "taken"),
    [
        ("ER", "*", "EXTRACT REPLICAT"),
        ("EXTRACT", "*", "EXTRACT"),
        ("REPLICAT", "a?", "REPLICAT"),
        ("DISTPATH", "A1", "DISTPATH"),
        ("ER", "B*", ""),
    ],
)
def test_a_rule_selects_groups_by_kind_and_pattern(kind: str, pattern: str, taken: str) -> None:
    assert [str(type_) for type_ in GroupKind if rule_takes(kind, pattern, ("A1", type_))] == taken.split()


def test_1_a_group_without_a_rule_is_not_restarted(restarts: Restarts, clock: FakeClock) -> None:
    assert restarts.abended(("REP1", GroupKind.REPLICAT)) is None
    assert restarts.seconds_to_next() is None
    clock.advance(100_000)
    assert restarts.due() == []


def test_2_the_start_comes_after_the_wait(restarts: Restarts, clock: FakeClock) -> None:
    assert restarts.abended(EXT1) == 60
    clock.advance(59)
    assert restarts.due() == []
    assert restarts.seconds_to_next() == 1
    clock.advance(1)
    assert restarts.due() == [EXT1]
    assert restarts.due() == []
    assert restarts.seconds_to_next() is None


def abend_and_restart(restarts: Restarts, clock: FakeClock) -> float:
    """Abend, wait until the restart is due, and start; returns the wait in seconds."""
    wait = restarts.abended(EXT1)
    assert wait is not None
    clock.advance(wait)
    assert restarts.due() == [EXT1]
    return wait


def test_3_after_the_retries_it_waits_for_the_reset(restarts: Restarts, clock: FakeClock) -> None:
    waits = [abend_and_restart(restarts, clock) for _ in range(3)]
    assert waits == [60, 60, 540]  # the third: 600 seconds after the first start


def test_4_then_the_count_starts_again(restarts: Restarts, clock: FakeClock) -> None:
    waits = [abend_and_restart(restarts, clock) for _ in range(6)]
    assert waits == [60, 60, 540, 60, 540, 60]


def test_4_a_long_run_without_an_abend_resets_the_count(restarts: Restarts, clock: FakeClock) -> None:
    waits = [abend_and_restart(restarts, clock) for _ in range(2)]
    clock.advance(600)
    waits += [abend_and_restart(restarts, clock) for _ in range(2)]
    assert waits == [60] * 4


def test_5_a_manual_start_resets_the_count(restarts: Restarts, clock: FakeClock) -> None:
    for _ in range(2):
        abend_and_restart(restarts, clock)
    restarts.abended(EXT1)
    restarts.forget(EXT1)
    assert restarts.seconds_to_next() is None
    assert abend_and_restart(restarts, clock) == 60


def test_no_retries_means_no_restart(clock: FakeClock) -> None:
    assert Restarts([RULE._replace(retries=0)], clock).abended(EXT1) is None


def test_the_first_rule_that_matches_a_group_applies(clock: FakeClock) -> None:
    rules = [RestartRule("EXTRACT", "EXT2"), RULE, RULE._replace(wait=5)]
    assert Restarts(rules, clock).abended(EXT1) == 60


def test_6_a_rule_that_gives_up_does_not_restart_after_the_last_retry(clock: FakeClock) -> None:
    restarts = Restarts([RULE._replace(gives_up=True)], clock)
    assert [abend_and_restart(restarts, clock) for _ in range(2)] == [60, 60]
    assert restarts.abended(EXT1) is None
    restarts.forget(EXT1)  # START
    assert abend_and_restart(restarts, clock) == 60


def test_7_the_rule_of_a_profile_precedes_patterns(clock: FakeClock) -> None:
    profile = RestartRule("EXTRACT", "EXT1", retries=1, wait=5, reset=60)
    restarts = Restarts([RULE], clock, lambda group: profile if group == EXT1 else None)
    assert [restarts.abended(EXT1), restarts.abended(("EXT2", GroupKind.EXTRACT))] == [5, 60]
