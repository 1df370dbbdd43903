"""The shell in a terminal: line editing, completion, colours, a bottom line, and a history that keeps no secrets."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from getpass import getpass
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.history import FileHistory, History
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import Output as Screen
from prompt_toolkit.styles import DynamicStyle

from ggshell.shell.complete import StatementCompleter
from ggshell.shell.conversation import Conversation
from ggshell.shell.live_names import LiveNames
from ggshell.shell.output import is_dumb
from ggshell.shell.overview import Watcher
from ggshell.shell.redaction import redacted
from ggshell.shell.repl_colors import STYLE, StatementLexer
from ggshell.shell.session import Session
from ggshell.shell.working import Working
from ggshell.syntax.statement import without_comment

REFRESH_SECONDS = 2.0


class _Discreet(FileHistory):
    """Keeps statements without their passwords, in the file and for the arrow keys."""

    def append_string(self, string: str) -> None:
        super().append_string(redacted(string))


def history_file(name: str = "history") -> Path:
    """Where the statements of earlier shells are kept, for the owner alone."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "ggshell"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / name
    path.touch(mode=0o600)
    path.chmod(0o600)
    return path


def is_whole(text: str) -> bool:
    """Whether Enter may send a text: it does not go on with ``&``, and no quote or parenthesis stands open."""
    lines = [without_comment(line).rstrip() for line in text.splitlines()]
    if lines and lines[-1].endswith("&"):
        return False
    bare = re.sub(r"\"[^\"\n]*\"|'[^'\n]*'", "", "\n".join(lines))
    return bare.count("(") <= bare.count(")") or bare.rstrip().endswith(";")


def keys() -> KeyBindings:
    """Enter sends what is whole and else begins a new line; on an empty line it always sends."""
    bindings = KeyBindings()

    @bindings.add("enter", filter=has_focus(DEFAULT_BUFFER))  # not while the history is searched
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state and buffer.complete_state.current_completion:
            buffer.complete_state = None
        elif is_whole(buffer.text) or not buffer.document.current_line.strip():
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return bindings


def prompt_session(
    session: Session,
    history: History,
    toolbar: Callable[[], str] | None = None,
    terminal: tuple[Input, Screen] | None = None,
) -> PromptSession[str]:
    """The line editor.  ``terminal``: other than the real one (tests)."""
    colors = Condition(lambda: session.color)
    given, screen = terminal or (None, None)
    return PromptSession(
        history=history,
        completer=StatementCompleter(LiveNames(session)),
        complete_while_typing=False,
        complete_in_thread=True,
        auto_suggest=AutoSuggestFromHistory(),
        enable_history_search=True,
        lexer=StatementLexer(),
        style=DynamicStyle(lambda: STYLE if colors() else None),
        multiline=True,
        prompt_continuation=lambda width, *_: " " * max(0, width - 2) + "> ",
        key_bindings=keys(),
        bottom_toolbar=toolbar,
        refresh_interval=REFRESH_SECONDS if toolbar else 0,
        input=given,
        output=screen,
    )


def run(session: Session) -> int:
    """Talk with the person at the terminal until EXIT or the end of the input."""
    working = Working()
    if is_dumb() or os.environ.get("NO_COLOR"):
        session.options = session.options._replace(color=False)
    watcher = None if is_dumb() else Watcher(session)

    def ask(question: str, hidden: bool) -> str:
        working.pause()
        try:
            # getpass hides what is typed on every terminal, also on those without cursor movement.
            return getpass(question) if hidden else input(question)
        except (KeyboardInterrupt, EOFError):
            return ""

    session.ask, session.interactive = ask, True
    if not is_dumb():
        session.busy, session.progress = working.line, working.progress
    lines = prompt_session(session, _Discreet(str(history_file())), watcher.text if watcher else None)
    try:
        return Conversation(session, lambda shown: _read(lines, watcher, shown)).run()
    finally:
        if watcher is not None:
            watcher.close()


def _read(lines: PromptSession[str], watcher: Watcher | None, shown: str) -> str | None:
    """A statement or a pasted script; Ctrl-C gives an empty line, Ctrl-D the end."""
    # The empty line before a prompt stays above the edited line.
    blank, prompt = ("\n", shown[1:]) if shown.startswith("\n") else ("", shown)
    sys.stdout.write(blank)
    sys.stdout.flush()
    if watcher is not None:
        watcher.look()
    try:
        return lines.prompt(prompt)
    except KeyboardInterrupt:
        return ""
    except EOFError:
        return None
