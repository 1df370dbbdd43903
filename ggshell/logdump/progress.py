"""A progress line on the terminal for long scans."""

from __future__ import annotations

import sys
from typing import Final

from ggshell.clock import Clock

FIRST_SECONDS: Final = 0.5
_CALLS: Final = 0x3FF


class Progress:
    """Shows a percentage twice a second; call it with ``(done, size)`` in bytes as often as needed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next = clock.steady() + FIRST_SECONDS
        self._calls = 0
        self._shown = False

    def begin(self) -> None:
        """Start a statement; nothing is shown for the first half second."""
        self._next, self._calls = self._clock.steady() + FIRST_SECONDS, 0

    def record(self, done: int, size: int) -> None:
        """Report progress after one more record; most calls do nothing."""
        self._calls += 1
        if not self._calls & _CALLS:
            self(done, size)

    def __call__(self, done: int, size: int) -> None:
        now = self._clock.steady()
        if now >= self._next:
            self._next = now + FIRST_SECONDS
            self.line(f"{done * 100 // max(1, size):>3} % of {size >> 20} MB")

    def line(self, text: str) -> None:
        """Replace the line with a text."""
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()
        self._shown = True

    def end(self) -> None:
        """Remove the line."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._shown = False
