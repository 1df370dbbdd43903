"""Reports: header, rollover, and what they must not contain."""

from __future__ import annotations

import pytest

from ggshell.clock import FakeClock
from ggshell.errors import ApplyError, DiskError, GgsError
from ggshell.groups.report import Report
from ggshell.groups.statistics import Statistics
from ggshell.home.events import Severity
from ggshell.home.home import Home
from ggshell.language.redaction import masked
from ggshell.types import TableName


@pytest.fixture
def report(home: Home) -> Report:
    return Report(home, "EXT1", "Capture", FakeClock(), "PostgreSQL")


def report_text(home: Home) -> str:
    return home.report("EXT1").read_text()


def test_ten_older_reports_are_kept(home: Home) -> None:
    for number in range(13):
        Report(home, "EXT1", "Capture", FakeClock()).write(f"run {number}")
    assert report_text(home) == "run 12\n"
    assert [home.report("EXT1", age).read_text() for age in range(10)] == [f"run {11 - age}\n" for age in range(10)]
    assert len(list((home.root / "dirrpt").iterdir())) == 11


def test_a_report_can_be_rolled_over_during_a_run(home: Home, report: Report) -> None:
    report.write("before")
    report.roll()
    report.write("after")
    assert (home.report("EXT1", 0).read_text(), report_text(home)) == ("before\n", "after\n")


def test_the_header_shows_the_parameters_without_their_secrets(home: Home, report: Report) -> None:
    parameters = home.parameters("ext1")
    parameters.write_text("EXTRACT ext1\nUSERID ogg, PASSWORD open-sesame\nTABLE shop.*;\n")
    report.opening(parameters)
    lines = report_text(home).splitlines()
    assert lines[0] == lines[5] == "*" * 71
    assert lines[1].strip() == "ggshell Capture for PostgreSQL"
    assert lines[4].strip().startswith("Starting at 20")
    assert {len(line) for line in lines if line.startswith("**")} == {71}
    assert "**            Running with the following parameters                  **" in lines
    assert "**                     Run Time Messages                             **" in lines
    assert "USERID ogg, PASSWORD *******" in lines
    assert "open-sesame" not in report_text(home)


def test_a_missing_parameter_file_is_reported(home: Home, report: Report) -> None:
    report.opening(home.parameters("ext1"))
    assert "no parameter file" in report_text(home)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("userid ogg,password tiger", "userid ogg,password *******"),
        ("PASSWORD 'a b' , ALIAS x", "PASSWORD ******* , ALIAS x"),
        ('password "a, b"', "password *******"),
        ("host=a password=tiger dbname=b", "host=a password=******* dbname=b"),
        ("cannot reach postgresql://ogg:tiger@north/db", "cannot reach postgresql://ogg:*******@north/db"),
        ("no secret at all", "no secret at all"),
    ],
)
def test_secrets_are_masked(given: str, shown: str) -> None:
    assert masked(given) == shown


def test_an_event_is_in_the_report_and_in_the_log(home: Home, report: Report) -> None:
    report.event(Severity.WARNING, "GGS-00402", "connection lost: password=tiger\nagain")
    ending = "WARNING GGS-00402  connection lost: password=******* again\n"
    assert report_text(home).endswith(ending)
    assert "WARNING GGS-00402  ggshell Capture for PostgreSQL, ext1.prm:  connection lost" in home.event_log.read_text()
    assert "tiger" not in home.event_log.read_text()


def test_an_abend_reports_source_error_and_hint(home: Home, report: Report) -> None:
    caught: GgsError | None = None
    try:
        Statistics(FakeClock()).add(None, None, [], 1)  # type: ignore[arg-type]
    except TypeError as error:
        caught = ApplyError("no row", where="shop.items", hint="see the discard file").with_traceback(
            error.__traceback__
        )
    assert caught is not None
    report.abend(caught)
    lines = report_text(home).splitlines()
    assert "Source Context :" in lines
    assert any("SourceModule" in line and "[ggshell.groups.statistics]" in line for line in lines)
    assert any("ERROR   OGG-01296  no row (shop.items) - see the discard file" in line for line in lines)
    assert lines[-1].endswith("ERROR   OGG-01668  PROCESS ABENDING.")


def test_statistics_are_shown_by_table(home: Home, report: Report) -> None:
    statistics = Statistics(FakeClock())
    report.statistics(statistics.snapshot())
    assert "No records were processed." in report_text(home)
    statistics.add(TableName("shop", "items"), TableName("copy", "items"), 5, 12)
    report.statistics(statistics.snapshot())
    assert "From Table shop.items to copy.items:\n       #           inserts:        12\n" in report_text(home)
    assert "(activity since 20" in report_text(home)


def test_a_report_that_cannot_be_written_is_reported_by_name(home: Home) -> None:
    home.report("EXT1").mkdir()
    home.report("EXT1", 0).mkdir()
    (home.report("EXT1", 0) / "full").write_text("")
    with pytest.raises(DiskError, match=r"EXT1\.rpt"):
        for _ in range(12):
            Report(home, "EXT1", "Capture", FakeClock())
            home.report("EXT1").unlink()
            home.report("EXT1").mkdir()
