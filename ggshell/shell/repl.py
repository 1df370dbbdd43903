"""The shell in a terminal: line editing and a history that keeps no secrets."""

from __future__ import annotations

import os
import sys
from getpass import getpass
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory

from ggshell.shell.conversation import Conversation
from ggshell.shell.redaction import redacted
from ggshell.shell.session import Session


class _Discreet(FileHistory):
    """Keeps statements without their passwords, in the file and for the arrow keys."""

    def append_string(self, string: str) -> None:
        super().append_string(redacted(string))


def history_file() -> Path:
    """Where the statements of earlier shells are kept, for the owner alone."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "ggshell"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / "history"
    path.touch(mode=0o600)
    return path


def run(session: Session) -> int:
    """Talk with the person at the terminal until EXIT or the end of the input."""
    lines: PromptSession[str] = PromptSession(history=_Discreet(str(history_file())))

    def read(shown: str) -> str | None:
        # The empty line before a prompt stays above the edited line.
        blank, prompt = ("\n", shown[1:]) if shown.startswith("\n") else ("", shown)
        sys.stdout.write(blank)
        sys.stdout.flush()
        try:
            return lines.prompt(prompt)
        except KeyboardInterrupt:
            return ""
        except EOFError:
            return None

    def ask(question: str, hidden: bool) -> str:
        try:
            # getpass hides what is typed on every terminal, also on those without cursor movement.
            return getpass(question) if hidden else input(question)
        except (KeyboardInterrupt, EOFError):
            return ""

    session.ask, session.interactive = ask, True
    return Conversation(session, read).run()
