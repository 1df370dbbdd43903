"""Logdump's lines at a terminal: editing, completion, a history of its own."""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory, History
from prompt_toolkit.input import Input
from prompt_toolkit.output import Output as Screen

from ggshell.logdump.session import Session
from ggshell.shell.complete import DumpCompleter
from ggshell.shell.repl import history_file


def terminal(session: Session) -> Callable[[str], str | None]:
    """Shows a prompt and reads a line; None at the end.  X gets the terminal."""
    session.interactive = True
    return reader(FileHistory(str(history_file("logdump-history"))))


def reader(history: History, screen: tuple[Input, Screen] | None = None) -> Callable[[str], str | None]:
    """``screen``: other than the real one (tests)."""
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
