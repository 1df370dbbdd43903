"""A line on the terminal that says how far a long look is; nothing where nobody watches."""

from __future__ import annotations

import sys
from typing import Final

from ggshell.clock import Clock

FIRST_SECONDS: Final = 0.5
_CALLS: Final = 0x3FF


class Progress:
    """Told ``(done, size)`` in bytes as often as one likes; shows a percentage twice a second."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next = clock.steady() + FIRST_SECONDS
        self._calls = 0
        self._shown = False

    def begin(self) -> None:
        """A statement begins: it has a moment before anything is shown."""
        self._next, self._calls = self._clock.steady() + FIRST_SECONDS, 0

    def record(self, done: int, size: int) -> None:
        """So far after one more record: most calls do nothing."""
        self._calls += 1
        if not self._calls & _CALLS:
            self(done, size)

    def __call__(self, done: int, size: int) -> None:
        now = self._clock.steady()
        if now >= self._next:
            self._next = now + FIRST_SECONDS
            self.line(f"{done * 100 // max(1, size):>3} % of {size >> 20} MB")

    def line(self, text: str) -> None:
        """Show a text in place of the last one."""
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()
        self._shown = True

    def end(self) -> None:
        """Take the line away."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._shown = False
