"""A process whose clock differs from the home's: the difference is reported and distorts neither lag nor age."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from processes import Start, until, until_state

from ggshell.home.checkpoint import GroupKind, load
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessState

EXT1 = ("EXT1", GroupKind.EXTRACT)
LEAST, MOST = 0, 60
"""The range of the lag in seconds on a busy machine, far below the difference between the clocks."""


def rows(home: Home, statement: str) -> tuple[list[list[object]], str]:
    command = [sys.executable, "-m", "ggshell.cli.main", "--home", str(home.root), "--format", "json", "-c", statement]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return json.loads(result.stdout.splitlines()[-1])["rows"], result.stdout + result.stderr


@pytest.mark.parametrize(("shift", "words"), [(7200, "ahead of"), (-7200, "behind")])
def test_a_clock_two_hours_off_is_reported_and_does_not_distort_the_lag(
    home: Home, start: Start, shift: int, words: str
) -> None:
    start("at_the_end", shift=shift)
    until_state(home, *EXT1, ProcessState.RUNNING)
    until("a record is processed", lambda: load(home.checkpoint(*EXT1)).record_time > 0)
    all_rows, output = rows(home, "INFO ALL")
    lag, since = next(row[3:5] for row in all_rows if row[2] == "EXT1")
    (asked,), lag_output = rows(home, "LAG EXTRACT ext1")
    for seconds in (lag, since, asked[3]):
        assert isinstance(seconds, int | float)
        assert LEAST <= seconds <= MOST
    for text in (output, lag_output, home.report("EXT1").read_text()):
        assert f"seconds {words} the clock of the home's file system" in text


def test_a_process_with_the_clock_of_the_home_causes_no_report_on_clocks(home: Home, start: Start) -> None:
    start("at_the_end")
    until("a record is processed", lambda: load(home.checkpoint(*EXT1)).record_time > 0)
    _, output = rows(home, "INFO ALL")
    assert "GGS-00605" not in output + home.report("EXT1").read_text()
