"""The interactive shell: line editing, completion, colors, a status bar, and a history without passwords."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
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

from ggshell.cli.complete import LiveNames, StatementCompleter
from ggshell.cli.conversation import Conversation
from ggshell.cli.output.progress import Working
from ggshell.cli.repl_colors import STYLE, StatementLexer
from ggshell.cli.session import Session
from ggshell.cli.status_bar import Watcher
from ggshell.language.redaction import ends_open, redacted
from ggshell.language.statement import without_comment
from ggshell.terminal import colors_wanted, is_dumb, read_hidden, read_line

REFRESH_SECONDS = 2.0


class _Discreet(FileHistory):
    """A history that removes passwords from statements, both in the file and for the arrow keys."""

    _suspect = False

    def append_string(self, string: str) -> None:
        suspect, self._suspect = self._suspect, ends_open(string)
        super().append_string(redacted(string, suspect=suspect))


def history_file(name: str = "history") -> Path:
    """Return the file with the statements of earlier shells; only its owner can read it."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "ggshell"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / name
    path.touch(mode=0o600)
    path.chmod(0o600)
    return path


def is_whole(text: str) -> bool:
    """Whether Enter submits a text.

    It does not if the text ends with ``&``, or if a parenthesis is open and the text does not end with ``;``.
    """
    lines = [without_comment(line).rstrip() for line in text.splitlines()]
    if lines and lines[-1].endswith("&"):
        return False
    bare = re.sub(r"\"[^\"\n]*\"|'[^'\n]*'", "", "\n".join(lines))
    return bare.count("(") <= bare.count(")") or bare.rstrip().endswith(";")


def keys() -> KeyBindings:
    """Key bindings: Enter submits a complete statement, and otherwise begins a new line.

    On an empty line, Enter always submits.
    """
    bindings = KeyBindings()

    @bindings.add("enter", filter=has_focus(DEFAULT_BUFFER))  # not during a history search
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
    """Create the line editor. ``terminal``: replaces the real terminal in tests."""
    colors = Condition(lambda: session.color)
    given, screen = terminal or (None, None)
    return PromptSession(
        history=history,
        completer=StatementCompleter(LiveNames(session)),
        complete_while_typing=False,
        complete_in_thread=True,
        auto_suggest=AutoSuggestFromHistory(),
        enable_history_search=True,
        search_ignore_case=True,
        lexer=StatementLexer(),
        style=DynamicStyle(lambda: STYLE if colors() else None),
        multiline=True,
        vi_mode=session.options.key_bindings == "vi",
        prompt_continuation=lambda width, *_: " " * max(0, width - 2) + "> ",
        key_bindings=keys(),
        bottom_toolbar=toolbar,
        refresh_interval=REFRESH_SECONDS if toolbar else 0,
        input=given,
        output=screen,
    )


def run(session: Session) -> int:
    """Run the interactive shell until EXIT or the end of the input."""
    working = Working()
    if not colors_wanted(sys.stdout):
        session.options = session.options._replace(color=False)
    watcher = None if is_dumb() else Watcher(session)

    def ask(question: str, hidden: bool) -> str:
        working.pause()
        try:
            return read_hidden(question) if hidden else read_line(question)
        except EOFError:
            return ""

    session.ask, session.interactive = ask, True
    if session.options.connect:
        from ggshell.cli.connecting import connect_at_start

        for error in connect_at_start(session).errors:
            raise error
    if not is_dumb():
        session.busy, session.progress = working.line, working.progress
    history = _Discreet(str(history_file()))
    if watcher is None:
        return Conversation(session, lambda shown: _read_plain(history, shown)).run()
    lines = prompt_session(session, history, watcher.text)

    def read(shown: str) -> str | None:
        watcher.refresh()
        return _read(lines, shown)

    try:
        return Conversation(session, read).run()
    finally:
        watcher.close()


def _read(lines: PromptSession[str], shown: str) -> str | None:
    """Read a statement or a pasted script; None at Ctrl-D. Raises KeyboardInterrupt at Ctrl-C."""
    # The blank line before a prompt stays above the line being edited.
    blank, prompt = ("\n", shown[1:]) if shown.startswith("\n") else ("", shown)
    sys.stdout.write(blank)
    sys.stdout.flush()
    try:
        return lines.prompt(prompt)
    except EOFError:
        return None


def _read_plain(history: History, shown: str) -> str | None:
    """Read a statement on a terminal without cursor movement; None at Ctrl-D. Raises KeyboardInterrupt at Ctrl-C.

    The terminal itself edits the line. A line editor would show its prompt before it can receive Ctrl-C.
    """
    try:
        text = read_line(shown)
        while text.strip() and not is_whole(text):
            text += "\n" + read_line("> ")
    except EOFError:
        return None
    if text.strip():
        history.append_string(text)
    return text
