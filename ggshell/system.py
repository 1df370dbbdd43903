"""Commands of the operating system, as a shell's user gives them (SHELL, HOST, Logdump's X)."""

from __future__ import annotations

import subprocess
from typing import NamedTuple


class Done(NamedTuple):
    """How a command ended, and what it wrote where it did not have the terminal itself."""

    code: int
    output: str


def run_command(text: str, *, terminal: bool) -> Done:
    """Run a command line until it ends; with ``terminal`` it reads and writes there, otherwise it has no input."""
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
