"""What monitoring scripts in the wild parse out of GGSCI sessions, rule by rule."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ggshell.process.state import ProcessState
from ggshell.shell import layout
from ggshell.shell.commands.add import save
from ggshell.shell.lag import checkpoint_lag, duration
from ggshell.shell.session import Session
from ggshell.store.checkpoint import Checkpoint, GroupType, ReadCheckpoint, SourceType, WriteCheckpoint
from ggshell.store.home import Home
from ggshell.types import TrailPosition


@pytest.fixture
def home(tmp_path: Path) -> Path:
    session = Session(Home(tmp_path))
    read = ReadCheckpoint(SourceType.TRAIL, "./dirdat/ea", current=TrailPosition(3, 1234))
    write = (WriteCheckpoint("./dirdat/ra", remote=True, megabytes=50),)
    save(session, Checkpoint("PMP1", GroupType.EXTRACT, read, write, created=session.clock.now()))
    return tmp_path


def ggshell(home: Path, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ggshell.shell.cli", "--home", str(home), *arguments]
    return subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=60)


def test_a_heredoc_session_is_parsed_as_the_collectors_do(home: Path) -> None:
    lines = ggshell(home, given="info all\nexit\n").stdout.splitlines()
    head = next(
        n
        for n, line in enumerate(lines)
        if re.search(r"Program\s+Status\s+Group\s+Lag at Chkpt\s+Time Since Chkpt", line)
    )
    rows = [line.split() for line in lines[head + 2 : len(lines) - 3]]
    assert rows[0] == ["MANAGER", "STOPPED"]
    assert [len(row) for row in rows if row] == [2, 5]
    assert rows[1][:3] == ["EXTRACT", "STOPPED", "PMP1"]
    assert re.fullmatch(r"\d{2,}:\d\d:\d\d", rows[1][3])


def test_a_piped_session_prints_prompts_and_goes_on_after_an_error(home: Path) -> None:
    done = ggshell(home, given="info extract nope\n\nstatus pmp1\nexit\n")
    assert re.search(r"^GGSCI \(\S+\) 1> ", done.stdout, re.MULTILINE)
    assert "GGSCI" in done.stdout.splitlines()[-1] or "4> " in done.stdout
    assert "EXTRACT PMP1: STOPPED" in done.stdout
    assert done.returncode == 0


def test_paramfile_runs_a_file_as_a_session_does(home: Path) -> None:
    file = home / "x.oby"
    file.write_text("info all\nexit\n")
    assert "GGSCI (" in ggshell(home, "paramfile", str(file)).stdout


def test_hours_of_lag_may_have_more_than_two_digits() -> None:
    assert duration(842 * 3600 + 45 * 60 + 1) == "842:45:01"


def test_info_keeps_the_labels_that_awk_scripts_take(home: Path) -> None:
    text = ggshell(home, "-c", "info extract pmp1").stdout
    lag = next(line for line in text.splitlines() if line.startswith("Checkpoint Lag"))
    assert re.fullmatch(r"\d\d:\d\d:\d\d", lag.split()[2])
    assert re.search(r"Status\s+STOPPED", text)


def test_statistics_keep_their_strings_and_two_decimals() -> None:
    counts = dict.fromkeys(("inserts", "updates", "deletes", "upserts", "truncates", "discards"), 0)
    table = {"source": "a.b", "target": "c.d", "counts": {"total": {**counts, "inserts": 4}, "daily": counts}}
    snapshot = {"now": 0, "sections": {"total": 0, "daily": 0}, "tables": [table]}
    text = layout.statistics(GroupType.REPLICAT, "REP1", snapshot, ("total", "daily"), trails=())
    assert "Sending STATS request to REPLICAT REP1 ..." in text
    assert "No database operations have been performed." in text
    line = next(line for line in text.splitlines() if "Total operations" in line)
    assert re.search(r"Total operations (.*).(00)", line)
    assert len(line) == 63
    assert line.split()[2] == "4.00"
    nothing = layout.statistics(GroupType.REPLICAT, "REP1", {**snapshot, "tables": []}, ("total",), trails=())
    assert nothing.endswith("No active replication maps.")


def test_error_log_lines_are_split_on_blanks(home: Path) -> None:
    ggshell(home, "-c", "alter credentialstore add user u@h:1/d password topsecret alias a")
    line = (home / "ggserr.log").read_text().splitlines()[0]
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  INFO    OGG-00987  ggshell .*:  GGSCI command \(.*\): ", line)
    assert "topsecret" not in line


def test_json_has_one_object_a_line_with_fixed_names(home: Path) -> None:
    done = ggshell(home, "--format", "json", "--continue-on-error", "-c", "info all; info extract nope")
    first, second = (json.loads(line) for line in done.stdout.splitlines())
    assert list(first) == ["statement", "status", "code", "message", "columns", "rows"]
    assert first["rows"][1][:3] == ["EXTRACT", "STOPPED", "PMP1"]
    assert (second["status"], second["rows"]) == ("error", [])


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["-c", "info all"], 0),
        (["-c", "info extract nope; info all"], 1),
        (["--continue-on-error", "-c", "info extract nope; info all"], 1),
        (["--nonsense"], 2),
        (["no-such-file.oby"], 2),
        (["-c", "info all; inof all"], 3),
        (["--version"], 0),
    ],
)
def test_exit_codes(home: Path, arguments: list[str], code: int) -> None:
    assert ggshell(home, *arguments).returncode == code


def test_nothing_runs_when_a_statement_cannot_be_understood(home: Path) -> None:
    done = ggshell(home, "-c", "delete extract pmp1; inof all")
    assert "1:22" in done.stdout
    assert (home / "dirchk" / "PMP1.cpe").exists()


SECOND = 1_000_000


@pytest.mark.parametrize(
    ("state", "source", "record", "caught_up", "updated", "waiting", "expected"),
    [
        (ProcessState.RUNNING, SourceType.LOG, 90, 100, 100, None, 0),
        (ProcessState.RUNNING, SourceType.LOG, 90, 80, 100, None, 10),
        (ProcessState.STOPPED, SourceType.LOG, 90, 100, 100, None, 400),
        (ProcessState.ABENDED, SourceType.LOG, 120, 100, 120, None, 380),
        (ProcessState.STOPPED, SourceType.TRAIL, 90, 100, 100, None, 0),
        (ProcessState.STOPPED, SourceType.TRAIL, 90, 100, 100, 130, 370),
    ],
)
def test_lag_is_true_when_idle_and_grows_when_stopped(
    state: ProcessState,
    source: SourceType,
    record: int,
    caught_up: int,
    updated: int,
    waiting: int | None,
    expected: int,
) -> None:
    checkpoint = Checkpoint(
        "E", GroupType.EXTRACT, ReadCheckpoint(source),
        record_time=record * SECOND, caught_up=caught_up * SECOND, updated=updated * SECOND,
    )  # fmt: skip
    since = waiting * SECOND if waiting is not None else None
    assert checkpoint_lag(checkpoint, state, 500 * SECOND, since) == expected
