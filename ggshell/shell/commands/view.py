"""VIEW and EDIT: reports, parameter files, the error log."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from ggshell.errors import GgsError, NotFoundError, ParameterError, ProcessError, StateError
from ggshell.shell.redaction import redacted
from ggshell.shell.registry import command
from ggshell.shell.results import Message, Note, Text
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
    """What is wrong with a parameter file that was just edited: every error, and a note for what is not carried out.

    A file that is not there or holds nothing says nothing.
    """
    from ggshell.check.facts import Facts
    from ggshell.check.findings import Severity
    from ggshell.check.parameter_files import check_parameters, kind_of

    text = path.read_text(errors="replace") if path.exists() else ""
    kind = kind_of(text, path.name)
    found = check_parameters(text, path.name, kind, Facts()) if kind else []
    if not found:
        return Message()
    errors: list[GgsError] = []
    notes: list[Note] = []
    for each in found:
        for finding in each.findings:
            where = f"{path.name}:{finding.place.line}:{finding.place.column}"
            if finding.severity is Severity.ERROR:
                column = finding.place.column - each.place.column + 1
                source = finding.source or each.statement
                errors.append(
                    ParameterError(
                        finding.message,
                        code=finding.code,
                        where=where,
                        hint=finding.hint,
                        column=column,
                        source=source.splitlines()[0],
                    )
                )
            else:
                notes.append(Note(finding.code, f"{finding.message} ({where})"))
    errors = errors or _refused(path, kind)
    said = "a process would refuse it:" if errors else "its parameters are understood."
    joined = "and" if not errors else "but"
    return Message((f"The file is saved, {joined} {said}",), tuple(errors), notes=tuple(notes))


def _refused(path: Path, kind: str) -> list[GgsError]:
    """What the process itself would say at its start, of a file whose every line is right."""
    from ggshell.params import files

    load: dict[str, Callable[[Path], object]] = {
        "Extract": files.load_extract,
        "Replicat": files.load_replicat,
        "Manager": files.load_manager,
        "GLOBALS": files.load_globals,
    }
    try:
        load[kind](path)
    except GgsError as error:
        return [error]
    return []


def parameter_file(session: Session, name: str) -> Path:
    """A group's file, MGR's, GLOBALS, or any path."""
    if name.upper() in ("GLOBALS", "./GLOBALS"):
        return session.home.globals
    if "/" in name or name.lower().endswith(".prm"):
        return session.home.resolve(name)
    return session.home.parameters("mgr" if name.upper() in ("MGR", "MANAGER") else name)
