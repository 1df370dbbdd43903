"""Batches: ``-c`` texts and obey files.  Read whole first, so that a typing error in the last line costs nothing."""

from __future__ import annotations

import sys
from pathlib import Path

from ggshell.errors import StatementError, UsageError
from ggshell.shell.execute import Outcome, execute, located, parse
from ggshell.shell.exit_codes import DONE, FAILED, SYNTAX_ERROR
from ggshell.shell.output import Output, is_dumb
from ggshell.shell.redaction import redacted
from ggshell.shell.results import Script
from ggshell.shell.session import Session
from ggshell.syntax.parsed import Parsed
from ggshell.syntax.statement import Statement, split

Step = tuple[Statement, Parsed]


def read_source(name: str) -> tuple[str, str]:
    """(name, text) of an obey file, ``-`` for standard input.  Raises UsageError when it cannot be read."""
    if name == "-":
        return "<stdin>", sys.stdin.read()
    try:
        return name, Path(name).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise UsageError(
            f"cannot read {name}: {reason}",
            hint="a statement stands behind -c; ggshell --help lists what may stand here",
        ) from error


def understand(sources: list[tuple[str, str]]) -> tuple[list[Step], list[Outcome]]:
    """Every statement of the texts with its meaning, and an outcome for each that has none."""
    steps: list[Step] = []
    refused: list[Outcome] = []
    for name, text in sources:
        for statement in split(text, name):
            try:
                steps.append((statement, parse(statement.text)))
            except StatementError as error:
                refused.append(Outcome(redacted(statement.text), None, (located(error, statement),)))
    return steps, refused


def run(session: Session, sources: list[tuple[str, str]]) -> int:
    """Run the texts; the exit code."""
    output = Output(session, session_text=False)
    if sys.stdout.isatty() and sys.stderr.isatty() and not is_dumb():
        from ggshell.shell.working import Working

        working = Working()
        session.busy, session.progress = working.line, working.progress
    steps, refused = understand(sources)
    for outcome in refused:
        output.outcome(outcome)
    if refused:
        return SYNTAX_ERROR
    return FAILED if run_steps(session, output, steps) else DONE


def run_steps(session: Session, output: Output, steps: list[Step]) -> bool:
    """Carry out statements in order; whether one failed.  Stops there, unless told to go on."""
    failed = False
    for statement, parsed in steps:
        session.remember(statement.text)
        output.echo(session, statement.text)
        outcome = execute(session, statement.text, parsed)
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
    """Run an obey file that a statement named; whether one of its statements failed."""
    steps, refused = understand([(script.name, script.text)])
    for outcome in refused:
        output.outcome(outcome)
    if refused:
        return True
    session.obey_depth += 1
    try:
        return run_steps(session, output, steps)
    finally:
        session.obey_depth -= 1
