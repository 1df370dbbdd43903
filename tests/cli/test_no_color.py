"""NO_COLOR turns colors off in everything that ggshell runs at a terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

_COLOR = re.compile(rb"\x1b\[(?:\d+;)*(?:3\d|4\d|9\d|10[0-7])[;m]")
_HELP, _WRONG = ["-c", "HELP ADD EXTRACT"], "wrong.oby"
ENTRIES = {
    "usage": (["--help"], b""),
    "batch": (_HELP, b""),
    "error": (["-c", "INFO NOTHING"], b""),
    "shell": ([], b"HELP ADD EXTRACT\rEXIT\r"),
    "check": (["check", _WRONG], b""),
    "logdump": (["logdump"], b"HELP\rEXIT\r"),
    "logdump batch": (["logdump", "-c", "HELP OPEN"], b""),
    "demo": (["demo", "status"], b""),
}


def terminal_output(folder: Path, arguments: list[str], typed: bytes, **environment: str) -> bytes:
    """What ggshell writes to a terminal; each typed line is sent when its prompt appears."""
    (folder / _WRONG).write_text("INFO NOTHING AT ALL\n")
    master, terminal = pty.openpty()
    variables = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "PROMPT_TOOLKIT_NO_CPR")}
    variables |= {
        "TERM": "xterm-256color",
        "PROMPT_TOOLKIT_NO_CPR": "1",
        "PAGER": "cat",
        "HOME": str(folder),
        **environment,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "ggshell.cli.main", *arguments],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        cwd=folder,
        env=variables,
        start_new_session=True,
    )
    os.close(terminal)
    written, lines = b"", typed.splitlines(keepends=True)
    number = 0
    try:
        while block := os.read(master, 1 << 16):
            written += block
            if number < len(lines) and re.search(rb"\b%d ?>" % (number + 1), written):
                os.write(master, lines[number])
                number += 1
    except OSError:  # Linux reports the end of a terminal with this error
        process.wait(60)
    finally:
        os.close(master)
        process.kill()
        process.wait(60)
    return written


@pytest.mark.parametrize("entry", ENTRIES)
def test_no_color_turns_colors_off_everywhere(entry: str, tmp_path: Path) -> None:
    written = terminal_output(tmp_path, *ENTRIES[entry], NO_COLOR="1")
    assert b"No module" not in written and len(written) > len(ENTRIES[entry][1]) + 20
    assert _COLOR.findall(written) == []


@pytest.mark.parametrize("entry", ["shell", "check"])
def test_a_terminal_has_colors_without_it(entry: str, tmp_path: Path) -> None:
    assert _COLOR.search(terminal_output(tmp_path, *ENTRIES[entry]))
    assert not _COLOR.search(terminal_output(tmp_path, *ENTRIES[entry], TERM="dumb"))
