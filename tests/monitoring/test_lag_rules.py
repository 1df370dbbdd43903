"""The lag limits at which Manager writes a message."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.home.events import Severity
from ggshell.monitoring.lag_rules import LagRules, judge, lag_rules, load_lag_rules
from ggshell.parameters.lines import Parameter


def test_the_rules_come_from_the_parameter_file(tmp_path: Path) -> None:
    path = tmp_path / "mgr.prm"
    assert load_lag_rules(path) == LagRules(None, None, None)
    path.write_text("PORT 7809\nLAGREPORTMINUTES 5\nLAGINFOMINUTES 10\nLAGCRITICALMINUTES 30\n")
    assert load_lag_rules(path) == LagRules(300, 600, 1800)


def test_every_time_unit_is_converted_to_seconds() -> None:
    lines = [("LAGREPORTHOURS", 1), ("LAGINFOSECONDS", 5), ("LAGCRITICALMINUTES", 2), ("PORT", 7809)]
    assert lag_rules(Parameter(name, {"number": number}, 1, "") for name, number in lines) == LagRules(3600, 5, 120)


@pytest.mark.parametrize(
    ("lag", "severity"),
    [(0, None), (599, None), (600, Severity.INFO), (1799, Severity.INFO), (1800, Severity.WARNING)],
)
def test_a_lag_is_reported_from_its_limit_on(lag: float, severity: Severity | None) -> None:
    assert judge(LagRules(60, 600, 1800), lag) is severity
    assert judge(LagRules(60), lag) is None
