"""Running statements: one by one from a shell, a heredoc, obey files or the command line."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from ggshell.errors import GgsError, StateError, StatementError, UsageError
from ggshell.process.report import masked
from ggshell.shell import registry
from ggshell.shell.render import Format, json_line, render
from ggshell.shell.results import Result
from ggshell.shell.session import OBEY_DEPTH, PROGRAM, Session
from ggshell.store.events import Severity
from ggshell.syntax import grammar
from ggshell.syntax.statement import Statement, split

Write = Callable[[str], None]
_QUIET = ("INFO", "STATUS", "STATS", "LAG", "VIEW", "HELP", "HISTORY", "SHOW", "EXIT", "QUIT", "VERSIONS", "OBEY")
OK, FAILED, USAGE, SYNTAX = 0, 1, 2, 3


def standard_output(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


class Interpreter:
    """Carries statements out for one session and shows the answers."""

    def __init__(self, session: Session, form: Format = Format.GGSCI, write: Write = standard_output) -> None:
        self.session = session
        self._form = form
        self._write = write

    def run(self, statement: Statement) -> bool:
        """Carry out one statement; whether it went well.  Errors are shown, never raised."""
        text = statement.text
        self.session.history.append(masked(text))
        try:
            parsed = grammar.parse(text)
            if parsed.key.split()[0] not in _QUIET:
                self._log(text)
            result = registry.call(parsed.key, self.session, parsed.args)
        except KeyboardInterrupt:
            self._write("\nCancelled.\n")
            return False
        except GgsError as error:
            self._failed(statement, error)
            return False
        except Exception as error:  # noqa: BLE001 - a bug: shown short, logged whole
            self._bug(statement, error)
            return False
        self._answered(text, result)
        return True

    def _log(self, text: str) -> None:
        """Every statement that changes something stands in the error log, without its secrets."""
        if not self.session.home.root.is_dir():
            return
        import getpass

        self.session.events.write(
            Severity.INFO, "OGG-00987", PROGRAM, f"GGSCI command ({getpass.getuser()}): {masked(text)}"
        )

    def _answered(self, text: str, result: Result) -> None:
        if self._form is Format.JSON:
            self._write(json_line(masked(text), result) + "\n")
            return
        shown = render(result, self._form)
        if shown:
            self._write(f"\n{shown}\n\n" if self._form is Format.GGSCI else f"{shown}\n")

    def _failed(self, statement: Statement, error: GgsError) -> None:
        text = masked(statement.text)
        if self._form is Format.JSON:
            said = f"{error.message}{' - ' + error.hint if error.hint else ''}"
            self._write(json_line(text, None, code=error.code, message=said) + "\n")
            return
        self._write("\n" + described(statement, error) + "\n\n")

    def _bug(self, statement: Statement, error: Exception) -> None:
        bug = GgsError(f"internal error: {type(error).__name__}: {error}", code="GGS-00999", hint="see ggserr.log")
        trace = " | ".join(traceback.format_exc().splitlines())
        if self.session.home.root.is_dir():
            self.session.events.write(Severity.ERROR, bug.code, PROGRAM, f"{masked(statement.text)}: {trace}")
        self._failed(statement, bug)


def described(statement: Statement, error: GgsError) -> str:
    """An error for a person: what, where, the spot underlined, what to do."""
    lines = []
    if isinstance(error, StatementError) and not error.where:
        place = f"{statement.file}:" if statement.file else ""
        column = statement.column + error.column - 1
        lines.append(f"ERROR: {error.code} {place}{statement.line}:{column}: {error.message}")
        lines += [f"  {masked(statement.text)}", "  " + " " * (error.column - 1) + "^"]
        if error.page:
            lines.append(f"  HELP {error.page.replace('_', ' ').upper()} shows the syntax.")
    else:
        where = f" ({error.where})" if error.where else ""
        lines.append(f"ERROR: {error.message}{where}  [{error.code}]")
    if error.hint:
        lines.append(f"  {error.hint}")
    return "\n".join(lines)


def check_syntax(statements: list[Statement], write: Write) -> bool:
    """Whether all statements can be understood; every one that cannot is shown."""
    good = True
    for statement in statements:
        try:
            grammar.parse(statement.text)
        except StatementError as error:
            good = False
            write(described(statement, error) + "\n")
    return good


def run_batch(
    interpreter: Interpreter, statements: list[Statement], write: Write, *, go_on: bool, echo: bool = False
) -> int:
    """Statements of files or ``-c``: nothing runs when one cannot be understood; the first failure ends it unless ``go_on``."""
    if not check_syntax(statements, write):
        return SYNTAX
    result = OK
    for statement in statements:
        if echo:
            write(f"> {masked(statement.text)}\n")
        if not interpreter.run(statement):
            result = FAILED
            if not go_on:
                break
        if interpreter.session.leaving:
            break
    return result


def obey_file(session: Session, path: Path) -> None:
    """OBEY: run a file's statements in this session.

    Raises UsageError when the file cannot be read or is nested too deep, StateError when one of its statements fails.
    """
    if session.obey_depth and not session.allow_nested:
        raise UsageError(f"{path} is run from another obey file", hint="ALLOWNESTED permits it")
    if session.obey_depth >= OBEY_DEPTH:
        raise UsageError(f"obey files are nested more than {OBEY_DEPTH} deep", where=str(path))
    try:
        text = path.read_text(errors="replace")
    except OSError as error:
        raise UsageError(f"cannot read obey file {path}: {error.strerror}") from error
    session.obey_depth += 1
    try:
        interpreter = Interpreter(session)
        failed = [statement for statement in split(text, str(path)) if not interpreter.run(statement)]
    finally:
        session.obey_depth -= 1
    if failed:
        raise StateError(f"{len(failed)} statements of {path} failed, the first in line {failed[0].line}")
