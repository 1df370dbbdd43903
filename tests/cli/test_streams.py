"""Standard streams that are closed or full: one line on standard error, no traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def run(home: Path, words: str, redirection: str) -> tuple[int, str]:
    """Run ggshell with a redirection of a POSIX shell; returns the exit code and standard error."""
    command = f'"{sys.executable}" -m ggshell.cli.main --home "{home}" {words} {redirection}'
    done = subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_a_closed_standard_output_is_refused(tmp_path: Path) -> None:
    said = "ggshell: standard output is closed - redirect it to a file or to /dev/null\n"
    assert run(tmp_path, '-c "INFO ALL"', ">&-") == (2, said)


@pytest.mark.parametrize("words", ['-c "INFO ALL"', "--help", "--format json -c VERSIONS"])
def test_a_full_standard_output_is_reported(tmp_path: Path, words: str) -> None:
    said = "ERROR: GGS-00303  cannot write to standard output: No space left on device\n"
    assert run(tmp_path, words, ">/dev/full") == (1, said)


@pytest.mark.parametrize("words", ["", "-c VERSIONS", "-c BAD"])
def test_a_closed_standard_input_or_error_is_empty(tmp_path: Path, words: str) -> None:
    code = 3 if "BAD" in words else 0
    assert run(tmp_path, words, "<&- 2>&-") == (code, "")
