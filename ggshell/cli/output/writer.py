"""Writes results to the screen, the pager and the spool file, in GGSCI's layout or a data format."""

from __future__ import annotations

import sys

from ggshell.cli.outcome import Outcome
from ggshell.cli.output.wrapping import wrapped
from ggshell.cli.results import Narrowing, Note, Repeat, Result, Script, Text
from ggshell.cli.session import Session
from ggshell.errors import GgsError, StatementError


class Output:
    """Writes outcomes.

    ``session_text``: errors are part of the session's output (GGSCI) and do not go to standard error.
    """

    def __init__(self, session: Session, *, session_text: bool) -> None:
        self._session = session
        self._session_text = session_text
        self._number = 0

    @property
    def plain(self) -> bool:
        """Whether the GGSCI layouts are used."""
        return self._session.options.format == "ggsci"

    def write(self, text: str, *, words: bool = False) -> None:
        """Write a text; ``words``: it consists of sentences, which a terminal shows with breaks between words."""
        sys.stdout.write(wrapped(text, sys.stdout) if words else text)
        sys.stdout.flush()
        self._session.spooled(text)

    def echo(self, session: Session, text: str) -> None:
        """Show a statement of a batch or obey file, without secrets, before its result, as GGSCI's OBEY does."""
        self._number += 1
        if session.options.echo and self.plain:
            from ggshell.cli.banner import session_prompt

            self.write(f"\n{session_prompt(session, self._number)}{text}\n")

    def outcome(self, outcome: Outcome, *, paged: bool = True) -> None:
        """Show the outcome of a statement; ``paged``: a long result may go through the pager."""
        if self._session.options.format == "json":
            from ggshell.cli.output.tables import json_line

            if not isinstance(outcome.result, Script | Repeat):
                self.write(json_line(outcome))
            return
        # Notes come before the result: scripts count the lines of tables from the end of a session's output.
        self._aside("".join(note_text(note) for note in outcome.notes))
        early = bool(getattr(outcome.result, "errors_first", False))
        if early:
            self._aside(self._errors(outcome))
        self._answer(outcome, paged=paged)
        if not early:
            self._aside(self._errors(outcome))
        if self._session.timing:
            self._aside(f"Elapsed: {outcome.seconds:.3f} seconds.\n")

    def _errors(self, outcome: Outcome) -> str:
        return "".join(error_text(error, with_code=self._session.interactive) for error in outcome.errors)

    def _answer(self, outcome: Outcome, *, paged: bool) -> None:
        result = outcome.result
        if result is None or isinstance(result, Script | Repeat):
            return
        if self.plain:
            text = self._layout(result)
        else:
            from ggshell.cli.output.tables import render

            text = render(result, self._session.options.format)
        if paged and self._session.interactive and self._session.pager != "OFF":
            from ggshell.cli.output import programs

            if programs.is_long(text):
                self._session.spooled(text)
                programs.show(text, self._session.pager)
                return
        self.write(text, words=self.plain and not isinstance(result, Text))

    def _layout(self, result: Result) -> str:
        """The layout of GGSCI. For a person, a table that is wider than the terminal has another form."""
        text = result.layout
        if self._session.interactive and isinstance(result, Narrowing):
            from ggshell.cli.output.tables import is_too_wide

            return result.narrow_layout if is_too_wide(text) else text
        return text

    def _aside(self, text: str) -> None:
        """Write text that is not part of the result: to standard error, or to the output of a session."""
        if not text:
            return
        if self._session_text and self.plain:
            self.write(text, words=True)
            return
        sys.stdout.flush()
        sys.stderr.write(wrapped(text, sys.stderr))
        sys.stderr.flush()
        self._session.spooled(text)


def note_text(note: Note) -> str:
    """Format a warning as a line."""
    return f"WARNING {note.code}  {note.message}\n"


def error_text(error: GgsError, *, with_code: bool = False) -> str:
    """Format an error: ``ERROR: what (where)``, then the statement with the position marked, and the hint.

    ``with_code``: the hint also names the page of the error's code, for a person; scripts parse the other form.
    """
    where = f" ({error.where})" if error.where else ""
    lines = [f"ERROR: {error.message}{where}"]
    if isinstance(error, StatementError) and error.source:
        lines += [f"  {error.source}", "  " + " " * (error.column - 1) + "^"]
    page = f"HELP {error.code}" if with_code else ""
    if error.hint:
        lines.append(f"  Hint: {error.hint}{f' ({page})' if page else ''}")
    elif page:
        lines.append(f"  Hint: {page}")
    return "\n".join(lines) + "\n"
