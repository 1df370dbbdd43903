"""Runs a GGSCI session, with or without a terminal: banner, prompts, statements and results.

A session continues after an error. Published monitoring scripts send statements to standard input and parse the whole
output, including the prompts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ggshell.cli.banner import banner, session_prompt
from ggshell.cli.execute import execute, located
from ggshell.cli.outcome import Outcome
from ggshell.cli.output.writer import Output
from ggshell.cli.results import Repeat, Script
from ggshell.cli.session import Session
from ggshell.clock import local_text
from ggshell.errors import GgsError, NotFoundError, StateError
from ggshell.language.fix import fixed
from ggshell.language.redaction import ends_open, redacted
from ggshell.language.statement import Statement, split

CLEAR = "\x1b[2J\x1b[H"
Reader = Callable[[str], str | None]
"""Shows a prompt and returns a line, or None at the end of the input.

Raises KeyboardInterrupt if Ctrl-C cancels the line.
"""


class Conversation:
    """A session that takes its lines from any reader."""

    def __init__(self, session: Session, read: Reader) -> None:
        self._session = session
        self._read = read
        self._output = Output(session, session_text=True)
        self._number = 0
        self._suspect = False
        """Whether the last line ends where a password is expected, so that the next line may be that password."""

    def run(self) -> int:
        """Run the session until EXIT or the end of the input; always returns 0, as GGSCI does."""
        if self._output.plain:
            self._output.write(banner(admin_client=self._session.options.admin_client))
        while not self._session.finished:
            text = self._statement()
            if text is None:
                break
            self._answer(text)
        return 0

    def _answer(self, text: str) -> None:
        """Carry out the statements of a line. At a terminal, Ctrl-C cancels the line and the shell continues."""
        try:
            statements = split(text, suspect=self._suspect)
            if statements:
                self._suspect = ends_open(statements[-1].text)
            for number, statement in enumerate(statements):
                if number and "\n" in text and self._output.plain:  # a pasted script is shown as if it had been typed
                    self._output.write(f"{self._prompt()}{statement.shown}\n")
                self._take(statement)
                if self._session.finished:
                    break
        except KeyboardInterrupt:
            if not self._session.interactive:
                raise
            self._output.write("\nInterrupted.\n")

    def _statement(self) -> str | None:
        """Read the next line and the lines that ``&`` continues; an empty text if Ctrl-C canceled it at a terminal."""
        try:
            return self._line()
        except KeyboardInterrupt:
            if not self._session.interactive:
                raise
            return ""

    def _line(self) -> str | None:
        shown = self._prompt()
        line = self._read(shown)
        if line is None:
            return None
        while line.rstrip().endswith("&"):
            more = self._read("> " if self._output.plain else "")
            if more is None:
                break
            line = f"{line}\n{more}"
        self._session.spooled(f"{shown}{redacted(line, suspect=self._suspect)}\n")
        return line

    def _prompt(self) -> str:
        self._number += 1
        if not self._output.plain and not self._session.interactive:
            return ""
        return "\n" + session_prompt(self._session, self._number)

    def _take(self, statement: Statement) -> None:
        text = statement.text
        try:
            if text.startswith("!"):
                text = recalled(self._session.history, text)
                if self._output.plain:
                    self._output.write(f"{redacted(text)}\n")
            elif text.split()[0].upper() == "FC":
                changed = self._fixed(recalled(self._session.history, f"!{text[2:]}"))
                if changed is None:
                    return
                text = changed
        except GgsError as error:
            self._output.outcome(Outcome(statement.shown, None, (error,)))
            return
        statement = statement._replace(text=text)
        self._session.remember(statement.shown)
        self._carry_out(statement)

    def _fixed(self, text: str) -> str | None:
        """FC: show a statement and apply edit lines to it.

        An empty line accepts it; ``//`` and Ctrl-C cancel it (None).
        """
        shown = session_prompt(self._session, self._number) if self._output.plain else "> "
        while True:
            self._output.write(f"{shown}{text}\n")
            marks = self._read(f"{shown[:-2]}..")
            if marks is None or marks.strip() == "//":
                return None
            if not marks.strip():
                return text
            text = fixed(text, marks)

    def _carry_out(self, statement: Statement) -> None:
        outcome = execute(self._session, statement.text, suspect=statement.suspect)
        for error in outcome.errors if statement.file else ():
            located(error, statement)
        self._output.outcome(outcome)
        if isinstance(outcome.result, Script):
            self._obey(outcome.result)
        elif isinstance(outcome.result, Repeat):
            self._watch(outcome.result)

    def _watch(self, wanted: Repeat) -> None:
        """Repeat a statement until Ctrl-C, which ``_answer`` handles, or until it fails."""
        while not self._session.finished:
            outcome = execute(self._session, wanted.statement)
            if self._output.plain:
                now = local_text(self._session.clock.now())
                self._output.write(f"{CLEAR if self._session.color else ''}{now}  every {wanted.seconds} s: ")
                self._output.write(f"{redacted(wanted.statement)}\n")
            self._output.outcome(outcome, paged=False)
            if outcome.failed or self._session.wait(wanted.seconds):
                break

    def _obey(self, script: Script) -> None:
        """Run an obey file, showing each statement after a prompt, and continue after errors."""
        self._session.obey_depth += 1
        try:
            for statement in split(script.text, script.name):
                if self._output.plain:
                    self._output.write(f"{self._prompt()}{statement.shown}\n")
                self._session.remember(statement.shown)
                self._carry_out(statement)
                if self._session.finished:
                    break
        finally:
            self._session.obey_depth -= 1


def recalled(history: list[str], text: str) -> str:
    """Return the statement that ``!``, ``! n``, ``! -n`` or ``! text`` recalls. Raises NotFoundError, StateError."""
    wanted = text[1:].strip()
    found: str | None = None
    if not wanted:
        found = history[-1] if history else None
    elif wanted.lstrip("-").isdigit():
        number = int(wanted)
        index = number - 1 if number > 0 else len(history) + number
        found = history[index] if 0 <= index < len(history) and number else None
    else:
        found = next((old for old in reversed(history) if old.lower().startswith(wanted.lower())), None)
    if found is None:
        raise NotFoundError(
            f"the history does not contain this statement: {text}", hint="list the statements with HISTORY"
        )
    if "*******" in found:
        raise StateError("the history does not keep passwords: this statement cannot be repeated", hint="type it again")
    return found


def run_lines(session: Session, lines: Iterator[str]) -> int:
    """Run a session whose lines come from a file or a pipe; prompts are printed as well."""
    import sys

    def read(shown: str) -> str | None:
        sys.stdout.write(shown)
        sys.stdout.flush()
        return next(lines, None)

    session.ask = lambda question, _: read(question) or ""
    return Conversation(session, read).run()
