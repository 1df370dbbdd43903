"""A process whose clock differs from the home's: the difference is named, and no lag and no age is made of it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from processes import Start, until, until_state

from ggshell.groups.state import ProcessState
from ggshell.home.checkpoint import GroupKind, load
from ggshell.home.home import Home

EXT1 = ("EXT1", GroupKind.EXTRACT)
LEAST, MOST = 0, 60
"""What the lag may be on a busy machine, in seconds: the difference of the clocks is far from it."""


def rows(home: Home, statement: str) -> tuple[list[list[object]], str]:
    command = [sys.executable, "-m", "ggshell.cli.main", "--home", str(home.root), "--format", "json", "-c", statement]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return json.loads(said.stdout.splitlines()[-1])["rows"], said.stdout + said.stderr


@pytest.mark.parametrize(("shift", "words"), [(7200, "ahead of"), (-7200, "behind")])
def test_a_clock_two_hours_off_is_named_and_no_lag_is_made_of_it(
    home: Home, start: Start, shift: int, words: str
) -> None:
    start("at_the_end", shift=shift)
    until_state(home, *EXT1, ProcessState.RUNNING)
    until("a record is processed", lambda: load(home.checkpoint(*EXT1)).record_time > 0)
    all_rows, told = rows(home, "INFO ALL")
    lag, since = next(row[3:5] for row in all_rows if row[2] == "EXT1")
    (asked,), asked_told = rows(home, "LAG EXTRACT ext1")
    for seconds in (lag, since, asked[3]):
        assert isinstance(seconds, int | float)
        assert LEAST <= seconds <= MOST
    for text in (told, asked_told, home.report("EXT1").read_text()):
        assert f"seconds {words} the clock of the home's file system" in text


def test_processes_with_the_homes_clock_have_nothing_said_of_clocks(home: Home, start: Start) -> None:
    start("at_the_end")
    until("a record is processed", lambda: load(home.checkpoint(*EXT1)).record_time > 0)
    _, told = rows(home, "INFO ALL")
    assert "GGS-00605" not in told + home.report("EXT1").read_text()
