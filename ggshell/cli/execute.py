"""Carries out one statement and returns the outcome.

The order: parse the statement, refuse what this version does not support, send it to the service of another home if the shell
is connected to one, log the statement, refuse what a copied home must not change, call the handler.

A statement that this version does not support is accepted with a note, so that existing scripts continue; a statement
with an unsupported option is refused, since without the option it would do something else. In a copied home, statements
that would change database objects of the original home are refused; DELETE of a copied group removes only files.

This is the only place in the shell that catches every exception. A known error becomes a line with a hint; any other
exception is a bug, which is shown in one line while the traceback goes to a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ggshell.cli.local_statements import LOCAL, OF_CONNECTIONS
from ggshell.cli.outcome import Outcome
from ggshell.cli.registry import COMMANDS
from ggshell.cli.results import Note
from ggshell.cli.session import Session
from ggshell.errors import OUT_OF_MEMORY, GgsError, NotFoundError, StatementError
from ggshell.home.checkpoint import GroupKind
from ggshell.language import grammar
from ggshell.language.redaction import may_hold_secret, redacted, starred, without_secrets
from ggshell.language.unsupported import CODE, refusal_of

if TYPE_CHECKING:
    from ggshell.language.grammar import Parsed
    from ggshell.language.statement import Statement

_QUIET = {
    "INFO",
    "STATUS",
    "STATS",
    "LAG",
    "LIST",
    "VIEW",
    "HELP",
    "HISTORY",
    "SHOW",
    "VERSIONS",
    "EXIT",
    "QUIT",
    "OBEY",
}
_QUIET |= {"SPOOL", "WATCH", "ALLOWNESTED", "NOALLOWNESTED", "SHELL", "HOST", "EDIT", "FC", "SET", "TRAIL", "COMPARE"}

_LOOKING = {"INFO", "STATUS", "STATS", "LAG", "VIEW", "SEND", "STOP", "KILL", "TRAIL"}
"""Verbs that create nothing: they require that the home exists."""
_SHARED: Final = frozenset(
    f"{verb} {what}"
    for verb, objects in {
        "ADD": "CHECKPOINTTABLE HEARTBEATTABLE TRANDATA SCHEMATRANDATA",
        "ALTER": "HEARTBEATTABLE",
        "UPGRADE": "CHECKPOINTTABLE HEARTBEATTABLE",
        "CLEANUP": "CHECKPOINTTABLE",
        "DELETE": "CHECKPOINTTABLE HEARTBEATTABLE HEARTBEATENTRY TRANDATA SCHEMATRANDATA",
    }.items()
    for what in objects.split()
)
"""Statements about database objects that the original home also uses: refused while this home has a copied group."""
_KINDS: Final = (*GroupKind, "ER")
_OF_GROUPS: Final = frozenset(
    {"START", "ALTER", "REGISTER EXTRACT", "UNREGISTER EXTRACT", "ALTER DISTPATH BEGIN", "ALTER RECVPATH BEGIN"}
    | {f"{verb} {kind}" for verb in ("START", "RESTART") for kind in _KINDS}
    | {f"ALTER {kind}" for kind in (GroupKind.EXTRACT, GroupKind.REPLICAT)}
) - {"RESTART DISTPATH", "RESTART RECVPATH"}
"""Statements about groups with a slot or row: refused for copied groups, even if deleted in this home."""
_LOGGED_LATER: Final = frozenset({"CREATE SUBDIRS"})
"""Statements that report which folders are new: writing the error log would create them."""
_FILES_ONLY: Final = frozenset(f"DELETE {kind}" for kind in _KINDS)
"""Statements that do not change database objects of a copied group, and report this."""


def leave_home_if_connecting(session: Session, text: str) -> None:
    """After a CONNECT that failed, even with a syntax error, the next statements must not reach the home of the shell."""
    if text.split(None, 1)[:1] and text.split(None, 1)[0].upper() == "CONNECT":
        session.leave_home()


def changes_something(parsed: Parsed) -> bool:
    """Whether the error log records the statement: as in GGSCI, only statements that change something."""
    words = parsed.key.split()
    if parsed.key in OF_CONNECTIONS:
        return False
    if words[0] == "SEND":
        return words[-1] in ("STOP", "FORCESTOP", "ROLLOVER", "REPORT")
    return words[0] not in _QUIET


def execute(session: Session, text: str, parsed: Parsed | None = None, *, suspect: bool = False) -> Outcome:
    """Carry out a statement; raises nothing but KeyboardInterrupt.

    ``suspect``: the text may be a password that belongs to the previous statement.
    """
    began = session.clock.steady()
    shown = redacted(text, suspect=suspect)
    with session.busy(shown):
        outcome = _carried_out(session, text, shown, parsed, suspect=suspect)
    return outcome._replace(seconds=session.clock.steady() - began)


def _carried_out(session: Session, text: str, shown: str, parsed: Parsed | None, *, suspect: bool) -> Outcome:
    try:
        understood = parsed or parse(text, suspect=suspect)
        note = not_supported(understood)
        if note is not None:
            return Outcome(shown, notes=(note,))
        if session.is_client and understood.key not in LOCAL:
            from ggshell.cli.remote_statements import carried_out

            return carried_out(session, understood, text, shown)
        _require_home(session, understood)
        handler, bound = COMMANDS.find(understood.key)
        logged, early = changes_something(understood), understood.key not in _LOGGED_LATER
        if logged and early:
            _note(session, shown)
        _require_own(session, understood)
        result = handler(session, *bound, **understood.args)
        if logged and not early:
            _note(session, shown)
        return Outcome(shown, result, getattr(result, "errors", ()), getattr(result, "notes", ()))
    except GgsError as error:
        leave_home_if_connecting(session, text)
        return Outcome(shown, None, (_clean(error, text),))
    except MemoryError:
        return Outcome(shown, None, (GgsError(OUT_OF_MEMORY, code="GGS-00807"),))
    except Exception as error:  # noqa: BLE001 - a bug must not end the shell; the traceback is in the file
        return Outcome(shown, None, (_crash(session, text, shown, error),))


def _clean(error: GgsError, text: str) -> GgsError:
    """Remove the statement's secrets from an error: a database may repeat the login in its message."""
    if may_hold_secret(text):
        error.message, error.hint = without_secrets(error.message, text), without_secrets(error.hint, text)
        error.args = (error.message,)
    return error


def _require_home(session: Session, parsed: Parsed) -> None:
    """Raise NotFoundError for a command that creates nothing if the home does not exist."""
    root = session.home.root
    if parsed.key.split()[0] in _LOOKING and parsed.key not in OF_CONNECTIONS and not root.is_dir():
        wrong = "is not a directory" if root.exists() else "does not exist"
        raise NotFoundError(
            f"the home {root.absolute()} {wrong}",
            code="GGS-00212",
            hint="specify another folder with --home or GGSHELL_HOME"
            + ("" if root.exists() else ", or create this one with CREATE SUBDIRS"),
        )


def _require_own(session: Session, parsed: Parsed) -> None:
    """Raise StateError for a statement that would change what another home owns; also StoreError, DiskError."""
    key = parsed.key
    if key not in _SHARED | _OF_GROUPS | _FILES_ONLY:
        return
    from fnmatch import fnmatchcase

    from ggshell.home.identity import copied_groups, require_own

    _ = session.events  # updates the recorded location of the home
    if key in _SHARED:
        require_own(session.home.root, None, key)
    elif key in _OF_GROUPS:
        pattern = str(parsed.args.get("group_name") or parsed.args.get("path_name") or "").upper()
        named = [each for each in copied_groups(session.home.root) if fnmatchcase(each, pattern)]
        require_own(session.home.root, named, f"{key} {pattern}")


def not_supported(parsed: Parsed) -> Note | None:
    """Return the note for a statement that is not supported, None for one that is.

    Raises StatementError if one of its options is not supported.
    """
    refusal = refusal_of(parsed)
    if refusal is not None:
        raise refusal
    return Note(CODE, parsed.notes[0].about(parsed.key)) if parsed.notes else None


def parse(text: str, *, suspect: bool = False) -> Parsed:
    """Parse a statement. Raises StatementError, without secrets."""
    try:
        return grammar.parse(text, suspect=suspect)
    except StatementError as error:
        error.source = error.source or starred(text, suspect=suspect)
        raise


def located(error: GgsError, statement: Statement) -> GgsError:
    """Add the position in the source text to a statement's error, unless it already has one."""
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

    from ggshell.home.events import Severity

    session.event(
        Severity.INFO, "OGG-00987", f"GGSCI command ({session.actor or getpass.getuser()}): {shown.rstrip(';')}."
    )


def _crash(session: Session, text: str, shown: str, error: Exception) -> GgsError:
    """Write a bug's traceback to a file in the home, and return the error to show."""
    import traceback

    from ggshell.clock import local_text

    said = f"{type(error).__name__}: {' '.join(str(error).split())}"
    path = session.home.root / f"ggshell-crash-{local_text(session.clock.now(), '%Y%m%d-%H%M%S')}.txt"
    try:
        path.write_text(without_secrets(f"{shown}\n\n{''.join(traceback.format_exception(error))}", text))
        path.chmod(0o600)
        hint = f"the full traceback is in {path}"
    except OSError as failure:
        hint = f"the traceback cannot be written to {path}: {failure.strerror}"
    return GgsError(f"internal error: {without_secrets(said, text)}", code="GGS-00999", hint=hint)
