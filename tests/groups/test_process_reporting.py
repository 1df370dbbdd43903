"""What a process reports by itself while it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.clock import FakeClock, local_text
from ggshell.errors import ParameterError
from ggshell.groups.report import Report, Reporting
from ggshell.groups.statistics import Statistics
from ggshell.home.home import Home
from ggshell.parameters.lines import read_parameters
from ggshell.parameters.report_rules import ReportRules, Schedule, report_rules
from ggshell.record.operation import IoType
from ggshell.types import TableName

ORDERS = TableName("shop", "orders")


class ReportSetup:
    """A report with a clock, statistics and report rules."""

    def __init__(self, home: Home, rules: ReportRules) -> None:
        self.home = home
        self.clock = FakeClock()
        self.statistics = Statistics(self.clock)
        self.report = Report(home, "EXT1", "Capture", self.clock)
        self.reporting = Reporting(rules, self.report, self.statistics, self.clock)

    def after(self, seconds: float, records: int = 0) -> list[str]:
        """Advance the clock and add records; returns the lines of the report."""
        self.clock.advance(seconds)
        if records:
            self.statistics.add(ORDERS, ORDERS, IoType.INSERT, records)
        self.reporting.check()
        return self.home.report("EXT1").read_text().splitlines()


def test_the_record_count_is_reported_at_the_interval_with_rate_and_delta(home: Home) -> None:
    setup = ReportSetup(home, ReportRules(count_seconds=60, rate=True))
    assert setup.after(59, 600) == []
    first = setup.after(1)
    assert first == [f"         600 records processed as of {local_text(setup.clock.now())} (rate 10,delta 10)"]
    assert setup.after(60, 1800)[1].endswith("(rate 20,delta 30)")


def test_the_record_count_is_reported_when_the_number_is_reached(home: Home) -> None:
    setup = ReportSetup(home, ReportRules(count_records=1000))
    assert setup.after(1, 999) == []
    assert len(setup.after(1, 1)) == 1
    assert len(setup.after(1, 999)) == 1
    assert setup.after(1, 1)[1] == f"        2000 records processed as of {local_text(setup.clock.now())}"


def test_statistics_are_reported_once_at_their_hour(home: Home) -> None:
    setup = ReportSetup(home, ReportRules(report=(Schedule(0, 0),)))
    day = setup.after(86400, 5)
    assert sum("Run Time Statistics" in line for line in day) == 1
    assert sum("Run Time Statistics" in line for line in setup.after(3600)) == 1
    assert sum("Run Time Statistics" in line for line in setup.after(86400)) == 2


def test_the_report_is_rolled_over_at_its_hour(home: Home) -> None:
    setup = ReportSetup(home, ReportRules(rollover=(Schedule(0, 0),)))
    setup.report.write("yesterday")
    assert setup.after(86400) == []
    assert home.report("EXT1", 0).read_text() == "yesterday\n"


def test_trail_and_discard_file_are_rolled_over_by_their_owners(home: Home) -> None:
    setup = ReportSetup(home, ReportRules(discard_rollover=(Schedule(0, 0),), trail_rollover=(Schedule(0, 0),)))
    rolled: list[str] = []
    setup.reporting.roll_discard(lambda: rolled.append("discard"))
    setup.reporting.roll_trail(lambda: rolled.append("trail"))
    setup.after(86400)
    assert rolled == ["discard", "trail"]


def test_rules_are_read_from_the_parameter_file(tmp_path: Path) -> None:
    path = tmp_path / "rep1.prm"
    path.write_text(
        "REPLICAT rep1\nREPORT AT 17:00\nREPORTCOUNT EVERY 5 MINUTES, RATE\nREPORTROLLOVER ON friday\n"
        "DISCARDROLLOVER AT 05:30 ON monday\nMAP a.*, TARGET b.*;\n"
    )
    assert report_rules(read_parameters(path, "Replicat")) == ReportRules(
        report=(Schedule(17, 0),),
        rollover=(Schedule(0, 0, 4),),
        discard_rollover=(Schedule(5, 30, 0),),
        count_seconds=300,
        rate=True,
    )


@pytest.mark.parametrize("line", ["REPORT AT 25:00", "REPORTROLLOVER ON someday", "REPORTCOUNT EVERY 0 RECORDS"])
def test_an_invalid_rule_is_refused_with_its_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "rep1.prm"
    path.write_text(f"REPLICAT rep1\n{line}\n")
    with pytest.raises(ParameterError) as caught:
        report_rules(read_parameters(path, "Replicat"))
    assert caught.value.where.startswith(f"{path}:2")
