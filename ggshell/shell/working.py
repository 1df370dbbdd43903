"""A line that a statement works, once it takes longer than a moment; only on a terminal, and gone when it ends."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ggshell.clock import SystemClock
from ggshell.shell.redaction import redacted

FIRST_SECONDS = 1.0
EVERY_SECONDS = 0.5
_OWN_TERMINAL = ("EDIT", "SHELL", "HOST", "SH", "VIEW", "HELP", "WATCH", "LOGDUMP")
_LONGEST = 50


class Working:
    """Shows the line on standard error.  ``pause`` takes it away for a question."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._shown = False
        self._progress = ""

    def progress(self, text: str) -> None:
        """How far the statement is, to stand behind it."""
        self._progress = text

    @contextmanager
    def line(self, text: str) -> Iterator[None]:
        """Show the line while the block runs, unless the statement uses the terminal itself."""
        words = text.split()
        if not words or words[0].upper() in _OWN_TERMINAL:
            yield
            return
        self._ended, self._progress = threading.Event(), ""
        thread = threading.Thread(target=self._run, args=(self._ended, _short(text)), name="working", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self.pause()

    def pause(self) -> None:
        """Take the line away; it does not come back for this statement."""
        self._ended.set()
        with self._lock:
            if self._shown:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()
                self._shown = False

    def _run(self, ended: threading.Event, text: str) -> None:
        clock = SystemClock()
        began = clock.steady()
        pause = FIRST_SECONDS
        while not ended.wait(pause):
            pause = EVERY_SECONDS
            with self._lock:
                if not ended.is_set():
                    sys.stderr.write(f"\r\x1b[K{text} ... {clock.steady() - began:.0f} s {self._progress}".rstrip())
                    sys.stderr.flush()
                    self._shown = True


def _short(text: str) -> str:
    flat = " ".join(redacted(text).split())
    return flat if len(flat) <= _LONGEST else f"{flat[: _LONGEST - 3]}..."
