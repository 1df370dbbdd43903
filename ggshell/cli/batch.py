"""Runs batches: ``-c`` texts and obey files. They are parsed first, so a syntax error means that no statement runs."""

from __future__ import annotations

import sys
from pathlib import Path

from ggshell.cli.execute import execute, leave_home_if_connecting, located, parse
from ggshell.cli.options import DONE, FAILED, SYNTAX_ERROR, Options
from ggshell.cli.outcome import Outcome
from ggshell.cli.output.writer import Output
from ggshell.cli.results import Script
from ggshell.cli.session import Session
from ggshell.errors import StatementError, UsageError
from ggshell.language.grammar import Parsed
from ggshell.language.statement import Statement, split
from ggshell.terminal import redraws_lines

Step = tuple[Statement, "Parsed | Outcome"]
"""A statement with its parsed form, or with the outcome of a syntax error."""


def read_source(name: str) -> tuple[str, str]:
    """Return (name, text) of an obey file; ``-`` is standard input. Raises UsageError if it cannot be read."""
    if name == "-":
        return "<stdin>", sys.stdin.read()
    try:
        return name, Path(name).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise UsageError(
            f"cannot read {name}: {reason}",
            hint="put the statement after -c; ggshell --help lists the options",
        ) from error


def understand(sources: list[tuple[str, str]]) -> list[Step]:
    """Split texts into statements, each with its parsed form or the outcome of a syntax error."""
    return [(statement, _meaning(statement)) for name, text in sources for statement in split(text, name)]


def _meaning(statement: Statement) -> Parsed | Outcome:
    try:
        return parse(statement.text, suspect=statement.suspect)
    except StatementError as error:
        return Outcome(statement.shown, None, (located(error, statement),))


def _refused(session: Session, output: Output, steps: list[Step]) -> bool:
    """Show the syntax errors and return whether they prevent the run; with --continue-on-error they do not."""
    refused = [found for _, found in steps if isinstance(found, Outcome)]
    if not refused or session.options.continue_on_error:
        return False
    for outcome in refused:
        output.outcome(outcome)
    return True


def run(session: Session, sources: list[tuple[str, str]]) -> int:
    """Run the texts and return the exit code."""
    output = Output(session, session_text=False)
    if redraws_lines(sys.stdout) and redraws_lines(sys.stderr):
        from ggshell.cli.output.progress import Working

        working = Working()
        session.busy, session.progress = working.line, working.progress
    steps = understand(sources)
    if _refused(session, output, steps):
        return SYNTAX_ERROR
    return FAILED if run_steps(session, output, steps) else DONE


def obey(root: Path, name: str, text: str) -> bool:
    """Run a text in a home, with its statements shown, and return whether all of them succeeded."""
    session = Session(Options(home=str(root), echo=True, auto_manager=True))
    try:
        return run(session, [(name, text)]) == DONE
    finally:
        session.close()


def run_steps(session: Session, output: Output, steps: list[Step]) -> bool:
    """Carry out statements in order and return whether one failed; stop there unless --continue-on-error is given."""
    failed = False
    for statement, parsed in steps:
        shown = statement.shown
        session.remember(shown)
        output.echo(session, shown)
        if isinstance(parsed, Outcome):
            leave_home_if_connecting(session, statement.text)
        outcome = parsed if isinstance(parsed, Outcome) else execute(session, statement.text, parsed)
        for error in outcome.errors:
            located(error, statement)
        output.outcome(outcome)
        failed |= outcome.failed
        if isinstance(outcome.result, Script):
            failed |= run_script(session, output, outcome.result)
        if session.finished or (failed and not session.options.continue_on_error):
            break
    return failed


def run_script(session: Session, output: Output, script: Script) -> bool:
    """Run an obey file that a statement names, and return whether one of its statements failed."""
    steps = understand([(script.name, script.text)])
    if _refused(session, output, steps):
        return True
    session.obey_depth += 1
    try:
        return run_steps(session, output, steps)
    finally:
        session.obey_depth -= 1
