"""VIEW and EDIT: reports, parameter files, the error log."""

from __future__ import annotations

import os
from pathlib import Path

from ggshell.errors import GgsError, NotFoundError, ProcessError, StateError
from ggshell.shell.redaction import redacted
from ggshell.shell.registry import command
from ggshell.shell.results import Message, Text
from ggshell.shell.session import Session, file_text


@command("VIEW REPORT")
def view_report(session: Session, *, report: str) -> Text:
    """A group's report; ``EXT1`` the present one, ``EXT10`` to ``EXT19`` older ones."""
    path = session.home.report(report)
    if not path.exists():
        raise NotFoundError(f"there is no report {path}", hint="a group writes its report when it starts")
    return Text(path.name, file_text(path, "report"))


@command("VIEW PARAMS")
def view_params(session: Session, *, file: str) -> Text:
    """A parameter file, without its passwords."""
    path = parameter_file(session, file)
    return Text(path.name, redacted(file_text(path, "parameter file")))


@command("VIEW GGSEVT")
def view_events(session: Session) -> Text:
    """The error log, whole."""
    path = session.home.event_log
    return Text(path.name, file_text(path, "error log") if path.exists() else "")


@command("EDIT PARAMS")
def edit_params(session: Session, *, file: str) -> Message:
    """Open a parameter file in an editor: SET EDITOR, else $VISUAL or $EDITOR, else vi."""
    import shlex

    from ggshell.shell import foreground

    if not session.interactive:
        raise StateError("EDIT needs a terminal", hint="write the file with another program; VIEW PARAMS shows it")
    path = parameter_file(session, file)
    session.home.ensure()
    editor = session.editor or os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        code = foreground.run([*shlex.split(editor), str(path)])
    except OSError as error:
        raise ProcessError(f"cannot start the editor {editor}: {error.strerror}", hint="set EDITOR") from error
    if code:
        raise ProcessError(f"the editor {editor} ended with code {code}")
    return checked(path)


def checked(path: Path) -> Message:
    """What is wrong with a parameter file that was just edited; a file that is not there, or is no process's, says nothing."""
    from ggshell import params

    if not path.exists():
        return Message()
    lines = path.read_text(errors="replace").split(None, 1)
    kinds = {"EXTRACT": params.load_extract, "REPLICAT": params.load_replicat}
    names = {"MGR": params.load_manager, "GLOBALS": params.load_globals}
    load = names.get(path.stem.upper()) or kinds.get(lines[0].upper() if lines else "")
    if load is None:
        return Message()
    try:
        load(path)
    except GgsError as error:
        return Message(("The file is saved, and a process would refuse it:",), (error,))
    return Message(("The file is saved, and its parameters are understood.",))


def parameter_file(session: Session, name: str) -> Path:
    """A group's file, MGR's, GLOBALS, or any path."""
    if name.upper() in ("GLOBALS", "./GLOBALS"):
        return session.home.globals
    if "/" in name or name.lower().endswith(".prm"):
        return session.home.resolve(name)
    return session.home.parameters("mgr" if name.upper() in ("MGR", "MANAGER") else name)
