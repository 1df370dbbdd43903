"""A program in a pseudo terminal: types at a human pace, waits for prompts, and records the output with its times."""

from __future__ import annotations

import fcntl
import os
import pty
import random
import re
import select
import struct
import termios
import time
from pathlib import Path

from recorder.screen import Recording, TerminalScreen

COLUMNS, LINES = 100, 28
LONGEST_WAIT = 0.7
"""Seconds: a longer wait for an answer is shortened to this."""
PACE = 0.03
"""Mean seconds between two keys."""
QUIET = 0.15
"""Seconds without output after which a prompt counts as waiting for input."""
_CHUNK = 1 << 16


class Terminal:
    """A running program, and the record of what it wrote."""

    def __init__(self, command: list[str], environment: dict[str, str], folder: Path) -> None:
        self.record: Recording = []
        self._screen = TerminalScreen(COLUMNS, LINES, self._reply)
        self._random = random.Random(16)  # the same rhythm in every recording
        self._time, self._last = 0.0, time.monotonic()
        self._pid, self._descriptor = pty.fork()
        if self._pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
            os.chdir(folder)
            os.execvpe(command[0], command, environment)  # noqa: S606

    def _reply(self, text: str) -> None:
        """Answer a question of the program, such as where the cursor is."""
        os.write(self._descriptor, text.encode())

    def _read(self, seconds: float) -> bool:
        """Take the output of the next moments; whether there was any."""
        ready, _, _ = select.select([self._descriptor], [], [], seconds)
        now = time.monotonic()
        self._time, self._last = self._time + now - self._last, now
        if not ready:
            return False
        data = os.read(self._descriptor, _CHUNK)
        self.record.append((self._time, data))
        self._screen.feed(data)
        return True

    def type(self, text: str) -> None:
        """Press the keys of a text one after the other, then Enter."""
        for key in text:
            first, began = len(self.record), self._time
            pace = PACE * self._random.uniform(0.5, 1.5)
            os.write(self._descriptor, key.encode())
            end = time.monotonic() + pace
            while (left := end - time.monotonic()) > 0:
                self._read(left)
            self._shorten(first, began, pace)
        self.rest(0.25)
        os.write(self._descriptor, b"\r")

    def wait(self, prompt: str, *, seconds: float = 60.0) -> None:
        """Wait until the text before the cursor matches a prompt; the record shows at most LONGEST_WAIT of it."""
        first, began = len(self.record), self._time
        limit = time.monotonic() + seconds
        while self._read(QUIET) or not re.fullmatch(prompt, self._screen.before_cursor()):
            if time.monotonic() > limit:
                raise TimeoutError(f"no prompt within {seconds:.0f} seconds")
        self._shorten(first, began, LONGEST_WAIT)

    def _shorten(self, first: int, began: float, longest: float) -> None:
        """Let what was recorded since a moment take at most some seconds."""
        took = self._time - began
        if took > longest:
            part = longest / took
            self.record[first:] = [(began + (when - began) * part, data) for when, data in self.record[first:]]
            self._time = began + longest

    def rest(self, seconds: float) -> None:
        """Do not change the picture for some seconds of the record; this takes no real time."""
        self._time += seconds

    def pause(self) -> None:
        """Do not count the time since the last output: something happened that the record does not show."""
        self._last = time.monotonic()

    def text(self) -> str:
        """What the screen shows now."""
        return "\n".join(self._screen.display)

    def close(self) -> None:
        """Hang up, and wait for the end of the program."""
        os.close(self._descriptor)
        os.waitpid(self._pid, 0)
