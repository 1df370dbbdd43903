"""Where answers go: GGSCI's own text, or data in the format that was asked for; the screen, the pager, the spool file."""

from __future__ import annotations

import os
import sys

from ggshell.errors import GgsError, StatementError
from ggshell.shell.execute import Outcome
from ggshell.shell.results import InfoAll, Note, Repeat, Script
from ggshell.shell.session import Session


class Output:
    """Writes outcomes.  ``session_text``: errors belong into the conversation (a GGSCI session), not to standard error."""

    def __init__(self, session: Session, *, session_text: bool) -> None:
        self._session = session
        self._session_text = session_text
        self._number = 0

    @property
    def plain(self) -> bool:
        """Whether the layouts of GGSCI are wanted."""
        return self._session.options.format == "ggsci"

    def write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()
        self._session.spooled(text)

    def echo(self, session: Session, text: str) -> None:
        """Show a statement of a batch or an obey file before its answer, as GGSCI's OBEY does."""
        self._number += 1
        if session.options.echo and self.plain:
            from ggshell.shell.banner import prompt
            from ggshell.shell.redaction import redacted

            self.write(f"\n{prompt(self._number, str(session.login or ''))}{redacted(text)}\n")

    def outcome(self, outcome: Outcome, *, paged: bool = True) -> None:
        """Show what became of a statement; a long answer by the pager, unless it is not to be ``paged``."""
        if self._session.options.format == "json":
            from ggshell.shell.render import json_line

            if not isinstance(outcome.result, Script | Repeat):
                self.write(json_line(outcome))
            return
        # Before the answer: scripts count the lines of tables from the end of what a session prints.
        self._aside("".join(note_text(note) for note in outcome.notes))
        early = isinstance(outcome.result, InfoAll)
        if early:
            self._aside("".join(map(error_text, outcome.errors)))
        self._answer(outcome, paged=paged)
        if not early:
            self._aside("".join(map(error_text, outcome.errors)))
        if self._session.timing:
            self._aside(f"Elapsed: {outcome.seconds:.3f} seconds.\n")

    def _answer(self, outcome: Outcome, *, paged: bool) -> None:
        result = outcome.result
        if result is None or isinstance(result, Script | Repeat):
            return
        if self.plain:
            from ggshell.shell.layout import ggsci

            text = ggsci(result)
        else:
            from ggshell.shell.render import render

            text = render(result, self._session.options.format)
        if paged and self._session.interactive and self._session.pager != "OFF":
            from ggshell.shell import pager

            if pager.is_long(text):
                self._session.spooled(text)
                pager.show(text, self._session.pager)
                return
        self.write(text)

    def _aside(self, text: str) -> None:
        """What is no answer: to standard error, or into the conversation of a session."""
        if not text:
            return
        if self._session_text and self.plain:
            self.write(text)
            return
        sys.stdout.flush()
        sys.stderr.write(text)
        sys.stderr.flush()
        self._session.spooled(text)


def is_dumb() -> bool:
    """Whether the terminal cannot move its cursor: then there is no line that comes and goes, and no colour."""
    return os.environ.get("TERM", "dumb").lower() in ("", "dumb", "unknown")


def note_text(note: Note) -> str:
    """A warning on a line of its own."""
    return f"WARNING {note.code}  {note.message}\n"


def error_text(error: GgsError) -> str:
    """``ERROR: what (where)``, the spot underlined where there is one, and a hint on a line of its own."""
    where = f" ({error.where})" if error.where else ""
    lines = [f"ERROR: {error.message}{where}"]
    if isinstance(error, StatementError) and error.source:
        lines += [f"  {error.source}", "  " + " " * (error.column - 1) + "^"]
    if error.hint:
        lines.append(f"  Hint: {error.hint}")
    return "\n".join(lines) + "\n"
