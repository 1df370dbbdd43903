"""SET, SPOOL, WATCH and FC: how the shell itself behaves."""

from __future__ import annotations

from ggshell.errors import StateError, UsageError
from ggshell.shell.options import FORMATS
from ggshell.shell.registry import command
from ggshell.shell.results import Message, Repeat
from ggshell.shell.session import Session

_NEVER_REPEATED = {"WATCH", "OBEY", "EDIT", "EXIT", "QUIT", "SHELL", "HOST", "FC"}


@command("SET EDITOR")
def set_editor(session: Session, *, program_name: str) -> Message:
    """The editor of EDIT PARAMS for the rest of the session."""
    session.editor = program_name
    return Message((f"Editor set to {program_name}.",))


@command("SET PAGER")
def set_pager(session: Session, *, program_name: str) -> Message:
    """The pager for long answers; OFF for none."""
    session.pager = "OFF" if program_name.upper() == "OFF" else program_name
    return Message((f"Pager set to {session.pager}.",))


@command("SET FORMAT")
def set_format(session: Session, *, format_name: str) -> Message:
    """How answers are shown from now on."""
    if format_name.lower() not in FORMATS:
        raise UsageError(f"unknown format {format_name}", hint=f"one of {', '.join(FORMATS)}")
    session.options = session.options._replace(format=format_name.lower())
    return Message((f"Format set to {format_name.lower()}.",))


@command("SET TIMING ON", True)
@command("SET TIMING OFF", False)
def set_timing(session: Session, on: bool) -> Message:
    """Whether the time that a statement took is shown behind its answer."""
    session.timing = on
    return Message((f"Timing is {'on' if on else 'off'}.",))


@command("SET COLOR ON", True)
@command("SET COLOR OFF", False)
def set_color(session: Session, on: bool) -> Message:
    """Whether the shell at a terminal uses colours."""
    session.options = session.options._replace(color=on)
    return Message((f"Colours are {'on' if on else 'off'}.",))


@command("SPOOL")
def spool(session: Session, *, file: str) -> Message:
    """Write all that is shown into a file as well, behind what it holds; OFF ends it."""
    if file.upper() == "OFF":
        name = session.stop_spooling()
        return Message((f"Spooling to {name} ended." if name else "Nothing is spooled.",))
    path = session.home.resolve(file)
    session.start_spooling(path)
    return Message((f"Spooling to {path}.",))


@command("WATCH")
def watch(session: Session, *, seconds: int, rest: str) -> Repeat:
    """Repeat a statement until Ctrl-C.  Raises StatementError for one that is wrong, StateError without a terminal."""
    from ggshell.shell.execute import parse

    if not session.interactive:
        raise StateError("WATCH needs a terminal, where Ctrl-C ends it.")
    key = parse(rest).key
    if key.split()[0] in _NEVER_REPEATED:
        raise UsageError(f"{key} cannot be repeated by WATCH.")
    return Repeat(max(1, seconds), rest)


@command("FC")
def fix(session: Session, *, rest: str = "") -> Message:
    """A conversation takes FC itself, since it must ask; here nobody answers."""
    raise StateError("FC needs a session whose user can answer.", hint="! repeats a statement as it is")
