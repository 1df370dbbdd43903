"""Line input for Logdump at a terminal: editing, completion, and a separate history."""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory, History
from prompt_toolkit.input import Input
from prompt_toolkit.output import Output as Screen

from ggshell.cli.complete import DumpCompleter
from ggshell.cli.repl import history_file
from ggshell.logdump.state import LogdumpSession


def terminal(session: LogdumpSession) -> Callable[[str], str | None]:
    """Return a function that shows a prompt and reads a line, or returns None at the end of the input."""
    session.interactive = True
    return reader(FileHistory(str(history_file("logdump-history"))))


def reader(history: History, screen: tuple[Input, Screen] | None = None) -> Callable[[str], str | None]:
    """Return the reader of lines. ``screen``: replaces the real terminal in tests."""
    given, shown = screen or (None, None)
    lines: PromptSession[str] = PromptSession(
        history=history,
        completer=DumpCompleter(),
        complete_while_typing=False,
        enable_history_search=True,
        input=given,
        output=shown,
    )

    def read(prompt: str) -> str | None:
        try:
            return lines.prompt(prompt)
        except KeyboardInterrupt:
            return ""
        except EOFError:
            return None

    return read
