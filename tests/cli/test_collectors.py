"""What published monitoring scripts parse from GGSCI output, parsed here in the same way."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from cli.shell import Shell, log_extract

from ggshell.cli.results.statistics import COUNTED, GroupStatistics, Stats, TableCounts
from ggshell.clock import SystemClock

HEADER = re.compile(r"Program\s+Status\s+Group\s+Lag at Chkpt\s+Time Since Chkpt")
NONE = dict.fromkeys(COUNTED, 0)
SECTIONS = ("total", "daily", "hourly", "latest")


def parse_rows(output: str) -> list[list[str]]:
    """The rows as a published collector reads them: from two lines after the heading to three lines before the end."""
    lines = output.split("\n")
    head = next(number for number, line in enumerate(lines) if HEADER.search(line))
    return [line.split() for line in lines[head + 2 : -3]]


@pytest.mark.parametrize("text", ["info all\nexit\n", "INFO ALL;\nEXIT\n", "info all\n", "info all\nquit"])
def test_info_all_of_a_piped_session_has_exactly_the_expected_rows(with_groups: Shell, text: str) -> None:
    rows = parse_rows(with_groups.session(text))
    assert [len(row) for row in rows] == [2, 5, 5, 5]
    assert rows[0] == ["MANAGER", "STOPPED"]
    assert [row[:3] for row in rows[1:]] == [
        ["EXTRACT", "STOPPED", "EXT1"],
        ["EXTRACT", "STOPPED", "PMP1"],
        ["REPLICAT", "STOPPED", "REP1"],
    ]


def test_info_all_of_a_home_without_groups_shows_only_manager(shell: Shell) -> None:
    shell.home.ensure()
    assert parse_rows(shell.session("info all\nexit\n")) == [["MANAGER", "STOPPED"]]


def test_unreadable_files_are_reported_before_the_table_and_remove_no_row(with_groups: Shell) -> None:
    (with_groups.home.root / "dirdat" / "ea000000000").write_bytes(b"no trail at all" * 50)
    (with_groups.home.root / "dirchk" / "BAD.cpr").write_text("no checkpoint")
    text = with_groups.session("info all\nexit\n")
    rows = parse_rows(text)
    assert [len(row) for row in rows] == [2, 5, 5, 5, 5]
    assert [row[3] for row in rows[1:]] == [rows[1][3], "Unknown", "Unknown", "Unknown"]
    head = HEADER.search(text)
    assert head
    assert text.index("BAD.cpr is damaged") < head.start()
    assert text.index("lag of EXTRACT PMP1 is unknown") < head.start()


def test_lag_is_hours_minutes_seconds_and_hours_can_have_three_digits(shell: Shell) -> None:
    then = SystemClock().now() - (842 * 3600 + 45 * 60 + 30) * 1_000_000
    shell.save(log_extract("EXT1", record_time=then, caught_up=then, updated=then, started=then))
    row = parse_rows(shell.session("info all\nexit\n"))[1]
    assert re.fullmatch(r"842:45:3\d", row[3])
    fields = " ".join(row).replace(":", " ").split()
    assert (fields[3], fields[4], fields[6], fields[7]) == ("842", "45", "842", "45")


def test_columns_can_be_selected_by_number(with_groups: Shell) -> None:
    taken = [
        " ".join(line.split()[number] for number in (0, 2, 1, 3, 4))
        for line in with_groups.session("info all\nexit\n").splitlines()
        if line.startswith(("EXTRACT", "REPLICAT"))
    ]
    assert next(line.split()[:3] for line in taken) == ["EXTRACT", "EXT1", "STOPPED"]
    assert all(re.fullmatch(r"\S+ \S+ \S+ \d\d:\d\d:\d\d \d\d:\d\d:\d\d", line) for line in taken)


def test_checkpoint_lag_is_the_third_field_of_its_line(with_groups: Shell) -> None:
    text = with_groups.session("info extract ext1\nexit\n")
    line = next(line for line in text.splitlines() if "Checkpoint Lag" in line)
    assert re.fullmatch(r"\d\d:\d\d:\d\d", line.split()[2])


def test_status_is_the_field_after_its_label(with_groups: Shell) -> None:
    text = with_groups.session("info replicat rep1\nexit\n")
    match = re.search(r"Status\s+(\S+)", text)
    assert match
    assert match[1] == "STOPPED"


def table(**counts: int) -> TableCounts:
    return TableCounts("public.regions", "public.areas", {section: {**NONE, **counts} for section in SECTIONS})


def stats_text(*tables: TableCounts, kind: str = "REPLICAT", outputs: tuple[str, ...] = ()) -> str:
    group = GroupStatistics(kind, "R_POST", 0, dict.fromkeys(SECTIONS, 0), tables, outputs)
    return Stats((group,), SECTIONS).layout


def test_statistics_keep_the_strings_that_scripts_match() -> None:
    text = stats_text(table(inserts=4, updates=2, deletes=2))
    assert re.search(r"^Sending STATS request to REPLICAT (.*) \.\.\.$", text, re.MULTILINE)
    assert re.search(r"Total operations (.*).(00)", text)
    discards = next(line for line in text.splitlines() if "Total discards" in line)
    assert discards.split()[2] == "0.00"
    operations = next(line for line in text.splitlines() if "Total operations" in line)
    assert operations.split()[2] == "8.00"
    assert len(operations) == 63


def test_ignored_operations_are_shown_if_there_are_any_and_are_not_operations() -> None:
    assert "ignores" not in stats_text(table(inserts=4))
    text = stats_text(table(inserts=4, ignores=2))
    assert re.search(r"^ +Total ignores +2\.00$", text, re.MULTILINE)
    assert re.search(r"^ +Total operations +4\.00$", text, re.MULTILINE)


def test_a_table_without_operations_is_shown_as_such() -> None:
    assert stats_text(table()).count("        No database operations have been performed.") == len(SECTIONS)


@pytest.mark.parametrize(("kind", "word"), [("REPLICAT", "replication"), ("EXTRACT", "extraction")])
def test_a_group_without_maps_is_shown_as_such(kind: str, word: str) -> None:
    assert f"No active {word} maps.\n" in stats_text(kind=kind)


def test_every_count_has_two_decimals() -> None:
    numbers = re.findall(r"^ {8}Total \w+ +(\S+)", stats_text(table(inserts=1_234_567, discards=3)), re.MULTILINE)
    assert numbers
    assert all(re.fullmatch(r"\d+\.00", number) for number in numbers)


def test_piped_input_and_paramfile_both_print_prompts(with_groups: Shell, tmp_path: Path) -> None:
    text = "info all\nstatus ext1\nexit\n"
    piped = with_groups.session(text)
    file = tmp_path / "monitor.oby"
    file.write_text(text)
    named = with_groups.run("paramfile", str(file)).out
    for output in (piped, named):
        assert re.findall(r"^GGSCI \(\S+\) (\d)> ", output, re.MULTILINE) == ["1", "2", "3"]
        assert output.startswith("\nggshell Command Interpreter for PostgreSQL\nVersion ")


@pytest.mark.slow
def test_a_heredoc_in_a_real_process(with_groups: Shell, tmp_path: Path) -> None:
    import sys

    command = [sys.executable, "-m", "ggshell.cli.main", "--home", str(with_groups.home.root)]
    done = subprocess.run(command, input="info all\nexit\n", capture_output=True, text=True, check=True, cwd=tmp_path)
    assert [len(row) for row in parse_rows(done.stdout)] == [2, 5, 5, 5]
    assert done.stderr == ""


def test_error_log_lines_split_into_date_time_severity_and_code(shell: Shell) -> None:
    shell.batch("ADD EXTRACT pmp1, EXTTRAILSOURCE ./dirdat/ea")
    (line,) = shell.home.event_log.read_text().splitlines()
    date, time, severity, code, *rest = line.split()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", date)
    assert re.fullmatch(r"\d\d:\d\d:\d\d", time)
    assert (severity, code) == ("INFO", "OGG-00987")
    assert re.match(
        r"\S+ \S+  INFO    OGG-00987  ggshell Command Interpreter for PostgreSQL:  GGSCI command \(\w+\): ", line
    )
    assert rest[-1] == "./dirdat/ea."


def test_commands_that_change_nothing_are_not_logged(with_groups: Shell) -> None:
    with_groups.batch("INFO ALL", "STATUS EXT1", "LAG EXT1", "INFO EXT1, DETAIL", "HELP", "SHOW")
    assert not with_groups.home.event_log.exists()
