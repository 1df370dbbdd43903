"""A path that changes nothing: the files of both trails are equal byte for byte."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from command_line import run_ggshell
from processes import until, until_state
from trail_kit import PRODUCER, read_all, small
from two_homes import Line, TwoHomes, digest

from ggshell.clock import SystemClock
from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessState, read_process_file
from ggshell.trail.name import TrailName
from ggshell.trail.writer import TrailWriter


def until_same_files(homes: TwoHomes, seconds: float = 60) -> None:
    homes.until_equal(seconds)
    until("both trails have the same bytes", lambda: digest(homes.written) == digest(homes.read), seconds)


def kill(home: Path) -> None:
    found = read_process_file(Home(home).process("DP1", GroupKind.PATH))
    assert found is not None
    os.kill(found.pid, signal.SIGKILL)
    until_state(Home(home), "DP1", GroupKind.PATH, ProcessState.ABENDED)


def test_rows_that_alter_leaves_out_are_not_copied(homes: TwoHomes) -> None:
    homes.write(20)
    homes.start_path()
    homes.until_equal()
    homes.run("STOP DISTPATH dp1")
    before = homes.rows()
    homes.write(5)
    homes.run("ALTER DISTPATH dp1 BEGIN NOW; START DISTPATH dp1")
    until("the path runs", lambda: "At EOF" in homes.run("SEND DISTPATH dp1, STATUS"))
    homes.write(5)
    until("new rows arrive", lambda: len(homes.rows()) >= len(before) + 10)
    assert homes.rows() == before + read_all(homes.read)[-10:]


def test_the_files_of_both_homes_are_equal_and_their_rows_counted(homes: TwoHomes) -> None:
    homes.write(50, max_bytes=2000)
    homes.start_path()
    until_same_files(homes)
    homes.write(50, max_bytes=2000)
    until_same_files(homes)
    assert "200" in homes.run("STATS DISTPATH dp1, TOTAL")
    homes.run("STOP DISTPATH dp1")
    homes.write(50, max_bytes=8000)
    homes.run("START DISTPATH dp1")
    until_same_files(homes)


def test_the_files_are_equal_after_kills_and_cuts(homes: TwoHomes, line: Line) -> None:
    line.cut_after = [4000, 9000, 20_000]
    homes.write(100, max_bytes=5000)
    homes.start_path(line.port)
    for _ in range(2):
        homes.write(200, max_bytes=5000)
        kill(homes.source)
        homes.write(50, max_bytes=5000)
        homes.run("START DISTPATH dp1")
        line.cut()
    until_same_files(homes)


@pytest.mark.slow
def test_the_files_of_a_path_into_the_same_home_are_equal(tmp_path: Path) -> None:
    read, written = TrailName(tmp_path / "dirdat", "ea"), TrailName(tmp_path / "dirdat", "eb")
    Home(tmp_path).ensure()

    def write(csns: range) -> None:
        writer = TrailWriter.open(read, clock=SystemClock(), producer=PRODUCER, max_bytes=4000)
        for csn in csns:
            writer.write(small(csn))
        writer.flush()
        writer.close()

    write(range(1, 100))
    path = "ADD EXTRACT dp1, EXTTRAILSOURCE ./dirdat/ea; ADD EXTTRAIL ./dirdat/eb, EXTRACT dp1; START EXTRACT dp1"
    (tmp_path / "dirprm" / "dp1.prm").write_text("EXTRACT dp1\nEXTTRAIL ./dirdat/eb\nTABLE *.*;\n")
    try:
        done = run_ggshell("--home", tmp_path, "--auto-manager", "-c", path)
        assert done.returncode == 0, done.stdout + done.stderr
        write(range(100, 200))
        until("both trails have the same bytes", lambda: digest(written) == digest(read))
        found = read_process_file(Home(tmp_path).process("DP1", GroupKind.EXTRACT))
        assert found is not None
        os.kill(found.pid, signal.SIGKILL)
        until_state(Home(tmp_path), "DP1", GroupKind.EXTRACT, ProcessState.ABENDED)
        write(range(200, 300))
        run_ggshell("--home", tmp_path, "-c", "START EXTRACT dp1")
        until("both trails have the same bytes", lambda: digest(written) == digest(read))
        assert read_all(written) == read_all(read)
    finally:
        run_ggshell("--home", tmp_path, "-c", "KILL ER *; STOP MANAGER !")
