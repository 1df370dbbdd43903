"""SET, SPOOL, WATCH and FC: settings and functions of the shell itself."""

from __future__ import annotations

from ggshell.cli.config import FORMATS
from ggshell.cli.registry import command
from ggshell.cli.results import Message, Repeat
from ggshell.cli.session import Session
from ggshell.errors import StateError, UsageError

_NEVER_REPEATED = {"WATCH", "OBEY", "EDIT", "EXIT", "QUIT", "SHELL", "HOST", "FC"}


@command("SET EDITOR")
def set_editor(session: Session, *, program_name: str) -> Message:
    """Set the editor of EDIT PARAMS for the rest of the session."""
    session.editor = program_name
    return Message((f"Editor set to {program_name}.",))


@command("SET PAGER")
def set_pager(session: Session, *, program_name: str) -> Message:
    """Set the pager for long results; OFF turns paging off."""
    session.pager = "OFF" if program_name.upper() == "OFF" else program_name
    return Message((f"Pager set to {session.pager}.",))


@command("SET FORMAT")
def set_format(session: Session, *, format_name: str) -> Message:
    """Set the format of results."""
    if format_name.lower() not in FORMATS:
        raise UsageError(f"{format_name} is not a valid format", hint=f"use {', '.join(FORMATS)}")
    session.options = session.options._replace(format=format_name.lower())
    return Message((f"Format set to {format_name.lower()}.",))


@command("SET TIMING ON", True)
@command("SET TIMING OFF", False)
def set_timing(session: Session, on: bool) -> Message:
    """Set whether the elapsed time of each statement is shown."""
    session.timing = on
    return Message((f"Timing is {'on' if on else 'off'}.",))


@command("SET COLOR ON", True)
@command("SET COLOR OFF", False)
def set_color(session: Session, on: bool) -> Message:
    """Set whether the interactive shell uses colors."""
    session.options = session.options._replace(color=on)
    return Message((f"Colors are {'on' if on else 'off'}.",))


@command("SPOOL")
def spool(session: Session, *, file: str, append: bool = False) -> Message:
    """Also write everything that is shown to a file; OFF stops spooling.

    An existing file that is not empty is appended to only with ``append`` or after the user confirms.
    """
    if file.upper() == "OFF":
        name = session.stop_spooling()
        return Message((f"Spooling to {name} stopped." if name else "Spooling is already off.",))
    path = session.home.resolve(file)
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} is not a file", hint="specify another file")
    if not append and path.exists() and path.stat().st_size:
        session.confirm(f"{path} exists. Append to it", without=f"use SPOOL {file} APPEND, or another file")
    session.start_spooling(path)
    return Message((f"Spooling to {path}.",))


@command("WATCH")
def watch(session: Session, *, seconds: int, rest: str) -> Repeat:
    """Repeat a statement until Ctrl-C. Raises StatementError for an invalid one, StateError without a terminal."""
    from ggshell.cli.execute import parse

    if not session.interactive:
        raise StateError("WATCH requires an interactive terminal.")
    key = parse(rest).key
    if key.split()[0] in _NEVER_REPEATED:
        raise UsageError(f"{key} cannot be repeated by WATCH.")
    return Repeat(max(1, seconds), rest)


@command("FC")
def fix(session: Session, *, rest: str = "") -> Message:
    """Raise StateError: a session handles FC itself, since it must read edit lines, which cannot be entered here."""
    raise StateError(
        "FC requires an interactive session.",
        hint="run ggshell without -c and obey files, at a terminal or with its statements on standard input",
    )
