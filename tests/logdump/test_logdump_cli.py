"""Logdump as a program: heredocs, statements, obey files, exit codes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from logdump.dumps import small_trail

pytestmark = pytest.mark.slow


def run(*words: str, typed: str = "", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ggshell.cli.main", "logdump", *words]
    return subprocess.run(command, input=typed, capture_output=True, text=True, check=False, cwd=cwd)


def test_a_heredoc_runs_as_a_session_with_banner_and_prompts(tmp_path: Path) -> None:
    file = small_trail(tmp_path).file(0)
    ran = run(typed=f"open {file}\ncount\nwonder\nexit\nn\n")
    assert ran.returncode == 0
    assert "ggshell Log File Dump Utility" in ran.stdout
    assert f"Logdump 1 >Current LogTrail is {file}\n" in ran.stdout
    assert "Logdump 2 >LogTrail" in ran.stdout
    assert "ERROR: unknown Logdump command wonder" in ran.stdout
    assert "Logdump 5 >" not in ran.stdout


def test_statements_and_a_file_on_the_command_line(tmp_path: Path) -> None:
    file = small_trail(tmp_path).file(0)
    ran = run("-c", "pos last", "-c", "n", str(file))
    assert (ran.returncode, "Delete" in ran.stdout) == (0, True)
    assert run("-c", "wonder", str(file)).returncode == 1
    missing = run("-c", "count", "-c", "n", str(tmp_path / "none"))
    assert (missing.returncode, missing.stdout.count("ERROR")) == (1, 1)
    assert run("--wonder").returncode == 2
    assert "usage:" in run("--help").stdout


def test_a_link_named_logdump_runs_logdump(tmp_path: Path) -> None:
    file, link = small_trail(tmp_path).file(0), tmp_path / "logdump"
    link.symlink_to(Path(sys.executable).with_name("ggshell"))
    ran = subprocess.run([link, "-c", "count", file], capture_output=True, text=True, check=False)
    assert (ran.returncode, "Average of 6 Transactions" in ran.stdout) == (0, True)


def test_an_obey_file_and_a_log(tmp_path: Path) -> None:
    file = small_trail(tmp_path).file(0)
    (tmp_path / "look.oby").write_text(f"-- a look\nopen {file}\nsft delete\n")
    ran = run("-c", "log to seen.txt", "-c", "obey look.oby", "-c", "log stop", "-c", "fc open", cwd=tmp_path)
    assert ran.returncode == 0
    assert "Delete" in (tmp_path / "seen.txt").read_text()
    assert ran.stdout.count("Current LogTrail is") == 2
    (tmp_path / "circle.oby").write_text("obey circle.oby\n")
    assert "deeper than 16" in run("-c", "obey circle.oby", cwd=tmp_path).stdout
