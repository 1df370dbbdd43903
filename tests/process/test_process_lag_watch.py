"""When Manager speaks of lag."""

from __future__ import annotations

from pathlib import Path

import checkpoints
import pytest

from ggshell.params.lines import Parameter
from ggshell.process.lag_watch import LagRules, judge, lag_rules, lag_seconds, load_lag_rules
from ggshell.store.checkpoint import SourceType
from ggshell.store.events import Severity

SECOND = 1_000_000
NOW = 1_700_000_000 * SECOND


def test_the_rules_come_from_the_parameter_file(tmp_path: Path) -> None:
    path = tmp_path / "mgr.prm"
    assert load_lag_rules(path) == LagRules(None, None, None)
    path.write_text("PORT 7809\nLAGREPORTMINUTES 5\nLAGINFOMINUTES 10\nLAGCRITICALMINUTES 30\n")
    assert load_lag_rules(path) == LagRules(300, 600, 1800)


def test_every_unit_counts() -> None:
    lines = [("LAGREPORTHOURS", 1), ("LAGINFOSECONDS", 5), ("LAGCRITICALMINUTES", 2), ("PORT", 7809)]
    assert lag_rules(Parameter(name, {"number": number}, 1, "") for name, number in lines) == LagRules(3600, 5, 120)


@pytest.mark.parametrize(
    ("lag", "severity"),
    [(0, None), (599, None), (600, Severity.INFO), (1799, Severity.INFO), (1800, Severity.WARNING)],
)
def test_a_lag_is_told_from_its_limits_on(lag: float, severity: Severity | None) -> None:
    assert judge(LagRules(60, 600, 1800), lag) is severity
    assert judge(LagRules(60), lag) is None


def test_an_idle_group_that_runs_is_not_behind() -> None:
    idle = checkpoints.extract("EXT1")._replace(record_time=NOW - 86400 * SECOND, caught_up=NOW, updated=NOW)
    assert lag_seconds(idle, NOW + 10 * SECOND, running=True) == 0


def test_a_busy_group_is_behind_by_its_last_record() -> None:
    busy = checkpoints.extract("EXT1")._replace(record_time=NOW - 100 * SECOND, updated=NOW)
    assert lag_seconds(busy, NOW + SECOND, running=True) == 100


def test_a_group_that_no_longer_says_anything_falls_behind() -> None:
    silent = checkpoints.extract("EXT1")._replace(record_time=NOW, caught_up=NOW, updated=NOW)
    assert lag_seconds(silent, NOW + 615 * SECOND, running=True) == 600
    assert lag_seconds(silent, NOW + 600 * SECOND, running=False) == 600


def test_before_the_first_record_the_begin_counts_and_tasks_have_no_lag() -> None:
    new = checkpoints.extract("EXT1")
    assert lag_seconds(new, NOW, running=False) is None
    assert lag_seconds(new._replace(begin_time=NOW), NOW + 5 * SECOND, running=False) == 5
    task = new._replace(read=new.read._replace(source=SourceType.TABLE), begin_time=NOW)
    assert lag_seconds(task, NOW + 5 * SECOND, running=True) is None


def test_a_clock_set_back_gives_no_negative_lag() -> None:
    ahead = checkpoints.extract("EXT1")._replace(record_time=NOW, updated=NOW)
    assert lag_seconds(ahead, NOW - 50 * SECOND, running=True) == 0
