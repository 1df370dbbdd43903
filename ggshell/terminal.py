"""What the user's terminal supports, and whether the user allows colors."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
from collections.abc import Iterator
from typing import TextIO


def is_dumb() -> bool:
    """Whether the terminal cannot move its cursor, so that neither redrawn lines nor colors can be used."""
    return os.environ.get("TERM", "dumb").lower() in ("", "dumb", "unknown")


def redraws_lines(stream: TextIO) -> bool:
    """Whether a stream is a terminal that can erase and rewrite a line, as progress does."""
    return stream.isatty() and not is_dumb()


def colors_wanted(stream: TextIO) -> bool:
    """Whether a stream may show colors. It must be a terminal; NO_COLOR with any value turns colors off (no-color.org)."""
    return redraws_lines(stream) and not os.environ.get("NO_COLOR")


def read_line(prompt: str) -> str:
    """Show a prompt and return a line, as ``input`` does. Raises EOFError, and KeyboardInterrupt at Ctrl-C.

    ``input`` loses a Ctrl-C that arrives between its prompt and its read. Here the signal also writes a byte to a
    pipe, and the pipe ends the wait. Call it in the main thread.
    """
    sys.stdout.write(prompt)
    sys.stdout.flush()
    receiver, sender = os.pipe()
    os.set_blocking(sender, False)
    previous = signal.set_wakeup_fd(sender)
    try:
        select.select([sys.stdin, receiver], [], [])
    finally:
        signal.set_wakeup_fd(previous)
        os.close(receiver)
        os.close(sender)
    return input()


def read_hidden(prompt: str) -> str:
    """Show a prompt and return a line that the terminal does not show. Raises EOFError, and KeyboardInterrupt."""
    with _without_echo(sys.stdin.fileno()):
        try:
            return read_line(prompt)
        finally:
            sys.stdout.write("\n")


@contextlib.contextmanager
def _without_echo(descriptor: int) -> Iterator[None]:
    before = termios.tcgetattr(descriptor)
    hidden = [*before]
    hidden[3] &= ~termios.ECHO
    termios.tcsetattr(descriptor, termios.TCSAFLUSH, hidden)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSAFLUSH, before)
