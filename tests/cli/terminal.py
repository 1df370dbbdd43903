"""A shell in a pseudo terminal, for tests."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import sys
from pathlib import Path


class Terminal:
    """A shell in a pseudo terminal; ``type`` enters a line and returns the output up to the next prompt."""

    def __init__(self, home: Path, state: Path, **environment: str) -> None:
        self._pid, self.descriptor = pty.fork()
        if self._pid == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # a test run in the background ignores SIGINT
            os.environ.update(TERM="dumb", XDG_STATE_HOME=str(state), PROMPT_TOOLKIT_NO_CPR="1", **environment)
            os.execv(sys.executable, [sys.executable, "-m", "ggshell.cli.main", "--home", str(home)])  # noqa: S606
        self.begin = self._until(rb"1>")

    def _until(self, pattern: bytes) -> str:
        seen = b""
        while not re.search(pattern, seen):
            ready, _, _ = select.select([self.descriptor], [], [], 20)
            assert ready, seen
            try:
                seen += os.read(self.descriptor, 1 << 16)
            except OSError:
                break
        return seen.decode()

    def type(self, text: str, pattern: str) -> str:
        os.write(self.descriptor, text.encode() + b"\r")
        return self._until(pattern.encode())

    def interrupt(self) -> str:
        """Press Ctrl-C; returns the output up to the next prompt."""
        os.write(self.descriptor, b"\x03")
        return self._until(rb"\d> ")

    def end(self) -> int:
        os.write(self.descriptor, b"exit\r")
        self._until(rb"never")
        _, status = os.waitpid(self._pid, 0)
        os.close(self.descriptor)
        return os.waitstatus_to_exitcode(status)
