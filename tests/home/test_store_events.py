"""The error log: one line per event, as monitoring scripts parse it, from any number of processes."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from ggshell.clock import FakeClock
from ggshell.errors import DiskError
from ggshell.home.events import EventLog, Severity
from ggshell.home.home import Home

PROGRAM = "ggshell Capture for PostgreSQL, ext1.prm"
LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  (INFO    |WARNING |ERROR   )(OGG|GGS)-\d{5}  [^:]+:  .+")


@pytest.fixture
def log(home: Home) -> EventLog:
    return EventLog(home, FakeClock())


def test_a_line_has_the_layout_that_scripts_parse(log: EventLog) -> None:
    for severity in Severity:
        log.write(severity, "OGG-00992", PROGRAM, "EXTRACT EXT1 starting.")
    lines = log.read().splitlines()
    assert [LINE.fullmatch(line) is not None for line in lines] == [True] * 3
    assert lines[0].split()[2:4] == ["INFO", "OGG-00992"]
    assert lines[0].endswith(f"  {PROGRAM}:  EXTRACT EXT1 starting.")


def test_no_text_can_forge_another_event(log: EventLog) -> None:
    log.write(Severity.ERROR, "OGG-01296", PROGRAM, "a\nb\r\nc\x1b[2J\x85d\u2028e\tf")
    assert len(log.read().splitlines()) == 1
    assert log.read().endswith("a b c [2J d e f\n")


@pytest.mark.slow
def test_lines_of_several_processes_are_not_mixed(home: Home) -> None:
    code = """
import sys
from pathlib import Path
from ggshell.clock import SystemClock
from ggshell.home.events import EventLog, Severity
from ggshell.home.home import Home
log = EventLog(Home(Path(sys.argv[1])), SystemClock())
for number in range(300):
    log.write(Severity.INFO, "OGG-00987", "p", f"{sys.argv[2]} {number} " + "x" * 2000)
"""
    both = [subprocess.Popen([sys.executable, "-c", code, str(home.root), name]) for name in "ab"]
    assert [process.wait(30) for process in both] == [0, 0]
    lines = home.event_log.read_text().splitlines()
    assert len(lines) == 600
    assert all(LINE.fullmatch(line) and line.endswith("x" * 2000) for line in lines)


def test_a_log_that_cannot_be_written_is_reported(home: Home) -> None:
    home.event_log.mkdir()
    with pytest.raises(DiskError, match=re.escape(home.event_log.name)):
        EventLog(home, FakeClock()).write(Severity.INFO, "OGG-00987", "p", "text")
