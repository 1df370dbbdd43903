"""Carry out one statement: parse, note it in the error log, call the handler, and turn errors into answers.

This is the only place of the shell that catches everything: a known error becomes a line with a hint, anything else is a
bug, shown short and kept whole in a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ggshell.errors import GgsError, StatementError
from ggshell.shell import registry
from ggshell.shell.redaction import redacted, redacted_column
from ggshell.shell.results import Note, Result
from ggshell.shell.session import Session
from ggshell.shell.unfinished import unfinished
from ggshell.syntax import grammar

if TYPE_CHECKING:
    from ggshell.syntax.parsed import Parsed
    from ggshell.syntax.statement import Statement

_QUIET = {"INFO", "STATUS", "STATS", "LAG", "VIEW", "HELP", "HISTORY", "SHOW", "VERSIONS", "EXIT", "QUIT", "OBEY"}
_QUIET |= {"SPOOL", "WATCH", "ALLOWNESTED", "NOALLOWNESTED", "SHELL", "HOST", "EDIT", "FC", "SET", "TRAIL", "COMPARE"}


class Outcome(NamedTuple):
    """What became of a statement; ``statement`` is without secrets, ``notes`` are warnings, which make no failure."""

    statement: str
    result: Result | None = None
    errors: tuple[GgsError, ...] = ()
    notes: tuple[Note, ...] = ()
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        return bool(self.errors)


def changes_something(parsed: Parsed) -> bool:
    """Whether the error log keeps a statement: those that change something, as GGSCI does."""
    words = parsed.key.split()
    if words[0] == "SEND":
        return words[-1] in ("STOP", "FORCESTOP", "ROLLOVER", "REPORT")
    return words[0] not in _QUIET


def execute(session: Session, text: str, parsed: Parsed | None = None) -> Outcome:
    """Carry out a statement; never raises but for KeyboardInterrupt."""
    began = session.clock.steady()
    with session.busy(text):
        outcome = _carried_out(session, text, parsed)
    return outcome._replace(seconds=session.clock.steady() - began)


def _carried_out(session: Session, text: str, parsed: Parsed | None) -> Outcome:
    shown = redacted(text)
    try:
        understood = parsed or parse(text)
        gap = unfinished(understood)
        if gap is not None:
            return Outcome(shown, notes=(gap,))
        entry = registry.find(understood.key)
        if changes_something(understood):
            _note(session, shown)
        result = entry.handler(session, *entry.bound, **understood.args)
        return Outcome(shown, result, getattr(result, "errors", ()), getattr(result, "notes", ()))
    except GgsError as error:
        return Outcome(shown, None, (error,))
    except Exception as error:  # noqa: BLE001 - a bug must not end the shell; the file has it whole
        return Outcome(shown, None, (_crash(session, shown, error),))


def parse(text: str) -> Parsed:
    """Understand a statement.  Raises StatementError, without secrets."""
    try:
        return grammar.parse(text)
    except StatementError as error:
        error.column = redacted_column(text, error.column)
        error.source = redacted(error.source or text)
        raise


def located(error: GgsError, statement: Statement) -> GgsError:
    """A statement's error with its place in the text it came from, once."""
    if error.where:
        return error
    if isinstance(error, StatementError):
        error.line, column = statement.at(error.column)
        place = f"{error.line}:{column}"
        error.where = f"{statement.file}:{place}" if statement.file else place
    elif statement.file:
        error.where = f"{statement.file}:{statement.line}"
    return error


def _note(session: Session, shown: str) -> None:
    import getpass

    from ggshell.store.events import Severity

    session.event(Severity.INFO, "OGG-00987", f"GGSCI command ({getpass.getuser()}): {shown.rstrip(';')}.")


def _crash(session: Session, shown: str, error: Exception) -> GgsError:
    """Keep a bug's traceback in the home, or say that this failed too."""
    import traceback

    from ggshell.clock import local_text

    text = f"{type(error).__name__}: {' '.join(str(error).split())}"
    path = session.home.root / f"ggshell-crash-{local_text(session.clock.now(), '%Y%m%d-%H%M%S')}.txt"
    try:
        path.write_text(redacted(f"{shown}\n\n{''.join(traceback.format_exception(error))}"))
        path.chmod(0o600)
        hint = f"the whole story is in {path}"
    except OSError as failure:
        hint = f"its story could not be written to {path}: {failure.strerror}"
    return GgsError(f"internal error: {redacted(text)}", code="GGS-00999", hint=hint)
