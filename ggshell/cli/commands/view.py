"""VIEW and EDIT: reports, parameter files, and the error log."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ggshell.cli.groups import ANY, unknown_group
from ggshell.cli.registry import command
from ggshell.cli.results import Message, Note, Text
from ggshell.cli.session import Session, file_text
from ggshell.errors import GgsError, NotFoundError, ParameterError, ProcessError, StateError
from ggshell.home.home import Home
from ggshell.parameters.redacted_file import redacted_lines


@command("VIEW REPORT")
def view_report(session: Session, *, report: str = "", file: str = "") -> Text:
    """Show a report: ``EXT1`` is a group's current report, ``EXT10`` to ``EXT19`` are older ones; or a report file."""
    path = session.home.resolve(file) if file else session.home.report(report)
    return _shown(session, "report", path, lambda: _report_hint(session, report))


@command("VIEW DISCARD")
def view_discard(session: Session, *, report: str) -> Text:
    """Show the discard file of a Replicat: ``REP1`` is the current one, ``REP10`` to ``REP19`` are older ones."""
    return _shown(session, "discard file", discard_file(session.home, report), lambda: _discard_hint(session, report))


def discard_file(home: Home, report: str) -> Path:
    """The path of the discard file that a name selects, whether it exists or not."""
    from ggshell.parameters.discard_file import discard_path
    from ggshell.pipeline.apply.discard import aged

    group, age, _ = _selected(home, report)
    path = discard_path(home, group)
    return path if age is None else aged(path, age)


def _shown(session: Session, what: str, path: Path, hint: Callable[[], str]) -> Text:
    """A file of a group. Raises NotFoundError, with the hint, if it does not exist."""
    if not path.exists():
        raise NotFoundError(f"{what} {path} does not exist", hint=hint())
    return Text(path.name, file_text(path, what, session.longest_text))


class _Selected(NamedTuple):
    """The group, and the age of its file, that a name selects. ``age``: None for the current file."""

    group: str
    age: int | None
    exists: bool


def _selected(home: Home, name: str) -> _Selected:
    """Read a name: ``EXT1`` selects the current file of EXT1, ``EXT10`` the one with the age 0."""
    name, known = name.upper(), {"MGR", *(group for group, _ in home.group_names())}
    if name not in known and name[-1].isdigit() and name[:-1] in known:
        return _Selected(name[:-1], int(name[-1]), True)
    return _Selected(name, None, name in known)


def _report_hint(session: Session, report: str) -> str:
    """The next step if a report does not exist; ``report`` is empty if a file was named. Raises as ``_hint`` does."""
    if not report:
        return "check the path: it is relative to the home directory"
    return _hint(
        session,
        report,
        "START the group: it writes its report when it starts",
        "use VIEW REPORT {} for the current report: this older report no longer exists",
    )


def _discard_hint(session: Session, report: str) -> str:
    """The reason why a discard file does not exist. Raises as ``_hint`` does."""
    return _hint(
        session,
        report,
        "it is created when the target rejects the first operation",
        "use VIEW DISCARD {} for the current file: DISCARDROLLOVER has not created this older one",
    )


def _hint(session: Session, name: str, current: str, older: str) -> str:
    """The text for the current or for an older file of a group. Raises NotFoundError if the group does not exist."""
    group, age, exists = _selected(session.home, name)
    if not exists:
        raise unknown_group(session, ANY, group)
    return current if age is None else older.format(group)


@command("VIEW PARAMS")
def view_params(session: Session, *, file: str) -> Text:
    """Show a parameter file, without its passwords."""
    path = parameter_file(session.home, file)
    return Text(path.name, redacted_lines(file_text(path, "parameter file")))


@command("VIEW GLOBALS")
def view_globals(session: Session) -> Text:
    """Show the file GLOBALS, without its passwords."""
    return view_params(session, file="GLOBALS")


@command("VIEW GGSEVT")
def view_events(session: Session) -> Text:
    """Show the whole error log."""
    path = session.home.event_log
    return Text(path.name, file_text(path, "error log", session.longest_text) if path.exists() else "")


@command("VIEW MESSAGES")
def view_messages(session: Session, *, deployment_name: str = "") -> Text:
    """Show the error log; a home has one error log, regardless of the deployment name."""
    return view_events(session)


@command("EDIT PARAMS")
def edit_params(session: Session, *, file: str) -> Message:
    """Open a parameter file in an editor: SET EDITOR, else $VISUAL or $EDITOR, else vi.

    In a connected shell, it is a file of the other home.
    """
    if not session.interactive:
        raise StateError(
            "EDIT requires a terminal", hint="write the file with another program, and check it with VIEW PARAMS"
        )
    if session.is_client:
        from ggshell.cli.remote_edit import edit
        from ggshell.cli.remote_statements import connected

        return edit(connected(session), file, lambda copy: _open_editor(session, copy))
    path = parameter_file(session.home, file)
    session.home.ensure()
    _open_editor(session, path)
    return checked(path)


@command("EDIT GLOBALS")
def edit_globals(session: Session) -> Message:
    """Open the file GLOBALS in an editor, in a connected shell that of the other home."""
    return edit_params(session, file="GLOBALS")


def _open_editor(session: Session, path: Path) -> None:
    """Open a file in the editor, and wait until it ends. Raises ProcessError."""
    import shlex

    from ggshell.cli.output import programs

    editor = session.editor or os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        code = programs.run([*shlex.split(editor), str(path)])
    except OSError as error:
        raise ProcessError(f"cannot start the editor {editor}: {error.strerror}", hint="set EDITOR") from error
    if code:
        raise ProcessError(f"the editor {editor} exited with code {code}")


def checked(path: Path) -> Message:
    """Check a parameter file that was just edited: report every error, and a note for what is not supported.

    A file that does not exist or is empty produces no message.
    """
    from ggshell.check.facts import StatedFacts
    from ggshell.check.findings import FindingSeverity
    from ggshell.check.parameter_files import check_parameters, kind_of

    text = path.read_text(errors="replace") if path.exists() else ""
    kind = kind_of(text, path.name)
    found = check_parameters(text, path.name, kind, StatedFacts()) if kind else []
    if not found:
        return Message()
    errors: list[GgsError] = []
    notes: list[Note] = []
    for each in found:
        for finding in each.findings:
            where = f"{path.name}:{finding.place.line}:{finding.place.column}"
            if finding.severity is FindingSeverity.ERROR:
                column = finding.place.column - each.place.column + 1
                source = finding.source or each.statement
                errors.append(
                    ParameterError(
                        finding.message,
                        code=finding.code,
                        where=where,
                        hint=finding.hint,
                        column=column,
                        source=next(iter(source.splitlines()), ""),
                    )
                )
            else:
                notes.append(Note(finding.code, f"{finding.message} ({where})"))
    said = "a process would reject it:" if errors else "its parameters are valid."
    joined = "and" if not errors else "but"
    return Message((f"The file is saved, {joined} {said}",), tuple(errors), notes=tuple(notes))


def parameter_file(home: Home, name: str) -> Path:
    """The path of a group's parameter file, of Manager's, of GLOBALS, or a path as given."""
    if name.upper() in ("GLOBALS", "./GLOBALS"):
        return home.globals
    if "/" in name or name.lower().endswith(".prm"):
        return home.resolve(name)
    return home.parameters("mgr" if name.upper() in ("MGR", "MANAGER") else name)
