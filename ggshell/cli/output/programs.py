"""Runs programs that take over the terminal: the editor, and the pager for long results.

They handle Ctrl-C; the shell keeps waiting.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence


def run(words: Sequence[str], text: str | None = None) -> int:
    """Run a program until it ends, optionally with a text as its input, and return its exit code. Raises OSError."""
    process = subprocess.Popen(
        list(words), stdin=None if text is None else subprocess.PIPE, text=True, errors="replace"
    )
    if process.stdin is not None and text is not None:
        # A pager that is closed early breaks the pipe; Ctrl-C in it reaches this process too.
        with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
            process.stdin.write(text)
        with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
            process.stdin.close()
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


def is_long(text: str) -> bool:
    """Whether a text needs more lines than the terminal has; a long line counts as several."""
    columns, lines = shutil.get_terminal_size()
    needed = sum(max(1, -(-len(line) // columns)) for line in text.splitlines())
    return needed > lines - 2


def pager_command(chosen: str) -> list[str]:
    """The command of the pager: that of SET PAGER, of $PAGER, or ``less`` if it exists; empty if there is none."""
    named = chosen or os.environ.get("PAGER", "")
    if named:
        return shlex.split(named)
    less = shutil.which("less") if os.environ.get("TERM", "dumb") != "dumb" else None
    return [less, "-FRX"] if less else []


def show(text: str, chosen: str = "") -> None:
    """Show a text in the pager, or directly if no pager can be started."""
    words = pager_command(chosen)
    try:
        if words:
            run(words, text)
            return
    except OSError as error:
        sys.stderr.write(f"cannot start the pager {words[0]}: {error.strerror}\n")
    sys.stdout.write(text)
    sys.stdout.flush()
