"""Programs that have the terminal for a while: editor and pager.  Ctrl-C is theirs, and does not end the shell's waiting."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Sequence


def run(words: Sequence[str], text: str | None = None) -> int:
    """Run a program until it ends, with a text as its input when there is one; its exit code.  Raises OSError."""
    process = subprocess.Popen(
        list(words), stdin=None if text is None else subprocess.PIPE, text=True, errors="replace"
    )
    if process.stdin is not None and text is not None:
        # A pager that is left early breaks the pipe, Ctrl-C within it reaches this process too.
        with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
            process.stdin.write(text)
        with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
            process.stdin.close()
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue
