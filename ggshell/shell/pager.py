"""Long answers at a terminal: shown by a pager, SET PAGER's, $PAGER's, or ``less`` where it is there."""

from __future__ import annotations

import os
import shlex
import shutil
import sys

from ggshell.shell import foreground


def is_long(text: str) -> bool:
    """Whether a text needs more lines than the terminal has (its own long lines count as several)."""
    columns, lines = shutil.get_terminal_size()
    needed = sum(max(1, -(-len(line) // columns)) for line in text.splitlines())
    return needed > lines - 2


def command(chosen: str) -> list[str]:
    """The pager's command; empty when there is none."""
    named = chosen or os.environ.get("PAGER", "")
    if named:
        return shlex.split(named)
    less = shutil.which("less") if os.environ.get("TERM", "dumb") != "dumb" else None
    return [less, "-FRX"] if less else []


def show(text: str, chosen: str = "") -> None:
    """Show a text; as it is where no pager can be started."""
    words = command(chosen)
    try:
        if words:
            foreground.run(words, text)
            return
    except OSError as error:
        sys.stderr.write(f"cannot start the pager {words[0]}: {error.strerror}\n")
    sys.stdout.write(text)
    sys.stdout.flush()
