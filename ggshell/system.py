"""Operating system commands that a user runs from a shell (SHELL, HOST, Logdump's X)."""

from __future__ import annotations

import subprocess
from typing import NamedTuple


class Done(NamedTuple):
    """A command's exit code, and its output if it did not write to the terminal directly."""

    code: int
    output: str


def run_command(text: str, *, terminal: bool) -> Done:
    """Run a command line until it ends.

    With ``terminal``, the command reads and writes the terminal; otherwise it has no input and its output is returned.
    """
    done = subprocess.run(
        ["/bin/sh", "-c", text],
        check=False,
        stdin=None if terminal else subprocess.DEVNULL,
        stdout=None if terminal else subprocess.PIPE,
        stderr=None if terminal else subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    return Done(done.returncode, done.stdout or "")
