"""What concerns the shell itself: HELP, HISTORY, SHOW, VERSIONS, SHELL, CREATE SUBDIRS, EXIT."""

from __future__ import annotations

import os

from ggshell import __version__
from ggshell.errors import ProcessError, StateError
from ggshell.shell.listings import Facts, Listing
from ggshell.shell.registry import command
from ggshell.shell.results import Message, Text
from ggshell.shell.session import Session

_SHOWN = 10


@command("EXIT")
@command("QUIT")
def leave(session: Session) -> Message:
    """End the shell."""
    session.finished = True
    return Message()


@command("HELP")
def show_help(session: Session, *, rest: str = "") -> Text:
    """The pages of the manual: all commands by name, or those about a command, parameter, function or topic."""
    import shutil
    import sys

    from ggshell.shell.manual import help_text

    width = shutil.get_terminal_size().columns if session.interactive or sys.stdout.isatty() else 0
    return Text("HELP", help_text(rest, color=session.color, width=width))


@command("HISTORY")
def history(session: Session, *, n: int = _SHOWN) -> Listing:
    """The last statements, without their secrets."""
    every = list(enumerate(session.history, 1))
    shown = every[-n:] if n else []
    lines = ["", "GGSCI Command History", "", *(f"{number:>5}: {text}" for number, text in shown), ""]
    return Listing(("number", "statement"), shown, "\n".join(lines))


@command("SHELL")
@command("HOST")
def run_command(session: Session, *, rest: str) -> Text:
    """Run a command of the system, unless ``--no-shell``; at a terminal it has the terminal."""
    if not session.options.shell:
        raise StateError("commands of the system are off (--no-shell).")
    from ggshell.system import run_command

    done = run_command(rest, terminal=session.interactive)
    if done.code:
        raise ProcessError(
            f"the command ended with code {done.code}: {' '.join(done.output.split())[-400:]}".rstrip(": ")
        )
    return Text("SHELL", done.output)


_FOLDERS = {
    "Reports (.rpt)": "dirrpt",
    "Parameters (.prm)": "dirprm",
    "Replicat Checkpoints (.cpr)": "dirchk",
    "Extract Checkpoints (.cpe)": "dirchk",
    "Process Status (.pcs)": "dirpcs",
    "SQL Scripts (.sql)": "dirsql",
    "Database Definitions (.def)": "dirdef",
}


@command("SHOW")
def show(session: Session) -> Facts:
    """Settings and folders."""
    root = session.home.root
    editor = session.editor or os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    pairs = {"SET SUBDIRS": "ON", "SET DEBUG": "OFF", "Current directory": str(root), "Editor": editor}
    own = {
        "Pager": session.pager or os.environ.get("PAGER") or "less",
        "Format": session.options.format,
        "Timing": "ON" if session.timing else "OFF",
        "Spool": session.spool_name or "OFF",
    }
    folders = {label: str(root / name) for label, name in _FOLDERS.items()}
    lines = [
        "",
        "Parameter settings:",
        "",
        "SET SUBDIRS    ON",
        "SET DEBUG      OFF",
        "",
        f"Current directory: {root}",
        "",
        "Using subdirectories for all process files",
        "",
        f"Editor:  {editor}",
        *(f"{name + ':':<9}{value}" for name, value in own.items()),
        "",
        *(f"{label:<31}{path}" for label, path in folders.items()),
        "",
    ]
    return Facts(tuple({**pairs, **own, **folders}.items()), "\n".join(lines))


@command("VERSIONS")
def versions(session: Session) -> Facts:
    """This program, the system, and the database of the login."""
    import platform

    system = os.uname()
    pairs = {
        "ggshell": __version__,
        "Python": platform.python_version(),
        "System": system.sysname,
        "Version": f"{system.version}, Release {system.release}",
        "Node": system.nodename,
        "Machine": system.machine,
    }
    if session.login is not None:
        pairs["Database"] = f"PostgreSQL {session.login.version} ({session.login.database})"
    lines = ["", "Operating System:", *(f"{name + ':':<12}{value}" for name, value in pairs.items()), ""]
    return Facts(tuple(pairs.items()), "\n".join(lines))


@command("CREATE SUBDIRS")
def create_subdirectories(session: Session) -> Listing:
    """Make the folders of the home."""
    made = session.home.create_subdirectories()
    lines = ["", f"Creating subdirectories under current directory {session.home.root}", ""]
    words = {True: "created", False: "already exists"}
    lines += [f"{label:<31}{path}: {words[new]}" for label, path, new in made]
    values = [(label, str(path), new) for label, path, new in made]
    return Listing(("label", "folder", "created"), values, "\n".join(lines) + "\n")
