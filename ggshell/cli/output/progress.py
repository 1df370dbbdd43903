"""Shows a progress line on the terminal if a statement takes more than a second, and removes it at the end."""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ggshell.clock import SystemClock
from ggshell.language.redaction import redacted

FIRST_SECONDS = 1.0
EVERY_SECONDS = 0.5
_OWN_TERMINAL = ("EDIT", "SHELL", "HOST", "SH", "VIEW", "HELP", "WATCH", "LOGDUMP")
_LONGEST, _SHORTEST = 50, 7
"""The most and the least characters of the statement in the line."""
_BETWEEN = " ... "


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
                    sys.stderr.write(f"\r\x1b[K{_fitted(text, clock.steady() - began, self._progress)}")
                    sys.stderr.flush()
                    self._shown = True


def _fitted(text: str, seconds: float, progress: str) -> str:
    """The line, no longer than the terminal is wide, because a line that wraps cannot be removed.

    The statement is cut or left out before the progress.
    """
    width = shutil.get_terminal_size().columns - 1
    rest = f"{seconds:.0f} s {progress}".rstrip()
    room = width - len(rest) - len(_BETWEEN)
    return f"{text[:room]}{_BETWEEN}{rest}" if room >= _SHORTEST else rest[:width]


def _short(text: str) -> str:
    flat = " ".join(redacted(text).split())
    return flat if len(flat) <= _LONGEST else f"{flat[: _LONGEST - 3]}..."
