"""Shows a progress line on the terminal if a statement takes more than a second, and removes it at the end."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ggshell.clock import SystemClock
from ggshell.language.redaction import redacted

FIRST_SECONDS = 1.0
EVERY_SECONDS = 0.5
_OWN_TERMINAL = ("EDIT", "SHELL", "HOST", "SH", "VIEW", "HELP", "WATCH", "LOGDUMP")
_LONGEST = 50


class Working:
    """Shows the line on standard error. ``pause`` removes it before a question."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._shown = False
        self._progress = ""

    def progress(self, text: str) -> None:
        """Set the progress text that follows the statement."""
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
        try:
            thread.start()
            yield
        finally:
            self.pause()

    def pause(self) -> None:
        """Remove the line for the rest of this statement. A Ctrl-C during the call takes effect after it."""
        interrupted = None
        while True:
            try:
                self._remove()
                break
            except KeyboardInterrupt as error:
                interrupted = error
        if interrupted is not None:
            raise interrupted

    def _remove(self) -> None:
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
